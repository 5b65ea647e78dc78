/* SPDX-License-Identifier: Apache-2.0 */
/* base_test.c: tracker/base compared with known values and brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/arena.h"
#include "tracker/base/array.h"
#include "tracker/base/buf.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/err.h"
#include "tracker/base/file.h"
#include "tracker/base/hash.h"
#include "tracker/base/little.h"
#include "tracker/base/sha256.h"
#include "tracker/base/terminal.h"
#include "tracker/base/text.h"
#include "tracker/base/thread.h"

static void crc_known_values(void **state)
{
	char zeros[32] = { 0 };

	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aau);
	assert_int_equal(crc32c_mask(crc32c(0, "\x1a\x11" "CRC test, one two", 19)), 0x5794d08au);
}

static uint32_t crc_bitwise(const unsigned char *p, size_t n)
{
	uint32_t c = ~0u;

	while (n--) {
		c ^= *p++;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
	}
	return ~c;
}

static void crc_every_length_and_split(void **state)
{
	unsigned char bytes[67];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(bytes); n++)
		for (size_t cut = 0; cut <= n; cut++)
			assert_int_equal(crc32c(crc32c(0, bytes, cut), bytes + cut, n - cut), crc_bitwise(bytes, n));
}

/* Lengths around several lanes or folds of the instruction. */
static void crc_of_lanes(void **state)
{
	static const size_t lengths[] = { 1023, 1024, 1025, 1279,  1280,  1536,	 2047,	2048, 4096,
					  6143, 6144, 6145, 6151, 12287, 12288, 12289, 20000, 99991 };
	static unsigned char bytes[100000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * i * 7 + i / 251);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t at = 0; at < 9; at++) {
			const unsigned char *from = bytes + at;
			uint32_t true_sum = crc_bitwise(from, lengths[i]);

			assert_int_equal(crc32c(0, from, lengths[i]), true_sum);
			assert_int_equal(crc32c(crc32c(0, from, 1000), from + 1000, lengths[i] - 1000), true_sum);
		}
}

static void buf_stops_at_its_maximum(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_addf(&b, "%d-%s", 12345, "abcd");
	assert_false(buf_failed(&b));
	assert_string_equal(b.data, "12345-abcd");
	buf_addc(&b, 'x');
	assert_true(buf_failed(&b));
	assert_null(buf_take(&b, NULL));
	buf_reset(&b);
	buf_adds(&b, "again");
	buf_consume(&b, 2);
	assert_string_equal(b.data, "ain");
	buf_done(&b);
}

static void arena_keeps_contents(void **state)
{
	struct arena *a = arena_new();
	char *texts[500];

	(void)state;
	for (int i = 0; i < 500; i++)
		texts[i] = arena_printf(a, "%0*d", 1 + i * 20 % 9000, i);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(strlen(texts[i]),
				 (size_t)(1 + i * 20 % 9000 < 3 ? strlen(texts[i]) : 1 + (size_t)i * 20 % 9000));
		assert_int_equal((uintptr_t)texts[i] % 16, 0);
	}
	assert_null(arena_array(a, SIZE_MAX / 4, 8));
	arena_free(a);
}

static void err_maps_errno(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(err_set_errno(&e, ENOSPC, "write %s", "x"), ERR_NOSPC);
	err_prefix(&e, "rank %d", 3);
	assert_string_equal(e.text, "rank 3: write x: No space left on device");
}

static void err_keeps_the_reason(void **state)
{
	char path[2 * sizeof((struct err){ 0 }.text)];
	struct err e = ERR_INIT;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(err_set_errno(&e, ENAMETOOLONG, "cannot write %s", path), ERR_IO);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_non_null(strstr(e.text, "x: File name too long"));
}

static void err_names_its_field(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	err_set(&e, ERR_USAGE, "points[3].key is empty");
	assert_int_equal(err_field(&e, "points[%d].key", 3), ERR_USAGE);
	assert_string_equal(e.field, "points[3].key");
	err_prefix(&e, "batch");
	assert_string_equal(e.field, "points[3].key");
	err_set(&e, ERR_NOMEM, "out of memory");
	assert_string_equal(e.field, "");
}

