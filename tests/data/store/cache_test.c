/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c: several caches of one process write to one folder at once: every block is kept, and under its own
 * name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/store/cache.h"

#define CACHES 3
#define BLOCKS 1000
#define BYTES ((size_t)3000)

static char folder[64];

struct writer {
	struct cache *cache;
	int number;
};

static struct cache_block name_of(int writer, int block)
{
	struct cache_block b;

	cache_name(&(struct cache_key){ "http://a/b", "1", (uint64_t)writer, (uint64_t)block }, &b);
	return b;
}

static void fill(int writer, int block, char to[BYTES])
{
	for (size_t i = 0; i < BYTES; i++)
		to[i] = (char)(writer * 131 + block * 7 + (int)i);
}

static void *write_blocks(void *user)
{
	struct writer *w = user;
	char bytes[BYTES];

	for (int i = 0; i < BLOCKS; i++) {
		struct cache_block b = name_of(w->number, i);

		fill(w->number, i, bytes);
		cache_keep(w->cache, &b, bytes, BYTES);
	}
	return NULL;
}

static void test_writers(void **state)
{
	struct writer w[CACHES];
	pthread_t thread[CACHES];
	struct err err = ERR_INIT;
	char line[400], got[BYTES], want[BYTES];

	(void)state;
	for (int i = 0; i < CACHES; i++) {
		w[i].number = i;
		assert_int_equal(cache_open(&w[i].cache, &(struct cache_opts){ folder, 0 }, &err), 0);
	}
	for (int i = 0; i < CACHES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_blocks, &w[i]), 0);
	for (int i = 0; i < CACHES; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < CACHES; i++) {
		if (cache_notice(w[i].cache, line, sizeof(line)))
			fail_msg("%s", line);
		for (int k = 0; k < BLOCKS; k++) {
			struct cache_block b = name_of(i, k);

			fill(i, k, want);
			assert_true(cache_read(w[i].cache, &b, 0, got, BYTES));
			assert_memory_equal(got, want, BYTES);
		}
	}
	for (int i = 0; i < CACHES; i++)
		cache_close(w[i].cache);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%s", "/tmp/dptrain-cache-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_writers) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
