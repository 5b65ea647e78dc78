/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_test.c: files of the safetensors package, files with false headers, thousands of mutated ones; writing.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trainer/graph/rng.h"
#include "trainer/weights/safetensors.h"

static char path[64];

static void golden_file(void **state)
{
	static const char *const names[] = { "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8" };
	const char *top = getenv("srcdir");
	struct safetensors *s = NULL;
	struct err err = ERR_INIT;
	char golden[4096];
	double v[6];

	(void)state;
	snprintf(golden, sizeof(golden), "%s/tests/weights/golden.safetensors", top ? top : ".");
	if (safetensors_open(&s, golden, &err))
		fail_msg("%s", err.text);
	assert_int_equal(safetensors_count(s), 13);
	assert_string_equal(safetensors_meta(s, "model"), "resnet20");
	assert_null(safetensors_meta(s, "nothing"));
	for (int k = 0; k < 8; k++) {
		const struct st_tensor *t = safetensors_find(s, names[k]);

		assert_non_null(t);
		assert_true(t->ndim == 2 && t->dim[0] == 2 && t->dim[1] == 3 && t->count == 6);
		safetensors_f64(t, 0, 6, v);
		for (int i = 0; i < 6; i++)
			assert_true(v[i] == i - 2);
		safetensors_f64(t, 4, 1, v);
		assert_true(v[0] == 2);
	}
	safetensors_f64(safetensors_find(s, "u8"), 0, 6, v);
	assert_true(v[5] == 5);
	safetensors_f64(safetensors_find(s, "bool"), 0, 6, v);
	assert_true(v[4] == 0 && v[5] == 1);
	safetensors_f64(safetensors_find(s, "scalar"), 0, 1, v);
	assert_true(safetensors_find(s, "scalar")->ndim == 0 && v[0] == 1.5);
	assert_int_equal(safetensors_find(s, "empty")->bytes, 0);
	assert_int_equal(safetensors_find(s, "odd.name \xc3\xa9")->ndim, 4);
	assert_null(safetensors_find(s, "F64"));
	safetensors_close(s);
}

static void every_half_precision_number(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		uint16_t h = (uint16_t)bits;
		struct st_tensor f16 = { .dtype = ST_F16, .data = &h }, bf16 = { .dtype = ST_BF16, .data = &h };
		double v, sign = h >> 15 ? -1 : 1;
		int e = h >> 10 & 31, m = h & 1023, be = h >> 7 & 255, bm = h & 127;

		safetensors_f64(&f16, 0, 1, &v);
		if (e == 31)
			assert_true(m ? isnan(v) : v == sign * INFINITY);
		else
			assert_true(v == sign * (e ? (1 + m / 1024.0) * pow(2, e - 15) : m / 1024.0 * pow(2, -14)));
		safetensors_f64(&bf16, 0, 1, &v);
		if (be == 255)
			assert_true(bm ? isnan(v) : v == sign * INFINITY);
		else
			assert_true(v == sign * (be ? (1 + bm / 128.0) * pow(2, be - 127) : bm / 128.0 * pow(2, -126)));
	}
}

/* A file of this header and n bytes of data, in memory of exactly its length. */
static uint8_t *file_of(const char *header, size_t n, size_t *ret_n)
{
	size_t h = strlen(header);
	uint8_t *b = calloc(1, 8 + h + n);

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)((uint64_t)h >> 8 * i);
	memcpy(b + 8, header, h);
	*ret_n = 8 + h + n;
	return b;
}

static void refused(const uint8_t *b, size_t n, const char *words)
{
	struct safetensors *s = NULL;
	struct err err = ERR_INIT;
	uint8_t *exact = malloc(n ? n : 1);
	int rc;

	if (n)
		memcpy(exact, b, n);
	rc = safetensors_open_memory(&s, "f", exact, n, &err);
	if (rc != ERR_USAGE || s || !strstr(err.text, words) || strpbrk(err.text, "\n\t"))
		fail_msg("code %d, says: %s\n  expected: %s", rc, err.text, words);
	free(exact);
}

