/* SPDX-License-Identifier: Apache-2.0 */
/* objects_test.c: how much of remote objects is kept in memory when they are read by windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trainer/data/store/data_objects.h"

#define GIB ((uint64_t)1 << 30)
#define SHARD GIB /* bytes per object */

static struct objects *shards(int n)
{
	struct objects *s = objects_open(&(struct objects_opts){ .parts = 1 });
	struct err err = ERR_INIT;

	for (int i = 0; i < n; i++) {
		int number = objects_add_listed(s, "http://127.0.0.1:9/shard.tar",
						&(struct objects_entry){ "shard.tar", SHARD, "\"1\"" }, &err);

		if (number == ERR_UNSUPPORTED) {
			print_message("skipped: %s\n", err.text);
			objects_close(s);
			return NULL;
		}
		assert_int_equal(number, i);
	}
	assert_int_equal(objects_measure(s, &err), 0);
	return s;
}

static void test_hold(void **state)
{
	static const struct {
		const char *what;
		int shards;
		struct objects_windows windows;
		uint64_t held;
		bool fits;
	} rows[] = {
		{ "no requirement", 100, { 0, 0, 0 }, GIB, true },
		{ "a small window", 100, { GIB / 8, 64, 0 }, GIB, true },
		{ "a large window, and the next", 100, { GIB, 64, 0 }, 2 * GIB + GIB / 2, true },
		{ "many ranks", 100, { GIB, 2, 0 }, 2 * GIB + GIB / 64, true },
		{ "a large window, limited by memory", 100, { GIB, 64, 2 * GIB }, 2 * GIB, true },
		{ "a window that does not fit in memory", 100, { 3 * GIB, 64, 2 * GIB }, 2 * GIB, false },
		{ "little memory", 100, { GIB, 64, GIB / 4 }, GIB, false },
		{ "a complete small set, in little memory", 1, { GIB, 64, GIB / 4 }, GIB, true },
		{ "a complete small set", 2, { 4 * GIB, 64, 0 }, 2 * GIB, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct objects *s = shards(rows[i].shards);

		if (!s)
			skip();
		print_message("%s\n", rows[i].what);
		assert_int_equal(objects_hold_windows(s, &rows[i].windows), rows[i].fits);
		assert_int_equal(objects_buffer_bytes(s), rows[i].held);
		objects_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hold) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