static void median_is_in_the_middle(void **state)
{
	double odd[] = { 3, -INFINITY, 1 }, even[] = { 4, 1, 3, 2 }, large[] = { 1.7e308, 1.5e308 };
	double skewed[] = { 9, 1, 2, 6, 1, 4, 2 }, deviation; /* the distances to 2 are 0, 0, 1, 1, 2, 4, 7 */

	(void)state;
	assert_true(median_robust(skewed, 7, &deviation) == 2 && deviation == 1.4826);
	assert_true(isnan(median_robust(NULL, 0, &deviation)) && isnan(deviation));
	assert_true(isnan(median_of(NULL, 0)));
	assert_true(median_of(odd, 3) == 1 && median_of(even, 4) == 2.5 && median_of(large, 2) == 1.6e308);
	for (int i = 0; i < 4; i++)
		assert_true(even[i] == i + 1);
}

/* The examples of FIPS 180-4, in pieces of every length. */
static void sha_known_values(void **state)
{
	static const char a[1000] = { [0 ... 999] = 'a' };
	struct sha256 s;
	char got[65];

	(void)state;
	sha256_hex("abc", 3, got);
	assert_string_equal(got, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, got);
	assert_string_equal(got, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	for (size_t piece = 1; piece <= sizeof(a); piece += 37) {
		sha256_init(&s);
		for (size_t at = 0, n; at < 1000000; at += n) {
			n = 1000000 - at < piece ? 1000000 - at : piece;
			sha256_add(&s, a, n);
		}
		sha256_end(&s, got);
		assert_string_equal(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

static void both_equal_definition(const uint32_t h[8], const uint32_t other[8], const unsigned char *p, size_t blocks)
{
	uint32_t got[2][8], want[2][8];

	memcpy(got[0], h, sizeof(got[0]));
	memcpy(got[1], other, sizeof(got[1]));
	memcpy(want, got, sizeof(want));
	sha256_mix_both_best()(got[0], got[1], p, blocks);
	sha256_mix_plain(want[0], p, blocks);
	sha256_mix_plain(want[1], p, blocks);
	assert_memory_equal(got, want, sizeof(got));
}

static void sha_instructions_equal_the_definition(void **state)
{
	unsigned char bytes[64 * 9];
	uint32_t x = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint32_t a[8], b[8];

		for (size_t i = 0; i < sizeof(bytes); i++) {
			x = x * 1664525 + 1013904223;
			bytes[i] = (unsigned char)(x >> 24);
		}
		memcpy(a, bytes + 17, sizeof(a));
		memcpy(b, a, sizeof(b));
		sha256_mix_plain(a, bytes + round % 5, (size_t)(round % 9));
		sha256_mix_best()(b, bytes + round % 5, (size_t)(round % 9));
		assert_memory_equal(a, b, sizeof(a));
		memcpy(b, bytes + 100, sizeof(b));
		both_equal_definition(a, b, bytes + round % 5, (size_t)(round % 9));
	}
}

/* Two sums of the same bytes from different offsets, split anywhere, at equal and different positions in a block. */
static void sha_of_both_equals_each(void **state)
{
	unsigned char bytes[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 31 >> 2);
	for (size_t from = 0; from < 200; from++) {
		struct sha256 whole, rest;
		char a[65], b[65], want[65];
		size_t at, n;

		sha256_init(&whole);
		sha256_init(&rest);
		sha256_add(&whole, bytes, from);
		for (at = from, n = from % 7; at < sizeof(bytes); at += n, n = (n * 5 + from) % 190) {
			n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
			n += !n;
			sha256_add_both(&whole, &rest, bytes + at, n);
		}
		sha256_end(&whole, a);
		sha256_end(&rest, b);
		sha256_hex(bytes, sizeof(bytes), want);
		assert_string_equal(a, want);
		sha256_hex(bytes + from, sizeof(bytes) - from, want);
		assert_string_equal(b, want);
	}
}

static int refuses; /* errno of a file system without unnamed files; 0: supported */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	va_start(more, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(more, mode_t);
	va_end(more);
	if (refuses && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = refuses;
		return -1;
	}
	return __real_open(path, flags, mode);
}

static int entries_of(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void unnamed_files_are_not_found(void **state)
{
	static const int answers[] = { 0, EOPNOTSUPP, EISDIR, EINVAL };
	char folder[] = "nameless-XXXXXX", got[6];

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct stat st;
		int fd;

		refuses = answers[i];
		fd = file_nameless(folder);
		assert_true(fd >= 0);
		assert_int_equal(entries_of(folder), 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(pwrite(fd, "bytes", 6, 9), 6);
		assert_int_equal(file_read(fd, 9, got, 6), 6);
		assert_string_equal(got, "bytes");
		close(fd);
	}
	refuses = EACCES;
	assert_int_equal(file_nameless(folder), -1);
	assert_int_equal(errno, EACCES);
	refuses = 0;
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(file_nameless(folder), -1);
	assert_int_equal(errno, ENOENT);
}

/* Writes all bytes, or returns an error with the reason. */
static void bytes_are_all_written(void **state)
{
	char path[] = "/tmp/base_test_XXXXXX", bytes[] = "ten bytes", got[16];
	struct rlimit all, few;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, bytes, sizeof(bytes)), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	few = (struct rlimit){ .rlim_cur = sizeof(bytes) + 4, .rlim_max = all.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	assert_int_equal(file_write(fd, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(file_read(fd, 0, got, sizeof(got)), sizeof(bytes) + 4);
	assert_memory_equal(got, "ten bytes\0ten ", sizeof(bytes) + 4);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void expect_text_of(const char *path, const char *want)
{
	char got[16] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, want);
	close(fd);
}

/* A process creates such a file, writes some of it, and is killed. */
static void begin_and_die(const char *part)
{
	struct file_whole f;
	int status;
	pid_t child = fork();

	if (!child) {
		if (!file_whole_open(&f, part) && write(f.fd, "half", 4) == 4)
			raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void files_are_complete_or_absent(void **state)
{
	static const int answers[] = { 0, EOPNOTSUPP };
	char folder[] = "whole-XXXXXX", path[32], part[32];
	struct file_whole f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(part, sizeof(part), "%s/.part", folder);
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		refuses = answers[i];
		for (int time = 0; time < 2; time++) { /* the second file replaces the first */
			assert_int_equal(file_whole_open(&f, part), 0);
			assert_int_equal(write(f.fd, time ? "new" : "old", 3), 3);
			assert_int_equal(file_whole_keep(&f, path), 0);
			file_whole_drop(&f);
			expect_text_of(path, time ? "new" : "old");
			assert_int_equal(entries_of(folder), 1);
		}
		begin_and_die(part);
		assert_int_equal(entries_of(folder), refuses ? 2 : 1);
		assert_int_equal(file_whole_open(&f, part), 0);
		file_whole_drop(&f);
		assert_int_equal(file_whole_open(&f, part), 0);
		assert_int_equal(file_whole_keep(&f, "nowhere/file"), -1);
		assert_int_equal(errno, ENOENT);
		expect_text_of(path, "new");
		assert_int_equal(entries_of(folder), 1);
		assert_int_equal(unlink(path), 0);
	}
	refuses = 0;
	assert_int_equal(rmdir(folder), 0);
}

static void no_memory_is_one_sentence(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(err_nomem(&e, NULL), ERR_NOMEM);
	assert_string_equal(e.text, "out of memory");
	assert_int_equal(err_nomem(&e, "plans"), ERR_NOMEM);
	assert_string_equal(e.text, "out of memory: plans");
	assert_int_equal(err_nomem(NULL, "plans"), ERR_NOMEM);
}

static void arrays_grow(void **state)
{
	struct pair_of {
		int a;
		double b;
	} *pairs = NULL;
	int n = 0, cap = 0;
	unsigned char small = 0;
	char *text = NULL, *before;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_true(array_push(&pairs, &n, &cap, (struct pair_of){ i, -i }));
		assert_true(n == i + 1 && cap >= n && (n < 16 || cap < 3 * n));
	}
	for (int i = 0; i < 1000; i++)
		assert_true(pairs[i].a == i && pairs[i].b == -i);
	assert_false(array_reserve(&pairs, &cap, SIZE_MAX / 8));
	assert_true(pairs[999].a == 999);
	free(pairs);
	assert_true(array_reserve(&text, &small, 200) && small >= 200);
	memset(text, 'x', 200);
	before = text;
	assert_true(array_reserve(&text, &small, small) && text == before);
	assert_false(array_reserve(&text, &small, 256)); /* does not fit the type of the capacity */
	assert_true(small >= 200 && text[199] == 'x');
	free(text);
}

/* The vectors of the FNV authors' test suite. */
static void fnv_known_values(void **state)
{
	(void)state;
	assert_true(hash_fnv_text(HASH_FNV_BEGIN, "") == UINT64_C(0xcbf29ce484222325));
	assert_true(hash_fnv_text(HASH_FNV_BEGIN, "a") == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_fnv_text(HASH_FNV_BEGIN, "foobar") == UINT64_C(0x85944171f73967e8));
	assert_true(hash_fnv(hash_fnv(HASH_FNV_BEGIN, "foo", 3), "bar", 3) == UINT64_C(0x85944171f73967e8));
}

/* Against printf and isxdigit. */
static void hex_digits_are_those_of_printf(void **state)
{
	unsigned char bytes[256], again[256];
	char text[513], want[3];

	(void)state;
	for (int i = 0; i < 256; i++) {
		bytes[i] = (unsigned char)i;
		assert_int_equal(text_hex_digit((char)i) >= 0, i < 128 && isxdigit(i) != 0);
		if (i < 128 && isxdigit(i))
			assert_int_equal(text_hex_digit((char)i), strtol((char[]){ (char)i, '\0' }, NULL, 16));
	}
	assert_ptr_equal(text_hex(text, bytes, 256), text);
	for (int i = 0; i < 256; i++) {
		snprintf(want, sizeof(want), "%02x", (unsigned)i);
		assert_memory_equal(text + 2 * i, want, 2);
	}
	assert_int_equal(text[512], '\0');
	assert_true(text_is_hex(text, 512, 512));
	assert_true(text_unhex(again, text, 256));
	assert_memory_equal(bytes, again, 256);
	assert_true(text_unhex(again, "FFaB", 2) && again[0] == 0xff && again[1] == 0xab);
	assert_false(text_unhex(again, "0g", 1));
	assert_false(text_unhex(again, "0", 1)); /* stops at the NUL */
	assert_false(text_is_hex("12AB", 4, 4));
	assert_true(text_is_hex("12ab", 1, 4) && !text_is_hex("12ab", 5, 9) && !text_is_hex("12ab", 1, 3));
	assert_true(!text_is_hex(NULL, 0, 9) && text_is_hex("", 0, 9));
}

static void random_digits_differ(void **state)
{
	char a[65], b[65], large[131];

	(void)state;
	assert_int_equal(text_random_hex(a, 32), 0);
	assert_int_equal(text_random_hex(b, 32), 0);
	assert_true(text_is_hex(a, 64, 64) && text_is_hex(b, 64, 64));
	assert_string_not_equal(a, b);
	assert_int_equal(text_random_hex(large, 65), -1);
}

/* No text with fewer digits, from the minimum on, reads back as the same number. */
static void doubles_are_short_and_exact(void **state)
{
	char got[TEXT_DOUBLE_BYTES], fewer[40];
	uint64_t bits = 1;

	(void)state;
	assert_string_equal(text_double(got, 0.1, 6), "0.1");
	assert_string_equal(text_double(got, 0.1 + 0.2, 6), "0.30000000000000004");
	assert_string_equal(text_double(got, 1e6, 6), "1e+06");
	assert_string_equal(text_double(got, 1e6, 15), "1000000");
	assert_string_equal(text_double(got, -0.0, 15), "-0");
	assert_string_equal(text_double(got, -1.7976931348623157e308, 15), "-1.7976931348623157e+308");
	assert_string_equal(text_double(got, NAN, 15), "NaN");
	assert_string_equal(text_double(got, INFINITY, 6), "Infinity");
	assert_string_equal(text_double(got, -INFINITY, 6), "-Infinity");
	for (int i = 0; i < 20000; i++) {
		const int from = i % 2 ? 6 : 15;
		double v;

		bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407u;
		memcpy(&v, &bits, sizeof(v));
		if (i % 3 == 0)
			v = (double)(int64_t)(bits >> 40) / 1000;
		if (!isfinite(v))
			continue;
		text_double(got, v, from);
		assert_true(strtod(got, NULL) == v);
		for (int digits = from; digits <= 17; digits++) {
			snprintf(fewer, sizeof(fewer), "%.*g", digits, v);
			if (strtod(fewer, NULL) == v)
				break;
		}
		assert_string_equal(got, fewer);
	}
}

/* Against strftime, for times of 1900 to 9999. */
static void iso_times_are_those_of_strftime(void **state)
{
	static const char *const wrong[] = { "", "2026", "2026-11", "2026-02-30", "2026-11-28T", "2026-11-28 9:30",
					     "2026-11-28T24:00", "2026-11-28T09:30:61", "2026-11-28T09:30Zz",
					     "2026-11-28T09:30+15:00", "2026-11-28T09:30+01:60", "1899-12-31",
					     "x2026-11-28", "2026-11-28x", "-26-11-28" };
	const double least = -2208988800.0, most = 253402300799.0;
	char text[64];
	double got;

	(void)state;
	for (int i = 0; i <= 1000; i++) {
		const int minutes = i * 37 % 841;
		time_t t = (time_t)(least + (most - least) * i / 1000);
		struct tm tm;

		gmtime_r(&t, &tm);
		strftime(text, sizeof(text), i % 2 ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm);
		assert_true(text_iso_time(text, &got) && got == (double)t);
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.25", &tm);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), i % 2 ? "+%02d:%02d" : "-%02d%02d",
			 minutes / 60, minutes % 60);
		assert_true(text_iso_time(text, &got));
		assert_true(got == (double)t + 0.25 - (i % 2 ? 60 : -60) * minutes);
	}
	assert_true(text_iso_time("1970-01-02", &got) && got == 86400);
	assert_true(text_iso_time("1970-01-01T00:01", &got) && got == 60);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(text_iso_time(wrong[i], &got));
}

static void urls_lose_their_passwords(void **state)
{
	char text[] = "see https://me:secret@host/x@y and s3://bucket, ftp://a@b";

	(void)state;
	text_hide_credentials(text);
	assert_string_equal(text, "see https://host/x@y and s3://bucket, ftp://b");
}

/* 300 and the largest value as protobuf's documentation writes them. */
static void varints_are_protobufs(void **state)
{
	static const unsigned char of_300[] = { 0xac, 0x02 };
	static const int64_t order[] = { 0, -1, 1, -2, 2, -3 };
	unsigned char bytes[LITTLE_VARINT_BYTES], endless[11];
	const unsigned char *at;
	uint64_t v, got = 0;
	size_t n;

	(void)state;
	assert_int_equal(little_put_varint(bytes, 300) - bytes, 2);
	assert_memory_equal(bytes, of_300, 2);
	assert_int_equal(little_put_varint(bytes, UINT64_MAX) - bytes, 10);
	for (unsigned bit = 0; bit < 64; bit++)
		for (int less = 0; less < 2; less++) {
			v = (UINT64_C(1) << bit) - (uint64_t)less;
			n = (size_t)(little_put_varint(bytes, v) - bytes);
			assert_int_equal(n, v ? (64 - (size_t)__builtin_clzll(v) + 6) / 7 : 1);
			at = bytes;
			assert_true(little_get_varint(&at, bytes + n, &got));
			assert_true(got == v && at == bytes + n);
			at = bytes;
			assert_false(little_get_varint(&at, bytes + n - 1, &got));
			assert_true(got == v && at == bytes);
		}
	memset(endless, 0x80, sizeof(endless));
	at = endless;
	assert_false(little_get_varint(&at, endless + sizeof(endless), &got));
	for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++)
		assert_true(little_zigzag(order[i]) == i && little_unzigzag(i) == order[i]);
	assert_true(little_zigzag(INT64_MIN) == UINT64_MAX && little_unzigzag(UINT64_MAX) == INT64_MIN);
}

static void write_test_file(const char *path, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		fputc((int)(i * 31 % 251), f);
	assert_int_equal(fclose(f), 0);
}

static void files_are_read_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65535, 65536, 65537, 300001 };
	char folder[] = "load-XXXXXX", path[64];
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		write_test_file(path, sizes[i]);
		buf_init(&b, sizes[i] + 2); /* the file and the two bytes already there, exactly */
		buf_adds(&b, "xy");
		assert_int_equal(file_load(&b, path, &e), 0);
		assert_int_equal(b.len, sizes[i] + 2);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal((unsigned char)b.data[k + 2], k * 31 % 251);
		assert_int_equal(b.data[b.len], '\0');
		buf_done(&b);
		if (!sizes[i])
			continue;
		buf_init(&b, sizes[i] - 1);
		assert_int_equal(file_load(&b, path, &e), ERR_USAGE);
		assert_int_equal(errno, EFBIG);
		assert_non_null(strstr(e.text, "larger than the maximum"));
		buf_done(&b);
	}
	buf_init(&b, 100);
	assert_int_equal(file_load(&b, folder, &e), ERR_USAGE);
	assert_int_equal(errno, EISDIR);
	unlink(path);
	assert_int_equal(file_load(&b, path, &e), ERR_USAGE);
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(e.text, path));
	buf_done(&b);
	rmdir(folder);
}

