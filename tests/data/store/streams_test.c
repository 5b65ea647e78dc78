/* SPDX-License-Identifier: Apache-2.0 */
/* streams_test.c: through which file descriptor a range is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "trainer/data/store/readahead.h"

#define MIB ((uint64_t)1 << 20)
#define STREAMS 300 /* more than there are descriptors */

static const char *const file = "/dev/null";

static struct stream_place take(struct readahead *s, uint64_t at, size_t n)
{
	struct stream_place ret;

	readahead_take(s, &(struct objects_range){ .object = 3, .at = at, .n = n }, file, &ret);
	return ret;
}

static int read_one(struct readahead *s, uint64_t at, size_t n)
{
	struct stream_place p = take(s, at, n);

	readahead_give(s, &p);
	return p.fd;
}

/* A range gets a descriptor if it continues what was read before. */
static void test_follows(void **state)
{
	static const struct {
		const char *what;
		uint64_t at;
		bool follows;
	} rows[] = {
		{ "at the end", 10 * MIB, true },
		{ "after a header", 10 * MIB + 512, true },
		{ "after another thread's read", 11 * MIB, true },
		{ "a little late", 9 * MIB, true },
		{ "far ahead", 11 * MIB + 1, false },
		{ "far behind", 9 * MIB - 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct readahead *s = readahead_new();

		print_message("%s\n", rows[i].what);
		assert_int_equal(read_one(s, 10 * MIB - 100, 100), -1);
		assert_int_equal(read_one(s, rows[i].at, 100) >= 0, rows[i].follows);
		readahead_free(s);
	}
}

/* Adjacent reads of several threads share one descriptor, also if the later range comes first. */
static void test_shared(void **state)
{
	struct readahead *s = readahead_new();
	struct stream_place first, second;

	(void)state;
	read_one(s, 0, 1000);
	second = take(s, 2000, 1000);
	first = take(s, 1000, 1000);
	assert_true(first.fd >= 0);
	assert_int_equal(first.fd, second.fd);
	readahead_give(s, &first);
	readahead_give(s, &second);
	assert_int_equal(read_one(s, 3000, 1000), first.fd);
	readahead_free(s);
}

/* Two lanes of a small file do not merge. */
static void test_nearest(void **state)
{
	struct readahead *s = readahead_new();
	int low, high;

	(void)state;
	read_one(s, 0, 100);
	read_one(s, 3 * MIB / 2, 100);
	low = read_one(s, 100, MIB - 100);
	high = read_one(s, 3 * MIB / 2 + 100, 100);
	assert_true(low >= 0 && high >= 0 && low != high);
	assert_int_equal(read_one(s, MIB, 100), low);
	assert_int_equal(read_one(s, 3 * MIB / 2 + 200, 100), high);
	readahead_free(s);
}

static void test_replaced(void **state)
{
	struct readahead *s = readahead_new();
	struct stream_place held;
	int lowest = open(file, O_RDONLY | O_CLOEXEC);

	(void)state;
	read_one(s, 0, 100);
	held = take(s, 100, 100);
	for (uint64_t i = 1; i <= STREAMS; i++) {
		read_one(s, i * 10 * MIB, 100);
		assert_true(read_one(s, i * 10 * MIB + 100, 100) >= 0);
	}
	assert_true(fcntl(held.fd, F_GETFD) >= 0); /* in use, so it stays open */
	readahead_give(s, &held);
	assert_int_equal(read_one(s, 200, 100), held.fd);
	readahead_free(s);
	assert_int_equal(open(file, O_RDONLY | O_CLOEXEC), lowest + 1); /* all are closed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
