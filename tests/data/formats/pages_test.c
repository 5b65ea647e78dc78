/* SPDX-License-Identifier: Apache-2.0 */
/* pages_test.c: gzip-compressed pages of one Parquet file, much larger than the memory given to them, read in the order
 * of a window; and a large Snappy page read in parts. The data are compared with what was packed; decompressed bytes
 * are counted in the page reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "tracker/base/buf.h"
#include "trainer/data/container/decompress.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/formats/shards_inside.h"
#include "trainer/data/store/ring_file.h"

#define PAGES 32
#define SAMPLES 16 /* per page */
#define BYTES 4096 /* per sample */
#define PAGE (SAMPLES * BYTES)
#define ALL ((uint64_t)PAGES * PAGE)
#define THREADS 3

static _Atomic uint64_t unpacked;

int __real_parquet_page_read(struct parquet_page *ret, const struct parquet_page_place *p, struct err *err);
int __wrap_parquet_page_read(struct parquet_page *ret, const struct parquet_page_place *p, struct err *err);

int __wrap_parquet_page_read(struct parquet_page *ret, const struct parquet_page_place *p, struct err *err)
{
	int rc = __real_parquet_page_read(ret, p, err);

	atomic_fetch_add(&unpacked, rc ? 0 : ret->n);
	return rc;
}

struct set {
	char path[32];
	struct objects *store;
	struct page_cache *pages;
	unsigned char *plain; /* [ALL] */
	uint64_t page_at[PAGES];
	uint32_t order[PAGES * SAMPLES];
	_Atomic uint32_t next; /* in the order */
	bool wrong;
};

static void put_number(FILE *f, uint8_t field, uint32_t v)
{
	fputc(field << 4 | 5, f);
	for (v *= 2; v > 127; v >>= 7)
		fputc((int)(v | 128) & 255, f);
	fputc((int)v, f);
}

/* Writes the header in Thrift's compact protocol (github.com/apache/parquet-format, parquet.thrift); the values
 * follow. */
static void write_head(FILE *f, uint32_t unpacked_n, uint32_t packed_n)
{
	put_number(f, 1, 0);
	put_number(f, 1, unpacked_n);
	put_number(f, 1, packed_n);
	fputc(2 << 4 | 12, f);
	put_number(f, 1, SAMPLES);
	put_number(f, 1, 0);
	fputc(0, f);
	fputc(0, f);
}

static void write_page(FILE *f, const unsigned char *plain)
{
	static unsigned char packed[2 * PAGE];
	uLongf n = sizeof(packed);

	assert_int_equal(compress(packed, &n, plain, PAGE), Z_OK);
	write_head(f, PAGE, (uint32_t)n);
	assert_int_equal(fwrite(packed, 1, n, f), n);
}

/* Permutes the samples within windows of this many pages. */
static void shuffle(struct set *s, uint32_t window)
{
	uint64_t draws = 7;

	for (uint32_t i = 0; i < PAGES * SAMPLES; i++)
		s->order[i] = i;
	for (uint32_t i = 0; i < PAGES * SAMPLES; i++) {
		uint32_t begin = i - i % (window * SAMPLES), j, was = s->order[i];

		draws = draws * 6364136223846793005u + 1442695040888963407u;
		j = begin + (uint32_t)(draws >> 33) % (i - begin + 1);
		s->order[i] = s->order[j];
		s->order[j] = was;
	}
}

/* Returns false if there is no disk for the ring file. */
static bool make(struct set *s, uint32_t window, uint64_t aside_bytes)
{
	struct err err = ERR_INIT;
	struct ring_file *aside = ring_file_open(".", aside_bytes);
	FILE *f;

	*s = (struct set){ .path = "pages-XXXXXX", .plain = malloc(ALL) };
	f = fdopen(mkstemp(s->path), "wb");
	assert_non_null(f);
	for (uint64_t i = 0; i < ALL; i++)
		s->plain[i] = (unsigned char)(i * i >> 9 ^ i >> 3);
	for (int i = 0; i < PAGES; i++) {
		s->page_at[i] = (uint64_t)ftell(f);
		write_page(f, s->plain + (size_t)i * PAGE);
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(objects_open(&s->store, &(struct objects_opts){ .timeout_s = 10 }, &err), 0);
	assert_int_equal(objects_add(s->store, s->path, &err), 0);
	assert_int_equal(
		page_cache_new(&s->pages,
			       &(struct page_cache_opts){ .store = s->store, .memory_bytes = ALL / 8, .aside = aside },
			       &err),
		0);
	shuffle(s, window);
	return aside != NULL;
}

static void end(struct set *s)
{
	page_cache_free(s->pages);
	objects_close(s->store);
	unlink(s->path);
	free(s->plain);
}

static void *read_on(void *arg)
{
	struct set *s = arg;
	unsigned char got[BYTES];
	uint32_t at;

	while ((at = atomic_fetch_add(&s->next, 1)) < PAGES * SAMPLES) {
		uint32_t number = s->order[at], inside = number % SAMPLES * BYTES;
		struct sample one = { .offset = s->page_at[number / SAMPLES],
				      .bytes = BYTES,
				      .packed = samples_packed(DECOMPRESS_GZIP, inside) };
		struct err err = ERR_INIT;

		if (page_cache_read(s->pages, &one, NULL, got, &err) ||
		    memcmp(got, s->plain + (size_t)number * BYTES, BYTES) != 0)
			s->wrong = true;
	}
	return NULL;
}

/* Bytes decompressed in a pass with this many threads. */
static uint64_t pass_by(struct set *s, void *(*read)(void *), int threads)
{
	uint64_t before = atomic_load(&unpacked);
	pthread_t thread[THREADS];

	atomic_store(&s->next, 0);
	for (int i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read, s), 0);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	assert_false(s->wrong);
	return atomic_load(&unpacked) - before;
}

