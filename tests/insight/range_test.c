/* SPDX-License-Identifier: Apache-2.0 */
/* range_test.c: learning-rate tests of a loss with a known best rate, and of losses that no rate lowers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/tuning.h"

enum { STEPS = 100 };

static double noise(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

/* Gradient descent on w^2 curvature / 2 from w = 1, with rates up to `most` over seven decades; `scatter` is the
 * noise. */
static void descend(struct lr_range_test *r, double curvature, double most, double scatter)
{
	uint64_t state = 5;
	double w = 1;

	*r = (struct lr_range_test){ .n = 0 };
	for (int i = 0; i < STEPS; i++) {
		const double lr = most * pow(1e7, (i + 1.0) / STEPS - 1);
		const double loss = 1 + curvature * w * w / 2;

		if (lr_range_add(r, lr, loss * (1 + scatter * noise(&state))))
			break;
		w -= lr * curvature * w;
	}
}

/* Descent explodes above 2 / curvature: the advised rate is below that, and large enough to make progress. */
static void test_quadratic(void **unused)
{
	struct lr_range_test *r = malloc(sizeof(*r));
	struct lr_range_answer a;

	(void)unused;
	for (int k = -2; k <= 2; k++) {
		const double curvature = 20 * pow(10, k), limit = 2 / curvature;

		descend(r, curvature, 1e3 / curvature, 0.02);
		assert_true(lr_range_answer(r, &a));
		assert_true(a.lowest > limit / 200 && a.steepest <= a.lowest && a.least < a.first);
		assert_true(a.exploded > limit && a.exploded < 10 * limit && !a.open);
	}
	free(r);
}

static void test_still_falling(void **unused)
{
	struct lr_range_test *r = malloc(sizeof(*r));
	struct lr_range_answer a;
	struct buf text;

	(void)unused;
	descend(r, 20, 0.02, 0);
	assert_true(lr_range_answer(r, &a));
	assert_true(a.open && !(a.exploded > 0));
	buf_init(&text, 4096);
	lr_range_sentence(&text, r);
	buf_addc(&text, '\0');
	assert_non_null(strstr(text.data, "a higher --lr tests higher rates"));
	buf_done(&text);
	free(r);
}

static void test_no_answer(void **unused)
{
	struct lr_range_test *r = calloc(1, sizeof(*r));
	struct lr_range_answer a;

	(void)unused;
	for (int i = 0; i < STEPS; i++)
		assert_false(lr_range_add(r, i + 1, 2 + 0.001 * i));
	assert_false(lr_range_answer(r, &a));
	*r = (struct lr_range_test){ .n = 0 };
	assert_false(lr_range_add(r, 0.1, 3));
	assert_true(lr_range_add(r, 0.2, NAN));
	assert_true(lr_range_add(r, 0.3, 1)); /* it ends once */
	assert_int_equal(r->n, 1);
	assert_true(r->exploded == 0.2);
	assert_false(lr_range_answer(r, &a));
	free(r);
}

static void test_room(void **unused)
{
	struct lr_range_test *r = calloc(1, sizeof(*r));

	(void)unused;
	for (int i = 0; i < LR_RANGE_STEPS_MAX; i++)
		assert_false(lr_range_add(r, i + 1, 1));
	assert_true(lr_range_add(r, 1e6, 1));
	assert_int_equal(r->n, LR_RANGE_STEPS_MAX);
	free(r);
}

/* Trainings whose loss has one minimum over the logarithm of the rate end within a factor of two of it. */
static void test_trials(void **unused)
{
	(void)unused;
	for (double best = -9; best <= 9; best += 0.7) {
		struct lr_trials t = { .first = 0.5 };
		int power;

		while (lr_trials_next(&t, &power)) {
			t.power[t.n] = power;
			t.loss[t.n++] = power > best + 3 ? INFINITY : 1 + (power - best) * (power - best);
		}
		assert_true(fabs(t.power[lr_trials_best(&t)] - best) <= 0.5 + 1e-9);
		assert_in_range(t.n, 5, 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quadratic),
		cmocka_unit_test(test_still_falling), cmocka_unit_test(test_trials),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