static void pipes_are_read_to_their_end(void **state)
{
	char path[64];
	struct buf b;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(file_write(ends[1], "first ", 6), 0);
	assert_int_equal(file_write(ends[1], "second", 6), 0);
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	buf_init(&b, 100);
	assert_int_equal(file_load(&b, path, NULL), 0);
	assert_string_equal(b.data, "first second");
	buf_done(&b);
	close(ends[0]);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void folders_are_made_like_mkdir_p(void **state)
{
	char root[] = "folders-XXXXXX", path[256], below[300], tiny[8];
	struct err e = ERR_INIT;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_true(file_join(path, sizeof(path), root, "a//b/c"));
	assert_int_equal(file_make_folders(path, 0777, &e), 0);
	assert_int_equal(file_make_folders(path, 0777, &e), 0);
	assert_true(is_folder(path));
	assert_true(file_join(below, sizeof(below), root, "d/e/"));
	assert_int_equal(file_make_folders(below, 0700, &e), 0);
	assert_true(is_folder(below));
	assert_true(file_join(path, sizeof(path), below, "f/g"));
	assert_non_null(strstr(path, "/d/e/f/g"));
	assert_int_equal(file_make_parents(path, 0777, &e), 0);
	assert_false(is_folder(path));
	write_test_file(path, 1);
	assert_int_equal(file_make_folders(path, 0777, &e), ERR_IO);
	assert_non_null(strstr(e.text, "Not a directory"));
	assert_true(file_join(below, sizeof(below), path, "h/i"));
	assert_int_equal(file_make_parents(below, 0777, &e), ERR_IO);
	assert_true(file_join(tiny, sizeof(tiny), "abc", "def"));
	assert_string_equal(tiny, "abc/def");
	assert_false(file_join(tiny, sizeof(tiny), "abc", "defg"));
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
}

struct mask_seen {
	sigset_t mask;
	_Atomic bool ran;
};

static void *note_mask(void *arg)
{
	struct mask_seen *m = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &m->mask);
	m->ran = true;
	return m;
}

