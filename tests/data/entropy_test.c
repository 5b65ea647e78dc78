/* SPDX-License-Identifier: Apache-2.0 */
/* entropy_test.c: our Huffman decoder compared with libjpeg-turbo's on the same files: complete, cropped, scaled down,
 * truncated and with flipped bytes: the same pixels and the same warnings about missing data. The same for these files
 * with restart markers, which must also decode to the pixels without. */
#include "config.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <jerror.h>

#include "trainer/data/pictures/entropy.h"
#include "trainer/data/pictures/picture.h"

#define ROOM (1 << 22)

struct reader {
	struct jpeg_error_mgr errors;
	jmp_buf jump;
	struct jpeg_decompress_struct d;
	struct entropy *own;
	bool short_of_data, taken;
	uint8_t *pixels;
	size_t n;
};

enum way { WHOLE, PART, HALF, EIGHTH, WAYS };

static void stop(j_common_ptr common)
{
	longjmp(((struct reader *)(void *)common->err)->jump, 1);
}

static void warn(j_common_ptr common, int level)
{
	struct reader *r = (struct reader *)(void *)common->err;

	r->short_of_data |= level < 0 && common->err->msg_code == JWRN_HIT_MARKER;
}

static void reader_open(struct reader *r)
{
	memset(r, 0, sizeof(*r));
	r->d.err = jpeg_std_error(&r->errors);
	r->errors.error_exit = stop;
	r->errors.emit_message = warn;
	jpeg_create_decompress(&r->d);
	r->pixels = malloc(ROOM);
	r->own = entropy_new();
	assert_true(r->pixels && r->own);
}

static void reader_close(struct reader *r)
{
	jpeg_destroy_decompress(&r->d);
	entropy_free(r->own);
	free(r->pixels);
}

/* Returns false if the library gave up. */
static bool decode(struct reader *r, const uint8_t *data, size_t n, enum way way, bool own)
{
	JDIMENSION x, width, end;
	struct entropy_part part = { 0, 0, 0, 0 };

	r->short_of_data = r->taken = false;
	r->n = 0;
	if (setjmp(r->jump)) {
		jpeg_abort_decompress(&r->d);
		return false;
	}
	jpeg_mem_src(&r->d, data, n);
	jpeg_read_header(&r->d, TRUE);
	r->d.scale_num = way == HALF ? 4 : way == EIGHTH ? 1 : 8;
	r->d.scale_denom = 8;
	jpeg_start_decompress(&r->d);
	end = r->d.output_height;
	if (way == PART && r->d.output_width > 60 && end > 60) {
		x = r->d.output_width / 3;
		width = r->d.output_width / 4;
		jpeg_crop_scanline(&r->d, &x, &width);
		part = (struct entropy_part){ (int)x, (int)(x + width), (int)end / 5, (int)end * 4 / 5 };
	}
	if (own)
		r->taken = entropy_take(r->own, &r->d, part.y1 ? &part : NULL);
	if (part.y1) {
		jpeg_skip_scanlines(&r->d, (JDIMENSION)part.y0);
		end = (JDIMENSION)part.y1;
	}
	assert_true((size_t)end * r->d.output_width * (size_t)r->d.output_components < ROOM);
	while (r->d.output_scanline < end) {
		JSAMPROW row = r->pixels + r->n;

		jpeg_read_scanlines(&r->d, &row, 1);
		r->n += r->d.output_width * (size_t)r->d.output_components;
	}
	jpeg_abort_decompress(&r->d);
	return true;
}

/* Returns whether our decoder accepted the file. */
static bool same(struct reader *a, struct reader *b, const char *name, const uint8_t *data, size_t n, enum way way)
{
	bool read_a = decode(a, data, n, way, false), read_b = decode(b, data, n, way, true);

	if (read_a != read_b || a->n != b->n || memcmp(a->pixels, b->pixels, a->n) ||
	    a->short_of_data != b->short_of_data)
		fail_msg("%s (%zu bytes, way %d): read %d and %d, %zu and %zu bytes, short %d and %d", name, n, way,
			 read_a, read_b, a->n, b->n, a->short_of_data, b->short_of_data);
	return b->taken;
}

/* Returns in how many ways our decoder accepted the file; data are damaged afterwards. */
static int compare(struct reader *a, struct reader *b, const char *path, uint8_t *data, size_t n)
{
	int taken = 0;

	for (int way = 0; way < WAYS; way++)
		taken += same(a, b, path, data, n, (enum way)way);
	for (size_t part = 1; part < 9; part++)
		same(a, b, path, data, n * part / 9, WHOLE);
	for (size_t k = 0; k < 40; k++) { /* whatever the result, nothing is read or written out of bounds */
		data[n - 1 - k * (n / 64)] ^= (uint8_t)(1 << k % 8);
		decode(b, data, n, k % 2 ? WHOLE : PART, true);
	}
	return taken;
}

static bool is_progressive(const uint8_t *data, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (data[i] == 0xff && data[i + 1] == 0xc2)
			return true;
	return false;
}

/* Files of one or three components get restart markers, and decode to the same pixels. */
static int compare_marked(struct reader *a, struct reader *b, const char *path, const uint8_t *data, size_t n)
{
	struct err err = ERR_INIT;
	uint8_t *marked;
	size_t length;
	int rc = restart_write(data, n, &marked, &length, &err), taken;

	assert_true(rc == (strstr(path, "cmyk") ? 0 : 1));
	if (!rc)
		return 0;
	assert_true(is_progressive(data, n) || length <= n + n / 50);
	assert_false(is_progressive(marked, length));
	assert_true(decode(a, data, n, WHOLE, false) && decode(b, marked, length, WHOLE, false));
	assert_true(a->n == b->n && !memcmp(a->pixels, b->pixels, a->n));
	assert_true(b->d.restart_interval > 0);
	taken = compare(a, b, path, marked, length);
	free(marked);
	return taken;
}

static int compare_file(struct reader *a, struct reader *b, const char *path)
{
	uint8_t *data = malloc(ROOM);
	FILE *f = fopen(path, "rb");
	size_t n;
	int taken;

	assert_true(f && data);
	n = fread(data, 1, ROOM, f);
	fclose(f);
	taken = compare_marked(a, b, path, data, n);
	taken += compare(a, b, path, data, n);
	free(data);
	return taken;
}

static void equals_the_library(void **state)
{
	const char *top = getenv("srcdir");
	char folder[4000], path[5000];
	struct reader a, b;
	struct dirent *entry;
	int files = 0, taken = 0;
	DIR *dir;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/tests/data/pictures", top ? top : ".");
	dir = opendir(folder);
	assert_non_null(dir);
	reader_open(&a);
	reader_open(&b);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".jpg"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		files++;
		taken += compare_file(&a, &b, path);
	}
	closedir(dir);
	assert_true(files >= 8);
#ifdef HAVE_JPEGINT_H
	assert_true(taken >= 2 * files * WAYS * 2 / 3);
#else
	assert_int_equal(taken, 0);
#endif
	reader_close(&a);
	reader_close(&b);
}

/* A file that is not a JPEG, or a damaged one, stays unchanged. */
static void others_unchanged(void **state)
{
	static const uint8_t noise[] = { 0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xd9 };
	struct err err = ERR_INIT;
	uint8_t *ret;
	size_t n;

	(void)state;
	assert_int_equal(restart_write(noise, sizeof(noise), &ret, &n, &err), 0);
	assert_int_equal(restart_write(noise, 1, &ret, &n, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(equals_the_library), cmocka_unit_test(others_unchanged) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