static uint64_t pass(struct set *s, int threads)
{
	return pass_by(s, read_on, threads);
}

static void test_window_over_all(void **state)
{
	struct set s;
	bool disk = make(&s, PAGES, ALL);

	(void)state;
	if (disk) {
		assert_int_equal(pass(&s, THREADS), ALL);
		assert_int_equal(pass(&s, THREADS), 0);
	}
	end(&s);
	if (!disk)
		skip();
}

/* Pages in the ring file are overwritten by those of later windows. */
static void test_windows(void **state)
{
	struct set s;
	bool disk = make(&s, PAGES / 4, ALL / 2);

	(void)state;
	for (int i = 0; disk && i < 3; i++)
		assert_int_equal(pass(&s, 1), ALL);
	if (disk)
		pass(&s, THREADS);
	end(&s);
	if (!disk)
		skip();
}

/* With space for no page, or for one: pages are decompressed again, correctly. */
static void test_little_room(void **state)
{
	struct set s;

	(void)state;
	for (uint64_t room = PAGE / 2; room <= 4 * PAGE; room *= 2) {
		make(&s, PAGES, room);
		assert_true(pass(&s, THREADS) > ALL);
		end(&s);
	}
}

/* ---- a page that is read in parts ---- */

#define BLOCKS 40 /* enough to be read in parts */
#define LARGE ((uint32_t)(BLOCKS * DECOMPRESS_SNAPPY_BLOCK))
#define CROSSING 30 /* in one variant this block copies from the previous one */
#define COPIED 60
#define PART 100000
#define READS 60

/* Literals of up to a block; copies of COPIED bytes. Snappy's format_description.txt. */
static void add_literal(struct buf *b, const unsigned char *from, size_t n)
{
	const char head[] = { 61 << 2, (char)((n - 1) & 255), (char)((n - 1) >> 8) };

	buf_add(b, head, sizeof(head));
	buf_add(b, from, n);
}

static void add_blocks(struct buf *b, const unsigned char *plain, bool crosses)
{
	static const char copy[] = { 3 | (COPIED - 1) << 2, 0, 0, 1, 0 }; /* from one block earlier */

	for (uint32_t left = LARGE; left || b->len == 0; left >>= 7)
		buf_addc(b, (char)((left & 127) | (left >> 7 ? 128 : 0)));
	for (size_t k = 0; k < BLOCKS; k++) {
		const size_t skip = crosses && k == CROSSING ? COPIED : 0;

		if (skip)
			buf_add(b, copy, sizeof(copy));
		add_literal(b, plain + k * DECOMPRESS_SNAPPY_BLOCK + skip, DECOMPRESS_SNAPPY_BLOCK - skip);
	}
}

static void make_large(struct set *s, bool crosses)
{
	struct err err = ERR_INIT;
	struct buf b;
	FILE *f;

	*s = (struct set){ .path = "pages-XXXXXX", .plain = malloc(LARGE) };
	for (uint32_t i = 0; i < LARGE; i++)
		s->plain[i] = (unsigned char)(i * 2654435761u >> 13);
	if (crosses)
		memcpy(s->plain + CROSSING * DECOMPRESS_SNAPPY_BLOCK,
		       s->plain + (CROSSING - 1) * DECOMPRESS_SNAPPY_BLOCK, COPIED);
	buf_init(&b, 2 * LARGE);
	add_blocks(&b, s->plain, crosses);
	f = fdopen(mkstemp(s->path), "wb");
	assert_non_null(f);
	write_head(f, LARGE, (uint32_t)b.len);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	assert_int_equal(fclose(f), 0);
	buf_done(&b);
	assert_int_equal(objects_open(&s->store, &(struct objects_opts){ .timeout_s = 10 }, &err), 0);
	assert_int_equal(objects_add(s->store, s->path, &err), 0);
	assert_int_equal(page_cache_new(&s->pages,
				   &(struct page_cache_opts){ .store = s->store, .memory_bytes = 2 * LARGE }, &err), 0);
}

static void *read_parts(void *arg)
{
	struct set *s = arg;
	unsigned char *got = malloc(PART);
	uint32_t at;

	while ((at = atomic_fetch_add(&s->next, 1)) < READS) {
		const uint32_t inside = at * 2654435761u % (LARGE - PART);
		struct sample one = { .bytes = PART, .packed = samples_packed(DECOMPRESS_SNAPPY, inside) };
		struct err err = ERR_INIT;

		if (page_cache_read(s->pages, &one, NULL, got, &err) || memcmp(got, s->plain + inside, PART) != 0)
			s->wrong = true;
	}
	free(got);
	return NULL;
}

static void test_parts(void **state)
{
	struct set s;

	(void)state;
	make_large(&s, false);
	assert_int_equal(pass_by(&s, read_parts, THREADS), 0);
	end(&s);
}

/* Parts before a block that depends on another are read by the map, the others from the complete page, unpacked once.
 * */
static void test_parts_that_cross(void **state)
{
	struct set s;

	(void)state;
	if (!decompress_can(DECOMPRESS_SNAPPY))
		skip();
	make_large(&s, true);
	assert_int_equal(pass_by(&s, read_parts, THREADS), LARGE);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_over_all),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_little_room),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_parts_that_cross),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
