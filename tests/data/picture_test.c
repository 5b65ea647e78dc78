/* SPDX-License-Identifier: Apache-2.0 */
/* picture_test.c: image files of every kind, views of them compared with Pillow's (tests/data/pictures.py), damaged
 * files, and that only the needed pixels are decoded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "trainer/data/pictures/picture.h"

#define SIDE_MAX 1024

static const char *folder(void)
{
	static char path[4096];
	const char *src = getenv("srcdir");

	snprintf(path, sizeof(path), "%s/tests/data/pictures", src ? src : ".");
	return path;
}

static void load(struct picture *p, const char *name, struct picture_size *size)
{
	char path[5000];
	struct err err = ERR_INIT;

	snprintf(path, sizeof(path), "%s/%s", folder(), name);
	if (picture_load(p, path, size, &err))
		fail_msg("%s", err.text);
}

struct distance {
	int worst;
	double beyond; /* share of values that differ by more than 1 */
};

static struct distance compare(const uint8_t *a, const uint8_t *b, size_t n)
{
	struct distance d = { 0, 0 };

	for (size_t i = 0; i < n; i++) {
		int by = abs(a[i] - b[i]);

		d.worst = by > d.worst ? by : d.worst;
		d.beyond += by > 1;
	}
	d.beyond /= (double)n;
	return d;
}

static void equal_to_pillow(void **state)
{
	static uint8_t got[SIDE_MAX * SIDE_MAX * 3], want[SIDE_MAX * SIDE_MAX * 3];
	char path[5000], name[100];
	struct picture *p;
	struct picture_view v;
	struct picture_size size;
	struct err err = ERR_INIT;
	int cut, flip, views = 0;
	FILE *index;
	gzFile pixels;

	(void)state;
	snprintf(path, sizeof(path), "%s/views.txt", folder());
	index = fopen(path, "r");
	snprintf(path, sizeof(path), "%s/expected.gz", folder());
	pixels = gzopen(path, "rb");
	assert_true(index && pixels);
	p = picture_new();
	while (fscanf(index, "%99s %lf %lf %lf %lf %d %d %d %d", name, &v.x, &v.y, &v.width, &v.height, &v.out_width,
		      &v.out_height, &cut, &flip) == 9) {
		size_t n = (size_t)v.out_width * (size_t)v.out_height * 3;
		bool lossless = !strstr(name, ".jpg") && strcmp(name, "lossy.webp") != 0;
		struct distance d;

		v.cut = cut;
		v.flip = flip;
		assert_int_equal(gzread(pixels, want, (unsigned)n), n);
		if (!picture_is_one(name)) /* this build lacks the library */
			continue;
		load(p, name, &size);
		if (picture_render(p, &v, got, &err))
			fail_msg("%s: %s", name, err.text);
		d = compare(got, want, n);
		if (d.worst > (lossless ? 1 : 4) || d.beyond > (lossless ? 0 : 0.001))
			fail_msg("%s, box %g %g %g %g to %d x %d: off by %d, %.3f %% by more than 1", name, v.x, v.y,
				 v.width, v.height, v.out_width, v.out_height, d.worst, d.beyond * 100);
		views++;
	}
	assert_true(views > 50);
	fclose(index);
	gzclose(pixels);
	picture_free(p);
}

/* A large photo is decoded at a quarter of its size; the result stays close to full decoding. */
static void large_photos_shrink(void **state)
{
	static uint8_t small[90 * 60 * 3], full[1200 * 900 * 3];
	struct picture *p;
	struct picture_size size;
	struct picture_view whole = { 0, 0, 1200, 900, 1200, 900, true, false };
	struct picture_view v = { 100, 60, 900, 600, 90, 60, true, false };
	struct err err = ERR_INIT;
	double off = 0;

	(void)state;
	p = picture_new();
	load(p, "large.jpg", &size);
	assert_int_equal(size.width, 1200);
	assert_int_equal(size.height, 900);
	assert_int_equal(picture_render(p, &whole, full, &err), 0);
	assert_int_equal(picture_render(p, &v, small, &err), 0);
	for (int y = 0; y < 60; y++)
		for (int x = 0; x < 90; x++)
			for (int c = 0; c < 3; c++) {
				int sum = 0;

				for (int i = 0; i < 100; i++)
					sum += full[((60 + y * 10 + i / 10) * 1200 + 100 + x * 10 + i % 10) * 3 + c];
				off += abs(sum / 100 - small[(y * 90 + x) * 3 + c]);
			}
	assert_true(off / (90 * 60 * 3) < 4);
	picture_free(p);
}

static size_t slurp(const char *name, uint8_t *to, size_t room)
{
	char path[5000];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder(), name);
	f = fopen(path, "rb");
	assert_non_null(f);
	n = fread(to, 1, room, f);
	fclose(f);
	return n;
}

/* A file truncated at any byte gives an error with its name, whatever part is requested, and the decoder stays usable.
 * */
static void cut_short(void **state)
{
	static const char *const names[] = { "photo.jpg", "progressive.jpg", "noise.png", "palette.png" };
	static uint8_t data[1 << 18], pixels[16 * 16 * 3];
	struct picture_view v = { 1, 1, 20, 20, 16, 16, true, false };
	struct picture *p;
	struct err err = ERR_INIT;

	(void)state;
	p = picture_new();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = slurp(names[i], data, sizeof(data));
		struct picture_size size;

		/* the end mark that a PNG lacks contains no pixels */
		for (size_t cut = 0; cut < (strstr(names[i], ".png") ? n - 16 : n); cut += cut < 800 ? 1 : 97) {
			int rc = picture_load_memory(p, &(struct picture_input){ names[i], data, cut }, &size, &err);

			if (!rc)
				rc = picture_render(p, &v, pixels, &err);
			if (rc != ERR_CORRUPT || !strstr(err.text, names[i]))
				fail_msg("%s cut at %zu: %d %s", names[i], cut, rc, err.text);
		}
		assert_int_equal(picture_load_memory(p, &(struct picture_input){ names[i], data, n }, &size, &err), 0);
		assert_int_equal(picture_render(p, &v, pixels, &err), 0);
	}
	picture_free(p);
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* 30,000 x 30,000 pixels are refused by the header, before anything is allocated for them. */
static void too_large(void **state)
{
	uint8_t png[8 + 25 + 12] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	struct picture *p;
	struct picture_size size;
	struct err err = ERR_INIT;

	(void)state;
	put32(png + 8, 13);
	memcpy(png + 12, "IHDR", 4);
	put32(png + 16, 30000);
	put32(png + 20, 30000);
	png[24] = 8;
	png[25] = 2;
	put32(png + 29, (uint32_t)crc32(0, png + 12, 17));
	memcpy(png + 37, "IDAT", 4);
	put32(png + 41, (uint32_t)crc32(0, png + 37, 4));
	p = picture_new();
	assert_int_equal(picture_load_memory(p, &(struct picture_input){ "big.png", png, sizeof(png) }, &size, &err),
			 ERR_CORRUPT);
	assert_non_null(strstr(err.text, "30000 x 30000"));
	picture_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(equal_to_pillow), cmocka_unit_test(large_photos_shrink),
					    cmocka_unit_test(cut_short), cmocka_unit_test(too_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