static void threads_leave_signals_to_the_program(void **state)
{
	struct mask_seen joined = { .ran = false }, detached = { .ran = false };
	sigset_t before, after;
	pthread_t thread;
	void *result;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, note_mask, &joined), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &joined);
	assert_int_equal(thread_start_detached(note_mask, &detached, 256 << 10), 0);
	while (!detached.ran)
		usleep(1000);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++)
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
	assert_true(sigismember(&joined.mask, SIGTERM) && sigismember(&detached.mask, SIGINT));
	assert_true(!sigismember(&joined.mask, SIGSEGV) && !sigismember(&detached.mask, SIGBUS));
}

/* Shows progress as if it had begun 10 s ago, with a pseudo-terminal as stderr; ret is what was written. */
static void show_progress(uint64_t whole, uint64_t done, char *ret, size_t n)
{
	struct terminal_progress progress;
	int at = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO), terminal;
	ssize_t got;

	assert_true(at >= 0 && kept >= 0 && !grantpt(at) && !unlockpt(at));
	terminal = open(ptsname(at), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0 && dup2(terminal, STDERR_FILENO) >= 0);
	terminal_progress_begin(&progress, "runs imported", whole);
	progress.start_s -= 10;
	terminal_progress_show(&progress, done);
	dup2(kept, STDERR_FILENO);
	got = read(at, ret, n - 1);
	assert_true(got > 0);
	ret[got] = '\0';
	close(terminal);
	close(kept);
	close(at);
}

