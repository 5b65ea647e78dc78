/* SPDX-License-Identifier: Apache-2.0 */
/* dataset_test.c: IDX sets, intact and with all kinds of damage; random and in-memory sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/data/idx_make.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/synthetic.h"

static char dir[64];

static struct dataset *open_good(int classes)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	if (formats_open(&d, &(struct dataset_opts){ .path = dir, .classes = classes }, &err))
		fail_msg("%s", err.text);
	return d;
}

static void open_bad(const char *what, const char *words)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	int rc = formats_open(&d, &(struct dataset_opts){ .path = dir }, &err);

	assert_null(d);
	if (rc != ERR_USAGE || !strstr(err.text, words) || strchr(err.text, '\n') || !strstr(err.text, dir))
		fail_msg("%s: code %d, message: %s\n  expected: %s", what, rc, err.text, words);
}

static void check_contents(const struct dataset *d, const struct idx_spec *s)
{
	int each = s->height * s->width * s->channels;
	uint8_t *pixels = malloc((size_t)each);

	assert_int_equal(d->height, s->height);
	assert_int_equal(d->width, s->width);
	assert_int_equal(d->channels, s->channels);
	for (int split = 0; split < 2; split++) {
		assert_int_equal(d->n_samples[split], s->n[split]);
		for (int i = 0; i < s->n[split]; i++) {
			int32_t label = -1;
			struct dataset_read r = { .split = (enum split)split, .index = i, .pixels = pixels,
						  .label = &label };

			assert_int_equal(dataset_read(d, &r, NULL), 0);
			assert_int_equal(label, idx_label(split, i));
			for (int p = 0; p < each; p++)
				assert_int_equal(pixels[p], idx_pixel(split, i, p));
		}
	}
	free(pixels);
}

/* Compares mean and deviation with the plain two-pass formula. */
static void check_stats(const struct dataset *d, const struct idx_spec *s)
{
	int area = s->height * s->width;

	for (int c = 0; c < s->channels; c++) {
		double sum = 0, squares = 0, n = (double)s->n[0] * area;

		for (int i = 0; i < s->n[0]; i++)
			for (int p = 0; p < area; p++)
				sum += idx_pixel(0, i, p * s->channels + c) / 255.0;
		for (int i = 0; i < s->n[0]; i++)
			for (int p = 0; p < area; p++)
				squares += pow(idx_pixel(0, i, p * s->channels + c) / 255.0 - sum / n, 2);
		assert_true(fabs(d->mean[c] - sum / n) < 1e-12);
		assert_true(fabs(d->std[c] - sqrt(squares / n)) < 1e-12);
	}
}

static void reads_every_form(void **state)
{
	char hash[64] = "";

	(void)state;
	for (int channels = 1; channels <= 3; channels += 2)
		for (int gzip = 0; gzip <= 2; gzip++) {
			struct idx_spec s = { dir, { 37, 11 }, 5, 4, channels, gzip };
			struct dataset *d;

			idx_make(&s);
			d = open_good(0);
			assert_int_equal(d->classes, 10);
			check_contents(d, &s);
			check_stats(d, &s);
			if (gzip && channels == 1)
				assert_string_equal(d->hash, hash);
			snprintf(hash, sizeof(hash), "%s", d->hash);
			dataset_close(d);
			idx_clean(dir);
		}
}

static void plain_wins_over_gzip_and_test_files_are_optional(void **state)
{
	struct idx_spec s = { dir, { 5, 0 }, 3, 3, 1, 0 };
	struct dataset *d;

	(void)state;
	idx_make(&s);
	idx_write_file(dir, idx_name(0, 0, 1), "junk", 4, 0);
	d = open_good(0);
	check_contents(d, &s);
	dataset_close(d);
	idx_clean(dir);
}

static void two_gzip_members_are_one_file(void **state)
{
	struct idx_spec s = { dir, { 9, 0 }, 4, 4, 1, 0 };
	struct dataset *d;
	size_t n;
	uint8_t *b = idx_bytes(&s, 0, 0, &n);
	char command[400];

	(void)state;
	idx_make(&s);
	idx_write_file(dir, "a.gz", b, 30, 1);
	idx_write_file(dir, "b.gz", b + 30, n - 30, 1);
	snprintf(command, sizeof(command), "cd %s && cat a.gz b.gz > %s && rm a.gz b.gz %s", dir, idx_name(0, 0, 1),
		 idx_name(0, 0, 0));
	assert_int_equal(system(command), 0);
	d = open_good(0);
	check_contents(d, &s);
	dataset_close(d);
	free(b);
	idx_clean(dir);
}

