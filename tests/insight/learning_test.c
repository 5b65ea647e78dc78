/* SPDX-License-Identifier: Apache-2.0 */
/* learning_test.c: losses with known spikes and turning points, and noise without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tracker/insight/learning.h"

enum { STEPS = 2000 };

static uint64_t state;

/* Approximately normal, with deviation 1. */
static double noise(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(state >> 11) * 0x1p-53;
	}
	return sum - 6;
}

/* A falling, noisy loss. */
static double falling(int64_t step)
{
	return 0.2 + 2 * exp(-(double)step / 300) + 0.05 * noise();
}

static void test_calm(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct learning_usual u = { .n = 0 };
		double usual;

		state = seed;
		for (int64_t step = 0; step < STEPS; step++)
			assert_false(learning_spikes(&u, falling(step), &usual));
	}
}

/* One spike, wherever it is, is reported once; a non-finite value is not reported as a spike. */
static void test_spike(void **unused)
{
	(void)unused;
	for (int64_t at = 20; at < STEPS; at += 37) {
		struct learning_usual u = { .n = 0 };
		double usual = 0;

		state = (uint64_t)at;
		for (int64_t step = 0; step < STEPS; step++) {
			const double loss = falling(step) + (step == at ? 5 : 0);

			assert_false(learning_spikes(&u, NAN, &usual));
			assert_int_equal(learning_spikes(&u, loss, &usual), step == at);
			if (step == at)
				assert_true(fabs(usual - 0.2 - 2 * exp(-(double)at / 300)) < 0.3);
		}
	}
}

/* A loss that stays high after a rise is reported once, and not at all by a run that has seen the later points. */
static void test_plateau(void **unused)
{
	struct learning_usual u = { .n = 0 }, known = { .n = 0 };
	double usual;
	int alerted = 0;

	(void)unused;
	state = 7;
	for (int64_t step = 0; step < STEPS; step++) {
		alerted += learning_spikes(&u, 1 + 0.02 * noise() + (step >= 500 ? 3 : 0), &usual);
		assert_false(learning_spikes(&known, step % 97 ? 1e-5 : 4e-3, &usual));
	}
	assert_in_range(alerted, 1, 2);
}

/* Validation every `every` steps: lowest at step `turn`, after which it rises by `slope` per thousand steps (0: stays);
 * training continues to fall, or rises too. */
struct course {
	int64_t every, turn;
	double slope, scatter;
	bool diverges;
};

static bool overfits(const struct course *c, struct learning_overfit *ret)
{
	struct learning *l = NULL;
	struct err err = ERR_INIT;
	bool found;

	assert_int_equal(learning_new(&l, &err), 0);
	for (int64_t step = STEPS; step > 0; step--) { /* the order does not matter */
		const double before = fmax(0, (double)(c->turn - step)) / 1000;
		const double after = fmax(0, (double)(step - c->turn)) / 1000;
		const double loss = 1 + before + c->slope * after;

		if (step % c->every == 0)
			assert_int_equal(learning_validation(l, step, loss + c->scatter * noise(), &err), 0);
	}
	for (int64_t step = 1; step <= STEPS + 50; step++)
		learning_training(l, step, c->diverges ? (double)step / 100 : falling(step));
	found = learning_overfits(l, ret);
	learning_free(l);
	return found;
}

static void test_overfit(void **unused)
{
	struct learning_overfit o;

	(void)unused;
	for (uint64_t seed = 0; seed < 50; seed++) {
		state = seed;
		assert_true(overfits(&(struct course){ 100, 800, 1, 0.01, false }, &o));
		assert_in_range(o.step, 600, 1000);
		assert_int_equal(o.last, STEPS);
		assert_true(o.now > o.lowest && o.training_now < o.training);
	}
	assert_true(overfits(&(struct course){ 100, 800, 1, 0, false }, &o));
	assert_int_equal(o.step, 800);
	assert_true(overfits(&(struct course){ 400, 800, 1, 0, false }, &o)); /* three validations after it */
	assert_int_equal(o.step, 800);
}

static void test_no_overfit(void **unused)
{
	struct learning_overfit o;

	(void)unused;
	for (uint64_t seed = 0; seed < 200; seed++) {
		state = seed;
		assert_false(overfits(&(struct course){ 50, STEPS, 0, 0.05, false }, &o));	/* falls to the end */
		assert_false(overfits(&(struct course){ 50, 1000, 0, 0.05, false }, &o));	/* stays */
		assert_false(overfits(&(struct course){ 50, 500, 1, 0.01, true }, &o));		/* training rises too */
	}
	assert_false(overfits(&(struct course){ 700, 700, 1, 0, false }, &o)); /* two validations are too few */
	assert_false(overfits(&(struct course){ STEPS + 1, 700, 1, 0, false }, &o)); /* none at all */
}

static void test_restart(void **unused)
{
	struct learning *l = NULL;
	struct err err = ERR_INIT;
	struct learning_overfit o;

	(void)unused;
	assert_int_equal(learning_new(&l, &err), 0);
	for (int64_t step = 1; step <= 10; step++)
		assert_int_equal(learning_validation(l, step, step < 4 ? 1 / (double)step : 1, &err), 0);
	for (int64_t step = 4; step <= 10; step++) /* repeated, with another end */
		assert_int_equal(learning_validation(l, step, 1 / (double)step, &err), 0);
	assert_int_equal(learning_validation(l, 11, NAN, &err), 0);
	for (int64_t step = 1; step <= 10; step++)
		learning_training(l, step, 1 / (double)step);
	assert_false(learning_overfits(l, &o));
	learning_free(l);
}

static void test_sentence(void **unused)
{
	const struct learning_overfit o = { 400, 900, 0.5, 0.75, 0.4, 0.1 };
	const char *want = "overfitting since step 400: the validation loss was lowest there (0.5) and is 0.75 by step "
			   "900, while the training loss fell from 0.4 to 0.1;";
	struct buf text;

	(void)unused;
	buf_init(&text, 4096);
	learning_sentence(&text, &o);
	assert_memory_equal(text.data, want, strlen(want));
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calm),	   cmocka_unit_test(test_spike),   cmocka_unit_test(test_plateau),
		cmocka_unit_test(test_overfit),	   cmocka_unit_test(test_no_overfit), cmocka_unit_test(test_restart),
		cmocka_unit_test(test_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