/* Without a terminal: a whole line at most every 30 s. since_s: seconds since the last one. */
static void log_progress(double since_s, char *ret, size_t n)
{
	struct terminal_progress progress;
	int ends[2], kept = dup(STDERR_FILENO);
	ssize_t got;

	assert_true(kept >= 0 && !pipe2(ends, O_NONBLOCK) && dup2(ends[1], STDERR_FILENO) >= 0);
	terminal_progress_begin(&progress, "MB of files copied", 100);
	progress.start_s -= 40;
	progress.shown_s -= since_s;
	terminal_progress_show(&progress, 20);
	terminal_progress_show(&progress, 21);
	terminal_progress_clear(&progress);
	dup2(kept, STDERR_FILENO);
	got = read(ends[0], ret, n - 1);
	ret[got > 0 ? got : 0] = '\0';
	close(kept);
	close(ends[0]);
	close(ends[1]);
}

/* The vectors of RFC 4648, section 10, and bytes whose digits differ in URLs. */
static void base64_known_values(void **state)
{
	static const struct {
		const char *bytes, *text, *url;
	} known[] = { { "", "", "" },
		      { "f", "Zg==", "Zg" },
		      { "fo", "Zm8=", "Zm8" },
		      { "foo", "Zm9v", "Zm9v" },
		      { "foob", "Zm9vYg==", "Zm9vYg" },
		      { "fooba", "Zm9vYmE=", "Zm9vYmE" },
		      { "foobar", "Zm9vYmFy", "Zm9vYmFy" },
		      { "\xff\xfe\xfb", "//77", "__77" },
		      { "\xfb\xef\xbe", "++++", "----" } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const size_t n = strlen(known[i].bytes);
		char bytes[8] = "";
		struct buf b;

		buf_init(&b, 100);
		text_add_base64(&b, known[i].bytes, n, false);
		assert_string_equal(b.data ? b.data : "", known[i].text);
		buf_reset(&b);
		text_add_base64(&b, known[i].bytes, n, true);
		assert_string_equal(b.len ? b.data : "", known[i].url);
		buf_done(&b);
		assert_int_equal(text_unbase64(bytes, n, known[i].text), n);
		assert_memory_equal(bytes, known[i].bytes, n);
		assert_int_equal(text_unbase64(bytes, n ? n - 1 : 0, known[i].text), 0);
	}
}