static uint8_t *slurp(const char *name, size_t *ret_n)
{
	char path[512];
	uint8_t *b = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	*ret_n = fread(b, 1, 1 << 20, f);
	fclose(f);
	return b;
}

/* Each of the four files truncated at every length, plain and gzip'd. */
static void every_cut_is_refused(void **state)
{
	(void)state;
	for (int gzip = 0; gzip < 2; gzip++) {
		struct idx_spec s = { dir, { 6, 3 }, 3, 5, 1, gzip };

		idx_make(&s);
		for (int file = 0; file < 4; file++) {
			const char *name = idx_name(file & 1, file >> 1, gzip);
			size_t n;
			uint8_t *b = slurp(name, &n);

			for (size_t cut = 0; cut < n; cut++) {
				idx_write_file(dir, name, b, cut, 0);
				open_bad(name, name);
			}
			idx_write_file(dir, name, b, n, 0);
			free(b);
		}
		dataset_close(open_good(0));
		idx_clean(dir);
	}
}

static struct dataset *open_planned(struct err *err)
{
	struct dataset *d = NULL;

	formats_open(&d, &(struct dataset_opts){ .path = dir, .planned = true }, err);
	return d;
}

/* A plan reads labels, but of pictures in gzip files only the header: a cut after it stops a run alone. */
static void plans_read_no_pictures(void **state)
{
	struct idx_spec s = { dir, { 37, 11 }, 5, 4, 1, 1 };
	const char *images = idx_name(0, 0, 1), *labels = idx_name(0, 1, 1);
	struct err err = ERR_INIT;
	struct dataset *d;
	size_t n, n_labels;
	uint8_t *b, *l;

	(void)state;
	idx_make(&s);
	b = slurp(images, &n);
	l = slurp(labels, &n_labels);
	idx_write_file(dir, images, b, n - 20, 0);
	open_bad(images, "truncated: its gzip data stops after");
	d = open_planned(&err);
	if (!d)
		fail_msg("%s", err.text);
	assert_int_equal(d->n_samples[SPLIT_TRAIN], 37);
	assert_int_equal(d->n_samples[SPLIT_VAL], 11);
	assert_true(d->height == 5 && d->width == 4 && d->channels == 1 && d->classes == 10);
	dataset_close(d);
	idx_write_file(dir, labels, l, n_labels - 20, 0);
	assert_null(open_planned(&err));
	assert_non_null(strstr(err.text, labels));
	free(b);
	free(l);
	idx_clean(dir);
}

/* A flipped bit anywhere in gzip'd data, its checksum or its length is detected, except for the few padding bits of its
 * last byte. */
static void every_flipped_gzip_bit_is_noticed(void **state)
{
	int harmless = 0;
	struct idx_spec s = { dir, { 6, 3 }, 3, 5, 1, 1 };
	const char *name = idx_name(0, 0, 1);
	size_t n;
	uint8_t *b;

	(void)state;
	idx_make(&s);
	b = slurp(name, &n);
	for (size_t i = 10; i < n; i++) /* after the header, whose date and system are not checked */
		for (int bit = 0; bit < 8; bit++) {
			struct dataset *d = NULL;

			b[i] ^= (uint8_t)(1 << bit);
			idx_write_file(dir, name, b, n, 0);
			if (formats_open(&d, &(struct dataset_opts){ .path = dir }, NULL)) {
				open_bad(name, name);
			} else {
				check_contents(d, &s);
				harmless++;
			}
			dataset_close(d);
			b[i] ^= (uint8_t)(1 << bit);
		}
	assert_in_range(harmless, 0, 7);
	free(b);
	idx_clean(dir);
}

struct bad_header {
	int labels; /* the training file */
	size_t at;
	uint8_t value;
	const char *words;
};

