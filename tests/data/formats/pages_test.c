/* SPDX-License-Identifier: Apache-2.0 */
/* pages_test.c: gzip-compressed pages of one Parquet file, much larger than the memory given to them, read in the order
 * of the window for this memory. The data are compared with what was packed; decompressed bytes are counted in the page
 * reader. */
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

#include "trainer/data/container/decompress.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/formats/shards_inside.h"
#include "trainer/data/loader/sampler.h"

#define PAGES 32
#define SAMPLES 16 /* per page */
#define BYTES 4096 /* per sample */
#define PAGE (SAMPLES * BYTES)
#define ALL ((uint64_t)PAGES * PAGE)
#define THREADS 3
#define BATCH 8 /* samples */
#define LANES_MOST 4 /* with memory for half of the pages */

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

/* The order of an epoch with that window. */
static void shuffle(struct set *s, struct dataset_page_window of)
{
	struct window w;

	window_init(&w, &(struct window_opts){ .n = PAGES * SAMPLES, .global = BATCH, .window = of.samples,
					       .lanes = of.lanes, .key = { 5, 6 } });
	for (uint32_t i = 0; i < PAGES * SAMPLES; i++)
		s->order[i] = (uint32_t)window_at(&w, i, 0);
}

static void make(struct set *s, uint64_t memory_bytes)
{
	const struct page_totals totals = { PAGES, PAGES * SAMPLES, PAGE };
	struct err err = ERR_INIT;
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
	s->store = objects_open(&(struct objects_opts){ .timeout_s = 10 });
	assert_int_equal(objects_add(s->store, s->path, &err), 0);
	s->pages = page_cache_new(s->store, memory_bytes);
	shuffle(s, page_cache_window(&totals, memory_bytes));
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
static uint64_t pass(struct set *s, int threads)
{
	uint64_t before = atomic_load(&unpacked);
	pthread_t thread[THREADS];

	atomic_store(&s->next, 0);
	for (int i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_on, s), 0);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	assert_false(s->wrong);
	return atomic_load(&unpacked) - before;
}

/* Memory for 2 to 16 pages of 32: one lane to four of them. Each pass decompresses each page once. */
static void test_windows_fit(void **state)
{
	(void)state;
	for (uint64_t room = 2; room <= PAGES / 2; room += room < 6 ? 1 : 5) {
		struct set s;

		make(&s, room * PAGE);
		for (int i = 0; i < 3; i++)
			assert_in_range(pass(&s, 1), ALL - room * PAGE, ALL + LANES_MOST * PAGE);
		end(&s);
	}
}

static void test_windows_mix(void **state)
{
	struct set s;
	uint32_t far = 0;

	(void)state;
	make(&s, 4 * PAGE);
	for (uint32_t i = 1; i < PAGES * SAMPLES; i++)
		far += s.order[i] / SAMPLES != s.order[i - 1] / SAMPLES;
	assert_true(far > PAGES * SAMPLES / 3);
	end(&s);
}

/* With memory for all pages they are decompressed once, by any number of threads. */
static void test_all_fit(void **state)
{
	struct set s;

	(void)state;
	make(&s, ALL);
	assert_int_equal(pass(&s, THREADS), ALL);
	assert_int_equal(pass(&s, THREADS), 0);
	end(&s);
}

/* With memory for no page, or with threads that need more pages than fit: correct, whatever is decompressed again. */
static void test_little_room(void **state)
{
	struct set s;

	(void)state;
	make(&s, PAGE / 2);
	assert_true(pass(&s, THREADS) >= ALL);
	end(&s);
	make(&s, 2 * PAGE);
	for (uint32_t i = 0; i < PAGES * SAMPLES; i++)
		s.order[i] = i * 37 % (PAGES * SAMPLES);
	assert_true(pass(&s, THREADS) > ALL);
	end(&s);
}

static int read_bytes(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	(void)err;
	memcpy(to, (const char *)user + at, n);
	return 0;
}

static void test_large_page_is_refused(void **state)
{
	char text[64] = { 0 };
	FILE *f = fmemopen(text, sizeof(text), "wb");
	const struct byte_source file = { sizeof(text), read_bytes, text, "large.parquet" };
	const struct parquet_page_place place = { &file, 0, sizeof(text), DECOMPRESS_GZIP };
	struct parquet_page page;
	struct err err = ERR_INIT;

	(void)state;
	write_head(f, 300 << 20, 4);
	fclose(f);
	assert_int_equal(__real_parquet_page_read(&page, &place, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "a page of 300 MiB: expected at most 256 MiB"));
	assert_non_null(strstr(err.text, "row_group_size or data_page_size"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_fit),
		cmocka_unit_test(test_windows_mix),
		cmocka_unit_test(test_all_fit),
		cmocka_unit_test(test_little_room),
		cmocka_unit_test(test_large_page_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