static void escapes_are_those_of_rfc_3986(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	text_add_escaped(&b, "aZ9-._~/ \xc3\xa4%", "-._~");
	assert_string_equal(b.data, "aZ9-._~%2F%20%C3%A4%25");
	buf_done(&b);
}

static void progress_in_a_log_is_whole_lines(void **state)
{
	char said[200];

	(void)state;
	log_progress(20, said, sizeof(said));
	assert_string_equal(said, "");
	log_progress(31, said, sizeof(said));
	assert_string_equal(said, "dptrack: MB of files copied: 20 of 100 after 40 s, about 3 min left\n");
}

static void progress_estimates_the_rest(void **state)
{
	char said[200];

	(void)state;
	show_progress(0, 12, said, sizeof(said));
	assert_string_equal(said, "\rruns imported: 12 after 10 s\033[K");
	show_progress(40, 12, said, sizeof(said));
	assert_string_equal(said, "\rruns imported: 12 of 40 after 10 s, about 23 s left\033[K");
	show_progress(40, 0, said, sizeof(said));
	assert_string_equal(said, "\rruns imported: 0 of 40 after 10 s\033[K");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_estimates_the_rest),
		cmocka_unit_test(progress_in_a_log_is_whole_lines),
		cmocka_unit_test(base64_known_values),
		cmocka_unit_test(escapes_are_those_of_rfc_3986),
		cmocka_unit_test(unnamed_files_are_not_found),
		cmocka_unit_test(files_are_complete_or_absent),
		cmocka_unit_test(bytes_are_all_written),
		cmocka_unit_test(crc_known_values),
		cmocka_unit_test(crc_every_length_and_split),
		cmocka_unit_test(crc_of_lanes),
		cmocka_unit_test(buf_stops_at_its_maximum),
		cmocka_unit_test(arena_keeps_contents),
		cmocka_unit_test(err_maps_errno),
		cmocka_unit_test(err_keeps_the_reason),
		cmocka_unit_test(err_names_its_field),
		cmocka_unit_test(median_is_in_the_middle),
		cmocka_unit_test(sha_known_values),
		cmocka_unit_test(sha_instructions_equal_the_definition),
		cmocka_unit_test(sha_of_both_equals_each),
		cmocka_unit_test(no_memory_is_one_sentence),
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(fnv_known_values),
		cmocka_unit_test(hex_digits_are_those_of_printf),
		cmocka_unit_test(random_digits_differ),
		cmocka_unit_test(doubles_are_short_and_exact),
		cmocka_unit_test(iso_times_are_those_of_strftime),
		cmocka_unit_test(urls_lose_their_passwords),
		cmocka_unit_test(varints_are_protobufs),
		cmocka_unit_test(files_are_read_whole),
		cmocka_unit_test(pipes_are_read_to_their_end),
		cmocka_unit_test(folders_are_made_like_mkdir_p),
		cmocka_unit_test(threads_leave_signals_to_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