static void false_headers(void **state)
{
	static const struct bad_header bad_headers[] = {
		{ 0, 0, 1, "is not an IDX file" },
		{ 0, 1, 80, "is not an IDX file" },
		{ 0, 2, 0x0d, "elements of type 0x0d" },
		{ 0, 3, 0, "0 dimensions" },
		{ 0, 3, 5, "5 dimensions" },
		{ 0, 3, 2, "its header states" },
		{ 0, 4, 0x7f, "its header states" },
		{ 0, 7, 0, "its header states 0 bytes" },
		{ 0, 7, 7, "its header states" },
		{ 1, 4, 0xff, "its header states" },
		{ 1, 7, 5, "its header states 5 bytes" },
		{ 1, 3, 3, "is truncated in its header" },
	};

	(void)state;
	for (int gzip = 0; gzip < 2; gzip++)
		for (size_t i = 0; i < sizeof(bad_headers) / sizeof(bad_headers[0]); i++) {
			struct idx_spec s = { dir, { 6, 3 }, 3, 5, 1, gzip };
			const char *name = idx_name(0, bad_headers[i].labels, gzip);
			size_t n;
			uint8_t *b = idx_bytes(&s, 0, bad_headers[i].labels, &n);

			idx_make(&s);
			b[bad_headers[i].at] = bad_headers[i].value;
			idx_write_file(dir, name, b, n, gzip);
			open_bad(name, gzip && strstr(bad_headers[i].words, "states") ? name : bad_headers[i].words);
			free(b);
			idx_clean(dir);
		}
}

/* Dimensions whose product exceeds memory, in a small gzip file: refused without an allocation. */
static void huge_claims_are_not_allocated(void **state)
{
	static const uint8_t huge[] = { 0, 0, 8, 3, 0, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff };
	static const uint8_t beyond[] = { 0, 0, 8, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 0xff, 0xff };
	struct idx_spec s = { dir, { 6, 3 }, 3, 5, 1, 0 };

	(void)state;
	idx_make(&s);
	idx_write_file(dir, idx_name(0, 0, 0), beyond, sizeof(beyond), 0);
	open_bad("beyond", "exceed the address space");
	idx_write_file(dir, idx_name(0, 0, 0), huge, sizeof(huge), 0);
	open_bad("huge", "truncated: its header states");
	idx_write_file(dir, idx_name(0, 0, 0), huge, sizeof(huge), 1);
	open_bad("huge", "more than 3");
	idx_clean(dir);
}

