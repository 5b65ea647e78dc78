/* SPDX-License-Identifier: Apache-2.0 */
/* asha_test.c: successive halving compared with its definition on small cases, and with a full search on learning
 * curves that cross, generated and recorded: its result must be close for a third of the steps; and settings are
 * determined by seed and number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/graph/rng.h"
#include "trainer/sweep/sweep.h"

#define TRIALS 27
#define DRAWS 100

static void reach(struct asha_trial *t, double value)
{
	t->value[t->rungs++] = value;
	t->running = false;
}

static void test_rungs(void **state)
{
	struct asha_trial t[9] = { { 0 } };
	struct asha a = { .trials = t, .count = 9, .rungs = 3, .eta = 3, .maximize = true };
	size_t trial;
	int rung;

	(void)state;
	for (size_t i = 0; i < 3; i++) { /* one of three is promoted, as soon as there are three */
		assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
		assert_true(trial == i && rung == 0);
		reach(&t[i], i == 1 ? 5 : 1);
	}
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
	assert_true(trial == 1 && rung == 1);
	t[1].running = true;
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
	assert_true(trial == 3 && rung == 0);
	for (size_t i = 3; i < 9; i++)
		reach(&t[i], i == 4 ? NAN : (double)i);
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
	assert_true(trial == 8 && rung == 1); /* among 8, 7, 6 */
	t[8].failed = true;
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
	assert_true(trial == 7 && rung == 1);
	reach(&t[7], 3);
	t[6].running = true; /* the last of the three */
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_WAIT);
	reach(&t[1], 2);
	reach(&t[6], 1);
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_RUN);
	assert_true(trial == 7 && rung == 2);
	reach(&t[7], 9);
	assert_int_equal(asha_next(&a, &trial, &rung), ASHA_DONE);
	assert_int_equal(asha_best(&a), 7);
}

/* A value that is not finite is the worst, whichever way is better. */
static void test_nonfinite(void **state)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY };
	struct asha_trial t[4] = { { 0 } };
	struct asha a = { .trials = t, .count = 4, .rungs = 1, .eta = 3 };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		reach(&t[i], odd[i]);
	assert_int_equal(asha_best(&a), a.count);
	reach(&t[3], 5);
	for (int maximize = 0; maximize < 2; maximize++) {
		a.maximize = maximize;
		assert_int_equal(asha_best(&a), 3);
	}
}

/* Accuracies of settings by number after a number of epochs, for one draw of TRIALS of them. */
struct curves {
	double (*at)(const struct curves *c, size_t trial, int epoch);
	uint64_t draw;
	json_t *right;       /* of each recorded setting, after each epoch; NULL: curves are generated */
	double judged_by;
	size_t drawn[TRIALS]; /* the drawn recorded settings */
};

/* The accuracy of a generated setting: it approaches its end at its own rate, with noise. */
static double made(const struct curves *c, size_t trial, int epoch)
{
	struct rng_key key = { .seed = c->draw, .stream = rng_stream("curves") };
	double end = 90 - 25 * pow(rng_uniform(key, 3 * trial), 2), pace = 1 + 4 * rng_uniform(key, 3 * trial + 1);
	struct rng_key noise = { .seed = c->draw, .stream = rng_stream("noise") };

	return end - 60 * exp(-epoch / pace) + 0.3 * rng_normal(noise, trial * 100 + (uint64_t)epoch);
}

static double recorded(const struct curves *c, size_t trial, int epoch)
{
	json_t *right = json_array_get(c->right, c->drawn[trial]);

	return 100 * (double)json_integer_value(json_array_get(right, (size_t)epoch - 1)) / c->judged_by;
}

/* Draws from the recorded settings: the first of a shuffle. */
static void draw_recorded(struct curves *c)
{
	struct rng_key key = { .seed = c->draw, .stream = rng_stream("settings") };
	size_t n = json_array_size(c->right), all[1000];

	assert_true(n >= TRIALS && n <= 1000);
	for (size_t i = 0; i < n; i++)
		all[i] = i;
	for (size_t i = 0; i < TRIALS; i++) {
		size_t j = i + (size_t)(rng_uniform(key, i) * (double)(n - i));

		c->drawn[i] = all[j];
		all[j] = all[i];
	}
}