static void bad_files_are_refused(void **state)
{
	static const struct {
		const char *header, *words;
	} cases[] = {
		{ "{ ", "damaged header" },
		{ "[1]", "is not a safetensors file" },
		{ "{\"a\":1}", "unknown type '(none)'" },
		{ "{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		  "unknown type 'F8'" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,1]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", "its shape" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807],\"data_offsets\":[0,9223372036854775807]}}",
		  "outside of" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[17],\"data_offsets\":[0,17]}}",
		  "outside of the 16 bytes" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", "outside of" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,2]}}", "outside of" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", "outside of" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", "outside of" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,7]}}",
		  "span 7 bytes, but shape and type need 8" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\\n\":{\"dtype\":\"U8\","
		  "\"shape\":[4],\"data_offsets\":[3,7]}}", "'a' and 'b?' overlap" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"U8\","
		  "\"shape\":[4],\"data_offsets\":[4,8]}}", "duplicate" },
		{ "{\"__metadata__\":[]}", "__metadata__ is not an object" },
		{ "{\"__metadata__\":{\"a\":1}}", "not a string" },
		{ "{} x", "damaged header" },
	};
	static const uint8_t zip[] = "PK\3\4aaaaaaaaaaaaaaaa", pickle[] = "\x80\x02}q\0aaaaaaaaaa";
	static const uint8_t huge[16] = { 0, 0, 0, 0, 0, 0, 0, 1, '{' }, sixteen[16] = { 0, 0, 0, 1, 0, 0, 0, 0, '{' };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		uint8_t *b = file_of(cases[i].header, 16, &n);

		refused(b, n, cases[i].words);
		free(b);
	}
	refused(zip, sizeof(zip), "is a PyTorch file: convert it: python3");
	refused(pickle, sizeof(pickle), "is a PyTorch file");
	refused(huge, sizeof(huge), "is not a safetensors file");
	refused(sixteen, sizeof(sixteen), "truncated: a header of 16777216 bytes");
}

static const char good_header[] =
	"{\"__metadata__\":{\"model\":\"m\"},\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[2,1,2,2],"
	"\"data_offsets\":[0,32]},"
	"\"fc.bias\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[32,38]},"
	"\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[40,48]}}";

/* Every length of header opens, also those whose bytes look like the beginning of a pickle. */
static void every_header_length_opens(void **state)
{
	char header[1600];

	(void)state;
	for (int n = 2; n < 1600; n++) {
		struct safetensors *s = NULL;
		size_t bytes;
		uint8_t *b;

		snprintf(header, sizeof(header), "{%*s", n - 1, "}");
		b = file_of(header, 0, &bytes);
		assert_int_equal(safetensors_open_memory(&s, "f", b, bytes, NULL), 0);
		safetensors_close(s);
		free(b);
	}
}

static void every_cut_is_refused(void **state)
{
	size_t n;
	uint8_t *b = file_of(good_header, 48, &n);

	(void)state;
	for (size_t cut = 0; cut < n; cut++)
		refused(b, cut, "f: ");
	free(b);
}

/* All tensors of an opened file can be read: the address sanitizer would detect a byte outside of the file. */
static int open_and_read(const uint8_t *b, size_t n)
{
	struct safetensors *s = NULL;
	struct err err = ERR_INIT;
	uint8_t *exact = malloc(n ? n : 1);
	int rc;

	memcpy(exact, b, n);
	rc = safetensors_open_memory(&s, "f", exact, n, &err);
	if (rc) {
		assert_true(rc == ERR_USAGE && err.text[0] && !strpbrk(err.text, "\n\r"));
	} else {
		for (size_t i = 0; i < safetensors_count(s); i++) {
			const struct st_tensor *t = safetensors_at(s, i);
			double *v = malloc((size_t)t->count * sizeof(*v) + 1);

			assert_true((const uint8_t *)t->data >= exact &&
				    (const uint8_t *)t->data + t->bytes <= exact + n);
			safetensors_f64(t, 0, t->count, v);
			assert_ptr_equal(safetensors_find(s, t->name), t);
			free(v);
		}
	}
	safetensors_close(s);
	free(exact);
	return rc;
}

static void mutated_headers_do_no_harm(void **state)
{
	static const char *const pieces[] = { "0", "9", "-1", "99999999999999999999", "4611686018427387904", "[", "]",
					      "{", "}", ",", "\"", "\\u0000", "null", "1e99", "\"F64\"", "\"BOOL\"",
					      "[0,48]", "\xff" };
	struct rng_key key = { 7, rng_stream("mutations") };
	uint64_t draw = 0;
	int opened = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n, room = 400;
		uint8_t *b = file_of(good_header, 48, &n), *m = calloc(1, n + room);
		size_t changes = 1 + rng_below(key, draw++, 4);

		memcpy(m, b, n);
		while (changes--) {
			size_t at = rng_below(key, draw++, 8 + sizeof(good_header) - 1),
				kind = rng_below(key, draw++, 4);
			const char *piece = pieces[rng_below(key, draw++, sizeof(pieces) / sizeof(pieces[0]))];
			size_t len = strlen(piece);

			if (kind == 0)
				m[at] = (uint8_t)rng_u64(key, draw++);
			else if (kind == 1)
				m[at] ^= (uint8_t)(1 << rng_below(key, draw++, 8));
			else if (at >= 8 && at + len < n)
				memcpy(m + at, piece, len);
		}
		opened += !open_and_read(m, n);
		free(m);
		free(b);
	}
	assert_in_range(opened, 100, 19000); /* only names and data were changed: some are still valid files */
}