static void mismatches(void **state)
{
	struct idx_spec s = { dir, { 6, 3 }, 3, 5, 1, 0 }, other = { dir, { 7, 4 }, 3, 5, 1, 0 },
			wide = { dir, { 6, 3 }, 3, 6, 1, 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	char path[200];
	size_t n;
	uint8_t *b;

	(void)state;
	open_bad("no folder", "No such file or directory");
	mkdir(dir, 0777);
	open_bad("empty folder", "no data set recognised");
	idx_make(&s);
	b = idx_bytes(&other, 0, 1, &n);
	idx_write_file(dir, idx_name(0, 1, 0), b, n, 0);
	free(b);
	open_bad("7 labels", "7 labels, but train-images-idx3-ubyte has 6 images");
	idx_make(&s);
	b = idx_bytes(&wide, 1, 0, &n);
	idx_write_file(dir, idx_name(1, 0, 0), b, n, 0);
	free(b);
	open_bad("wide", "images of 3 x 6 x 1: the training images are 3 x 5 x 1");
	idx_make(&s);
	b = idx_bytes(&s, 0, 0, &n);
	idx_write_file(dir, idx_name(0, 1, 0), b, n, 0);
	free(b);
	open_bad("images as labels", "has 3 dimensions: expected 1");
	idx_make(&s);
	assert_int_equal(formats_open(&d, &(struct dataset_opts){ .path = dir, .classes = 8 }, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "train-labels-idx1-ubyte: label 8 of sample 4: must be below 8 classes"));
	d = open_good(12);
	assert_int_equal(d->classes, 12);
	dataset_close(d);
	snprintf(path, sizeof(path), "%s/%s", dir, idx_name(1, 1, 0));
	unlink(path);
	open_bad("no test labels", "no file of test labels");
	snprintf(path, sizeof(path), "%s/%s", dir, idx_name(0, 0, 0));
	unlink(path);
	open_bad("no images", "no file of training images");
	mkdir(path, 0777);
	open_bad("folder", "is not a regular file");
	rmdir(path);
	idx_make(&s);
	idx_write_file(dir, "emnist-letters-train-images-idx3-ubyte", "x", 1, 0);
	open_bad("two sets", "put each data set into its own folder");
	snprintf(path, sizeof(path), "%s/emnist-letters-train-images-idx3-ubyte", dir);
	unlink(path);
	idx_clean(dir);
}

static void synthetic_is_reproducible(void **state)
{
	struct dataset_synthetic_opts o = { 6, 7, 3, 10, 42 };
	struct dataset *a = NULL, *b = NULL;
	int seen[10] = { 0 };

	(void)state;
	assert_int_equal(dataset_synthetic_open(&a, &o, NULL), 0);
	assert_int_equal(dataset_synthetic_open(&b, &o, NULL), 0);
	assert_string_equal(a->hash, b->hash);
	assert_true(a->endless && a->n_samples[SPLIT_VAL] == 0);
	for (int64_t i = 0; i < a->n_samples[SPLIT_TRAIN]; i++) {
		int32_t label;

		assert_int_equal(dataset_read(a,
					      &(struct dataset_read){ .split = SPLIT_TRAIN, .index = i, .pixels = NULL,
								      .label = &label }, NULL), 0);
		seen[label]++;
	}
	for (int i = 0; i < 10; i++) /* 4096 samples: 410 per class, plus or minus six deviations of 19 */
		assert_in_range(seen[i], 290, 530);
	assert_true(fabs(a->mean[0] - 0.5) < 0.01 && fabs(a->std[0] - 0.29) < 0.01);
	dataset_close(b);
	o.seed = 43;
	assert_int_equal(dataset_synthetic_open(&b, &o, NULL), 0);
	assert_string_not_equal(a->hash, b->hash);
	dataset_close(a);
	dataset_close(b);
	o.channels = 5;
	assert_int_equal(dataset_synthetic_open(&a, &o, NULL), ERR_USAGE);
}

static void memory_sets(void **state)
{
	float images[2 * 3 * 2];
	int32_t labels[2] = { 4, 1 };
	struct dataset_memory_opts o = { "f", images, labels, DTYPE_F32, 2, 3, 2, 1, 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	float got[6];
	int32_t label;

	(void)state;
	for (int i = 0; i < 12; i++)
		images[i] = (float)i * 0.5f - 1;
	assert_int_equal(dataset_memory_open(&d, &o, &err), 0);
	assert_int_equal(d->classes, 5);
	assert_int_equal(d->n_samples[SPLIT_VAL], 2);
	assert_int_equal(dataset_read(d,
				      &(struct dataset_read){ .split = SPLIT_VAL, .index = 1, .pixels = got,
							      .label = &label }, &err), 0);
	assert_memory_equal(got, images + 6, sizeof(got));
	assert_int_equal(label, 1);
	assert_int_equal(dataset_read(d,
				      &(struct dataset_read){ .split = SPLIT_VAL, .index = 2, .pixels = got,
							      .label = &label }, &err), ERR_USAGE);
	dataset_close(d);
	o.classes = 4;
	assert_int_equal(dataset_memory_open(&d, &o, &err), ERR_USAGE);
	assert_string_equal(err.text, "f: label 4 of sample 0: expected 0 or more, below 4 classes");
	labels[0] = -1;
	assert_int_equal(dataset_memory_open(&d, &o, &err), ERR_USAGE);
}

/* The real set, if it is installed: its published size, mean and deviation. */
static void fashion_mnist(void **state)
{
	static const char path[] = "/usr/share/datasets/fashion-mnist";
	struct dataset *d = NULL;
	int32_t label;

	(void)state;
	if (access(path, R_OK)) {
		print_message("dataset-fashion-mnist is not installed\n");
		skip();
	}
	assert_int_equal(formats_open(&d, &(struct dataset_opts){ .path = path }, NULL), 0);
	assert_int_equal(d->n_samples[SPLIT_TRAIN], 60000);
	assert_int_equal(d->n_samples[SPLIT_VAL], 10000);
	assert_int_equal(d->classes, 10);
	assert_true(fabs(d->mean[0] - 0.2860) < 5e-5 && fabs(d->std[0] - 0.3530) < 5e-5);
	assert_int_equal(dataset_read(d,
				      &(struct dataset_read){ .split = SPLIT_TRAIN, .index = 0, .pixels = NULL,
							      .label = &label }, NULL), 0);
	assert_int_equal(label, 9); /* an ankle boot */
	dataset_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_form),
		cmocka_unit_test(plain_wins_over_gzip_and_test_files_are_optional),
		cmocka_unit_test(two_gzip_members_are_one_file),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(plans_read_no_pictures),
		cmocka_unit_test(every_flipped_gzip_bit_is_noticed),
		cmocka_unit_test(false_headers),
		cmocka_unit_test(huge_claims_are_not_allocated),
		cmocka_unit_test(mismatches),
		cmocka_unit_test(synthetic_is_reproducible),
		cmocka_unit_test(memory_sets),
		cmocka_unit_test(fashion_mnist),
	};

	snprintf(dir, sizeof(dir), "dataset_test.%ld", (long)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
