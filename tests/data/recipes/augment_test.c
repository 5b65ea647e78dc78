/* SPDX-License-Identifier: Apache-2.0 */
/* augment_test.c: augmentation against what torchvision made of the same images and random numbers
 * (augment.json, written by make_augment.py), and the distributions of our own draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/loader/loader.h"
#include "trainer/data/pictures/augment.h"

#define PIXELS_MAX 1024
#define DRAWS 20000

static json_t *reference;

static int load_reference(void **state)
{
	const char *source = getenv("srcdir");
	char path[1024];
	json_error_t e;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/data/recipes/augment.json", source ? source : ".");
	reference = json_load_file(path, 0, &e);
	return reference ? 0 : -1;
}

static int free_reference(void **state)
{
	(void)state;
	json_decref(reference);
	return 0;
}

static int int_of(const json_t *o, const char *name)
{
	return (int)json_integer_value(json_object_get(o, name));
}

static double real_of(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

static size_t read_hex(const json_t *text, uint8_t *ret)
{
	const char *s = json_string_value(text);
	size_t n = strlen(s) / 2;

	assert_true(n <= PIXELS_MAX);
	for (size_t i = 0; i < n; i++) {
		unsigned v;

		assert_int_equal(sscanf(s + 2 * i, "%2x", &v), 1);
		ret[i] = (uint8_t)v;
	}
	return n;
}

static size_t read_list(const json_t *o, const char *name, double *ret)
{
	const json_t *list = json_object_get(o, name);
	size_t n = json_array_size(list);

	assert_true(n > 0 && n <= PIXELS_MAX);
	for (size_t i = 0; i < n; i++)
		ret[i] = json_number_value(json_array_get(list, i));
	return n;
}

static enum augment_policy policy_of(const json_t *row)
{
	return strcmp(json_string_value(json_object_get(row, "policy")), "ra") ? AUGMENT_TA_WIDE : AUGMENT_RA;
}

/* Each op on bytes: at most one level away; the magnitude of each bin is torchvision's. */
static void test_ops(void **state)
{
	const json_t *augment = json_object_get(reference, "augment"), *row;
	bool seen[AUGMENT_OPS] = { false };
	size_t k;

	(void)state;
	json_array_foreach(json_object_get(augment, "rows"), k, row) {
		uint8_t pixels[PIXELS_MAX], scratch[PIXELS_MAX], want[PIXELS_MAX];
		const int channels = int_of(row, "channels");
		const struct augment_image im = { pixels, scratch, int_of(augment, "height"), int_of(augment, "width"),
						  channels };
		const struct augment_step step = { (enum augment_op)int_of(row, "op"), real_of(row, "magnitude") };
		const json_t *images = json_object_get(augment, "images");
		const size_t n = read_hex(json_object_get(images, channels == 3 ? "3" : "1"), pixels);

		assert_int_equal(read_hex(json_object_get(row, "pixels"), want), n);
		assert_true(fabs(augment_magnitude(policy_of(row), step.op, int_of(row, "bin"), &im) -
				 fabs(step.magnitude)) < 1e-5);
		augment_apply(&step, &im);
		for (size_t i = 0; i < n; i++)
			if (abs(pixels[i] - want[i]) > 1)
				fail_msg("%s %g, %d channels: byte %zu is %d, torchvision has %d",
					 json_string_value(json_object_get(row, "name")), step.magnitude, channels, i,
					 pixels[i], want[i]);
		seen[step.op] = true;
	}
	for (int i = 0; i < AUGMENT_OPS; i++)
		assert_true(seen[i]);
}

static void test_erasing(void **state)
{
	const json_t *o = json_object_get(reference, "erase");
	const struct augment_image im = { .height = int_of(o, "height"), .width = int_of(o, "width"),
					  .channels = int_of(o, "channels") };
	const struct augment_box box = { int_of(o, "x"), int_of(o, "y"), int_of(o, "box_width"),
					 int_of(o, "box_height") };
	double image[PIXELS_MAX], want[PIXELS_MAX];
	float narrow[PIXELS_MAX];
	const size_t n = read_list(o, "image", image);

	(void)state;
	assert_int_equal(read_list(o, "erased", want), n);
	for (size_t i = 0; i < n; i++)
		narrow[i] = (float)image[i];
	augment_erase(&box, &im, DTYPE_F64, image);
	augment_erase(&box, &im, DTYPE_F32, narrow);
	for (size_t i = 0; i < n; i++) {
		assert_true(image[i] == want[i]);
		assert_true(narrow[i] == (float)want[i]);
	}
}

/* The targets that a draw gives a sample, of all classes. */
static void check_targets(const double *want, const struct mixup_draw *d, int own, int before)
{
	for (int k = 0; k < 5; k++) {
		const double share = (k == own ? d->weight : 0) + (k == before ? 1 - d->weight : 0);

		assert_true(fabs(want[k] - share) <= 1e-6);
	}
}