struct source {
	double f64[6];
	float f32[5];
	int fail_at; /* tensor whose bytes cannot be read, or -1 */
};

static int fetch(void *user, size_t i, const void **ret, struct err *err)
{
	struct source *s = user;

	if ((int)i == s->fail_at)
		return err_set(err, ERR_PEER, "gone");
	*ret = i == 0 ? (const void *)s->f64 : s->f32;
	return 0;
}

static const struct st_tensor described[] = {
	{ .name = "a", .dtype = ST_F64, .ndim = 2, .dim = { 2, 3 } },
	{ .name = "b \"quoted\"", .dtype = ST_F32, .ndim = 1, .dim = { 5 } },
	{ .name = "none", .dtype = ST_F32, .ndim = 1, .dim = { 0 } },
};

static int write_it(struct source *s, const char *to, struct err *err)
{
	static const struct st_meta meta[] = { { "model", "resnet20" }, { "mean", "0.5" } };

	return safetensors_write(&(struct st_write_opts){ .path = to, .tensors = described, .n_tensors = 3,
							  .meta = meta,
							  .n_meta = 2, .fetch = fetch, .user = s }, err);
}

static int leftovers(void)
{
	char pattern[100];
	glob_t g;
	int n;

	snprintf(pattern, sizeof(pattern), "%s*", path);
	n = glob(pattern, 0, NULL, &g) ? 0 : (int)g.gl_pathc;
	if (n)
		globfree(&g);
	return n;
}

static void written_reads_back(void **state)
{
	struct source s = { { 1, 2, 3, 4, 5, -0.1 }, { 1.5f, NAN, INFINITY, -0.0f, 1e-40f }, -1 };
	struct safetensors *f = NULL;
	struct err err = ERR_INIT;
	const struct st_tensor *t;

	(void)state;
	for (int again = 0; again < 2; again++) /* the second time over the existing file */
		assert_int_equal(write_it(&s, path, &err), 0);
	assert_int_equal(leftovers(), 1);
	if (safetensors_open(&f, path, &err))
		fail_msg("%s", err.text);
	t = safetensors_find(f, "a");
	assert_memory_equal(t->data, s.f64, sizeof(s.f64));
	assert_int_equal((uintptr_t)t->data % 8, 0);
	t = safetensors_find(f, "b \"quoted\"");
	assert_memory_equal(t->data, s.f32, sizeof(s.f32));
	assert_string_equal(safetensors_meta(f, "mean"), "0.5");
	assert_int_equal(safetensors_count(f), 3);
	safetensors_close(f);
}

static void failed_writes_keep_the_old_file(void **state)
{
	struct source s = { { 0 }, { 0 }, -1 };
	struct safetensors *f = NULL;
	struct err err = ERR_INIT;
	struct rlimit old, small;

	(void)state;
	assert_int_equal(write_it(&s, path, &err), 0);
	s.f64[0] = 7;
	s.fail_at = 1;
	assert_int_equal(write_it(&s, path, &err), ERR_PEER);
	s.fail_at = -1;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 100;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(write_it(&s, path, &err), ERR_NOSPC);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(write_it(&s, "/nowhere/at/all", &err), ERR_NOENT);
	assert_int_equal(leftovers(), 1);
	assert_int_equal(safetensors_open(&f, path, &err), 0);
	assert_true(*(const double *)safetensors_find(f, "a")->data == 0);
	safetensors_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_file),
		cmocka_unit_test(every_half_precision_number),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(every_header_length_opens),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(mutated_headers_do_no_harm),
		cmocka_unit_test(written_reads_back),
		cmocka_unit_test(failed_writes_keep_the_old_file),
	};
	int rc;

	snprintf(path, sizeof(path), "safetensors_test.%ld", (long)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
