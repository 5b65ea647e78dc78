/* base_test.c: tracker/base against known values and brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

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
#include <unistd.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/err.h"
#include "tracker/base/file_nameless.h"
#include "tracker/base/file_read.h"
#include "tracker/base/file_whole.h"
#include "tracker/base/file_write.h"
#include "tracker/base/median.h"
#include "tracker/base/sha256.h"
#include "tracker/base/sha256_mix.h"

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

/* As long as several lanes of the instruction or folds, and a little more or less. */
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

	(void)state;
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

static void both_are_the_definition(const uint32_t h[8], const uint32_t other[8], const unsigned char *p, size_t blocks)
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

static void sha_instructions_are_the_definition(void **state)
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
		both_are_the_definition(a, b, bytes + round % 5, (size_t)(round % 9));
	}
}

/* Two sums of the same bytes from different beginnings, cut anywhere, at equal and at different places in a block. */
static void sha_of_both_is_that_of_each(void **state)
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

static int refuses; /* what a file system answers that knows no files without a name; 0: this one does */

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

static void nameless_files_are_found_by_nobody(void **state)
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

/* All of them, or an error that says why the rest is missing. */
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

static void text_is(const char *path, const char *want)
{
	char got[16] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, want);
	close(fd);
}

/* A process begins such a file, writes some of it, and is killed. */
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

static void files_are_whole_or_not_there(void **state)
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
		for (int time = 0; time < 2; time++) { /* the second one takes the first one's place */
			assert_int_equal(file_whole_open(&f, part), 0);
			assert_int_equal(write(f.fd, time ? "new" : "old", 3), 3);
			assert_int_equal(file_whole_keep(&f, path), 0);
			file_whole_drop(&f);
			text_is(path, time ? "new" : "old");
			assert_int_equal(entries_of(folder), 1);
		}
		begin_and_die(part);
		assert_int_equal(entries_of(folder), refuses ? 2 : 1);
		assert_int_equal(file_whole_open(&f, part), 0);
		file_whole_drop(&f);
		assert_int_equal(file_whole_open(&f, part), 0);
		assert_int_equal(file_whole_keep(&f, "nowhere/file"), -1);
		assert_int_equal(errno, ENOENT);
		text_is(path, "new");
		assert_int_equal(entries_of(folder), 1);
		assert_int_equal(unlink(path), 0);
	}
	refuses = 0;
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nameless_files_are_found_by_nobody),
		cmocka_unit_test(files_are_whole_or_not_there),
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
		cmocka_unit_test(sha_instructions_are_the_definition),
		cmocka_unit_test(sha_of_both_is_that_of_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
