/* SPDX-License-Identifier: Apache-2.0 */
/* spans_test.c: the spans of a traced step: its own, and those that other threads ended before it began. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trainer/run/trace.h"

enum { FIRST = 5, LAST = 6 };

static void load(struct trace *t, double from_s, double to_s)
{
	trace_add(t, &(struct trace_span){ "loader", 0, "load", "", -1, from_s, to_s });
}

/* Ends a step; returns how many of its spans are a loader's. */
static size_t loads(struct trace *t, double to_s)
{
	size_t n, lost, found = 0;
	const struct trace_span *spans = trace_end(t, to_s, &n, &lost);

	assert_int_equal(lost, 0);
	for (size_t i = 0; i < n; i++)
		found += !strcmp(spans[i].row, "loader");
	return found;
}

static int set_up(void **state)
{
	*state = trace_new(FIRST, LAST);
	return 0;
}

static int tear_down(void **state)
{
	trace_free(*state);
	return 0;
}

/* While a step is written to the trace, the time of the next one already runs. */
static void test_between_steps(void **state)
{
	struct trace *t = *state;

	assert_true(trace_begin(t, FIRST, 1));
	load(t, 0.5, 1.5);
	assert_int_equal(loads(t, 2), 1);
	load(t, 1.5, 2.1);
	load(t, 2.1, 2.2);
	assert_true(trace_begin(t, LAST, 2));
	load(t, 2.2, 2.6);
	assert_int_equal(loads(t, 3), 3);
}

/* The time of a step after an evaluation begins after the evaluation. */
static void test_after_an_evaluation(void **state)
{
	struct trace *t = *state;

	assert_false(trace_begin(t, FIRST - 2, 0));
	load(t, 0, 1);
	assert_false(trace_begin(t, FIRST - 1, 1));
	load(t, 1, 2);
	load(t, 2, 4);
	assert_true(trace_begin(t, FIRST, 3));
	assert_int_equal(loads(t, 5), 1);
}

/* Nothing is recorded after the last step. */
static void test_after_the_last(void **state)
{
	struct trace *t = *state;

	assert_true(trace_begin(t, LAST, 1));
	assert_int_equal(loads(t, 2), 0);
	load(t, 1, 3);
	assert_false(trace_begin(t, LAST + 1, 2));
	assert_int_equal(loads(t, 4), 0);
}

/* The step's own row has no gap, whatever the other rows contain. */
static void test_no_gap(void **state)
{
	struct trace *t = *state;
	const struct trace_span *spans;
	double at = 1;
	size_t n, lost;

	assert_true(trace_begin(t, FIRST, 1));
	trace_add(t, &(struct trace_span){ TRACE_STEP_ROW, 0, "forward", "forward", 3, 1.25, 1.5 });
	load(t, 0.5, 1.75);
	spans = trace_end(t, 2, &n, &lost);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(spans[i].row, TRACE_STEP_ROW))
			continue;
		assert_true(spans[i].from_s == at);
		at = spans[i].to_s;
	}
	assert_true(at == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_between_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_an_evaluation, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_the_last, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_gap, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