static void test_mixing(void **state)
{
	const json_t *mix = json_object_get(reference, "mix"), *labels = json_object_get(mix, "labels"), *row;
	const struct mixup_size size = { int_of(mix, "height"), int_of(mix, "width"), int_of(mix, "channels"),
					 DTYPE_F64 };
	const int samples = int_of(mix, "samples"), each = size.height * size.width * size.channels;
	size_t k;

	(void)state;
	json_array_foreach(json_object_get(mix, "rows"), k, row) {
		double batch[PIXELS_MAX], want[PIXELS_MAX], targets[PIXELS_MAX], own[PIXELS_MAX];
		struct mixup_draw d = { .weight = real_of(row, "weight") };

		if (!strcmp(json_string_value(json_object_get(row, "kind")), "cutmix"))
			d = mixup_box(d.weight, int_of(row, "x"), int_of(row, "y"), &size);
		read_list(mix, "batch", batch);
		read_list(row, "images", want);
		read_list(row, "targets", targets);
		for (int i = 0; i < samples; i++) {
			const int before = (i + samples - 1) % samples;

			memcpy(own, batch + i * each, (size_t)each * sizeof(*own));
			mixup_images(&d, &size, own, batch + before * each);
			for (int j = 0; j < each; j++)
				assert_true(fabs(own[j] - want[i * each + j]) <= 1e-6);
			check_targets(targets + 5 * i, &d, (int)json_integer_value(json_array_get(labels, (size_t)i)),
				      (int)json_integer_value(json_array_get(labels, (size_t)before)));
		}
	}
	assert_true(k >= 7);
}

/* Mean 1/2, variance 1 / (4 (2 a + 1)): within five standard errors. */
static void test_beta(void **state)
{
	static const double alphas[] = { 0.01, 0.2, 0.8, 1, 4 };

	(void)state;
	for (size_t k = 0; k < sizeof(alphas) / sizeof(*alphas); k++) {
		const double variance = 1 / (4 * (2 * alphas[k] + 1));
		double sum = 0, squares = 0;

		for (int i = 0; i < DRAWS; i++) {
			const double b = mixup_beta((struct rng_key){ 7, (uint64_t)i }, alphas[k]);

			assert_true(b >= 0 && b <= 1);
			sum += b - 0.5;
			squares += (b - 0.5) * (b - 0.5);
		}
		assert_true(fabs(sum / DRAWS) < 5 * sqrt(variance / DRAWS));
		assert_true(fabs(squares / DRAWS - variance) < 5 * 0.25 / sqrt(DRAWS));
	}
}

/* With both kinds a step draws either; a draw depends on seed, epoch and step. */
static void test_draws_of_steps(void **state)
{
	const struct mixup_opts both = { 0.2, 1 }, cut = { 0, 1 };
	const struct mixup_size size = { 8, 9, 3, DTYPE_F32 };
	struct mixup_draw a, b;
	int cuts = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		a = mixup_draw(&both, 1, i / 10, i % 10, &size);
		cuts += a.cuts;
		assert_true(a.weight >= 0 && a.weight <= 1);
		assert_true(a.x >= 0 && a.y >= 0 && a.x + a.width <= 9 && a.y + a.height <= 8);
		assert_true(mixup_draw(&cut, 1, i / 10, i % 10, &size).cuts);
	}
	assert_true(cuts > 400 && cuts < 600);
	a = mixup_draw(&both, 1, 2, 3, &size);
	b = mixup_draw(&both, 1, 2, 3, &size);
	assert_true(a.weight == b.weight);
	b = mixup_draw(&both, 1, 3, 2, &size);
	assert_true(a.weight != b.weight);
}

/* Every op occurs about as often; signed ones with both signs. */
static void test_draws_of_ops(void **state)
{
	const struct augment_image im = { .height = 20, .width = 30, .channels = 3 };
	struct augment_step step[AUGMENT_STEPS_MAX];
	int counts[AUGMENT_OPS] = { 0 }, negative[AUGMENT_OPS] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		assert_int_equal(augment_draw_steps(AUGMENT_RA, augment_key(5, 1, i), &im, step), 2);
		for (int k = 0; k < 2; k++) {
			counts[step[k].op]++;
			negative[step[k].op] += step[k].magnitude < 0;
			assert_true(fabs(fabs(step[k].magnitude) -
					 augment_magnitude(AUGMENT_RA, step[k].op, AUGMENT_RA_BIN, &im)) < 1e-12);
		}
		assert_int_equal(augment_draw_steps(AUGMENT_TA_WIDE, augment_key(5, 1, i), &im, step), 1);
		assert_int_equal(augment_draw_steps(AUGMENT_NONE, augment_key(5, 1, i), &im, step), 0);
	}
	for (int op = 0; op < AUGMENT_OPS; op++) {
		const bool is_signed = op >= AUGMENT_SHEAR_X && op <= AUGMENT_SHARPNESS;

		assert_true(abs(counts[op] - 2 * DRAWS / AUGMENT_OPS) < 300);
		assert_true(is_signed ? abs(negative[op] - counts[op] / 2) < 200 : !negative[op]);
	}
}

static void test_draws_of_boxes(void **state)
{
	const struct augment_image im = { .height = 100, .width = 80, .channels = 3 };
	int boxes = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct augment_box b;

		if (!augment_draw_box(0.25, augment_key(9, 2, i), &im, &b))
			continue;
		boxes++;
		assert_true(b.x >= 0 && b.y >= 0 && b.x + b.width <= 80 && b.y + b.height <= 100);
		assert_true(b.width * b.height >= 0.015 * 8000 && b.width * b.height <= 0.34 * 8000);
	}
	assert_true(abs(boxes - DRAWS / 4) < 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),	       cmocka_unit_test(test_erasing),
		cmocka_unit_test(test_mixing),	       cmocka_unit_test(test_beta),
		cmocka_unit_test(test_draws_of_steps), cmocka_unit_test(test_draws_of_ops),
		cmocka_unit_test(test_draws_of_boxes),
	};

	return cmocka_run_group_tests_name("augment", tests, load_reference, free_reference);
}