/* Returns the number of epochs; *ret_regret: by how much the chosen setting ends below the best one. */
static int search_once(const struct curves *c, double *ret_regret)
{
	struct asha_trial t[TRIALS] = { { 0 } };
	struct asha a = { .trials = t, .count = TRIALS, .rungs = 3, .eta = 3, .maximize = true };
	static const int until[] = { 3, 9, 27 };
	double best = 0;
	int epochs = 0, rung;
	size_t trial;

	while (asha_next(&a, &trial, &rung) == ASHA_RUN) {
		reach(&t[trial], c->at(c, trial, until[rung]));
		epochs += until[rung] - (rung ? until[rung - 1] : 0);
	}
	for (size_t i = 0; i < TRIALS; i++)
		best = fmax(best, c->at(c, i, until[2]));
	*ret_regret = best - c->at(c, asha_best(&a), until[2]);
	return epochs;
}

/* The mean regret of DRAWS draws, which may use a third of a full search's epochs. */
static double mean_regret(struct curves *c)
{
	double sum = 0, regret;
	int epochs = 0;

	for (c->draw = 0; c->draw < DRAWS; c->draw++) {
		if (c->right)
			draw_recorded(c);
		epochs += search_once(c, &regret);
		sum += regret;
	}
	printf("mean regret %.3f points, %.3f of the epochs of a full search\n", sum / DRAWS,
	       epochs / (double)(DRAWS * TRIALS * 27));
	assert_true(epochs <= DRAWS * TRIALS * 27 / 3);
	return sum / DRAWS;
}

static void test_regret(void **state)
{
	struct curves c = { .at = made };

	(void)state;
	assert_true(mean_regret(&c) < 1);
}

/* With trainings recorded by make_curves.py. */
static void test_recorded(void **state)
{
	const char *top = getenv("srcdir");
	char path[4096];
	json_t *whole;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/sweep/curves.json", top ? top : ".");
	whole = json_load_file(path, 0, NULL);
	assert_non_null(whole);
	assert_true(mean_regret(&(struct curves){ .at = recorded, .right = json_object_get(whole, "right"),
						  .judged_by = (double)json_integer_value(
							  json_object_get(whole, "judged_by")) }) <= 0.2);
	json_decref(whole);
}

static void test_space(void **state)
{
	static const char text[] = "{\"lr\": {\"min\": 0.001, \"max\": 1, \"distribution\": \"log_uniform_values\"},"
				   " \"depth\": {\"min\": 2, \"max\": 4}, \"opt\": {\"values\": [\"sgd\", \"adamw\"]}}";
	json_t *parameters = json_loads(text, 0, NULL), *grid = json_loads("{\"a\": {\"values\": [1, 2]}, \"b\": "
									  "{\"values\": [0.5, true, \"x\"]}}", 0, NULL);
	char value[SPACE_VALUE_BYTES], again[SPACE_VALUE_BYTES];
	struct err err = ERR_INIT;
	struct search_space *s, *other;
	int below = 0, depths[5] = { 0 };

	(void)state;
	assert_int_equal(space_new(&s, parameters, 7, &err), 0);
	assert_int_equal(space_new(&other, parameters, 7, &err), 0);
	assert_int_equal(space_grid(s), 0);
	for (size_t i = 0; i < 300; i++) {
		space_value(s, false, i, 0, value);
		space_value(other, false, i, 0, again);
		assert_string_equal(value, again);
		assert_true(strtod(value, NULL) >= 0.001 && strtod(value, NULL) <= 1);
		below += strtod(value, NULL) < sqrt(0.001);
		space_value(s, false, i, 1, value);
		depths[strtol(value, NULL, 10)]++;
	}
	assert_true(below > 120 && below < 180);
	assert_true(depths[2] > 70 && depths[3] > 70 && depths[4] > 70);
	space_free(other);
	space_free(s);
	assert_int_equal(space_new(&s, grid, 0, &err), 0);
	assert_int_equal(space_grid(s), 6);
	space_value(s, true, 4, 0, value);
	assert_string_equal(value, "2");
	assert_true(space_value(s, true, 4, 1, value) && !strcmp(value, "true"));
	space_free(s);
	json_decref(grid);
	json_decref(parameters);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rungs), cmocka_unit_test(test_nonfinite),
					    cmocka_unit_test(test_regret), cmocka_unit_test(test_recorded),
					    cmocka_unit_test(test_space) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
