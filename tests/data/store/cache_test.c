/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c: several caches of one process write to one folder at once: every block is kept, and under its own
 * name. Copies of other nodes' blocks give way to the node's own blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int count_held(struct cache *c, int writer, int n)
{
	int held = 0;

	for (int i = 0; i < n; i++) {
		struct cache_block b = name_of(writer, i);

		held += cache_holds(c, &b);
	}
	return held;
}

static void keep_many(struct cache *c, int writer, int n, void (*keep)(struct cache *, const struct cache_block *,
								       const void *, size_t))
{
	char bytes[BYTES];

	for (int i = 0; i < n; i++) {
		struct cache_block b = name_of(writer, i);

		fill(writer, i, bytes);
		keep(c, &b, bytes, BYTES);
	}
}

/* Room for 100 blocks and the lock file: 80 copies, then 90 blocks of this node, then 80 more copies. */
static void test_copies(void **state)
{
	char path[100], got[BYTES], want[BYTES];
	unsigned char id[CACHE_ID_BYTES], again[CACHE_ID_BYTES];
	struct cache_block b = name_of(10, 89);
	struct err err = ERR_INIT;
	struct cache *c;

	(void)state;
	snprintf(path, sizeof(path), "%s/limited", folder);
	assert_int_equal(cache_open(&c, &(struct cache_opts){ path, 110 * (BYTES + 100) }, &err), 0);
	keep_many(c, 11, 80, cache_keep_copy);
	assert_int_equal(count_held(c, 11, 80), 80);
	keep_many(c, 10, 90, cache_keep);
	assert_int_equal(count_held(c, 10, 90), 90);
	assert_in_range(count_held(c, 11, 80), 0, 13);
	keep_many(c, 12, 80, cache_keep_copy);
	assert_int_equal(count_held(c, 10, 90), 90);
	fill(10, 89, want);
	assert_true(cache_read(c, &b, 0, got, BYTES));
	assert_memory_equal(got, want, BYTES);
	cache_id(c, id);
	cache_close(c);
	assert_int_equal(cache_open(&c, &(struct cache_opts){ path, 0 }, &err), 0);
	cache_id(c, again);
	assert_memory_equal(id, again, sizeof(id));
	keep_many(c, 12, 80, cache_keep_copy); /* no limit */
	assert_int_equal(count_held(c, 12, 80), 80);
	cache_close(c);
}

static uint64_t bytes_in_folder;

static int add_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path;
	(void)at;
	bytes_in_folder += kind == FTW_F ? (uint64_t)st->st_size : 0;
	return 0;
}

/* The files of a folder, with the lock file, do not exceed its limit, though several threads of several caches fill
 * it. */
static void test_limit(void **state)
{
	enum { MOST = 300 * BYTES };
	struct writer w[2 * CACHES];
	pthread_t thread[2 * CACHES];
	struct err err = ERR_INIT;
	char path[100];

	(void)state;
	snprintf(path, sizeof(path), "%s/full", folder);
	for (int i = 0; i < CACHES; i++)
		assert_int_equal(cache_open(&w[i].cache, &(struct cache_opts){ path, MOST }, &err), 0);
	for (int i = 0; i < 2 * CACHES; i++) {
		w[i] = (struct writer){ w[i % CACHES].cache, 30 + i };
		assert_int_equal(pthread_create(&thread[i], NULL, write_blocks, &w[i]), 0);
	}
	for (int i = 0; i < 2 * CACHES; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < CACHES; i++)
		cache_close(w[i].cache);
	bytes_in_folder = 0;
	assert_int_equal(nftw(path, add_file, 8, FTW_PHYS), 0);
	if (bytes_in_folder > MOST || bytes_in_folder < MOST / 4 * 3)
		fail_msg("%llu bytes with a limit of %llu", (unsigned long long)bytes_in_folder,
			 (unsigned long long)MOST);
}

/* A block that was kept once is known, also by another cache on the folder, and after it was removed. */
static void test_had(void **state)
{
	struct cache_block b = name_of(20, 0), none = name_of(20, 1);
	struct err err = ERR_INIT;
	struct cache *c, *other;
	char path[200], bytes[BYTES] = "";

	(void)state;
	assert_int_equal(cache_open(&c, &(struct cache_opts){ folder, 0 }, &err), 0);
	assert_int_equal(cache_open(&other, &(struct cache_opts){ folder, 0 }, &err), 0);
	assert_false(cache_had(c, &b));
	cache_keep(c, &b, bytes, BYTES);
	assert_true(cache_had(c, &b) && cache_had(other, &b));
	snprintf(path, sizeof(path), "%s/dptrain-blocks/%.2s/%s", folder, b.name, b.name + 2);
	assert_int_equal(unlink(path), 0);
	assert_false(cache_holds(other, &b));
	assert_true(cache_had(other, &b));
	assert_false(cache_had(other, &none));
	cache_close(c);
	cache_close(other);
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_writers), cmocka_unit_test(test_copies),
					    cmocka_unit_test(test_had), cmocka_unit_test(test_limit) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
