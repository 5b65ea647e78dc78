/* SPDX-License-Identifier: Apache-2.0 */
/* intervals_test.c: intervals have their nominal coverage: a seeded tenth of tests/bench/insight/intervals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/insight/simulate.h"
#include "tracker/base/array.h"

enum { PAIRS = 200 };

/* 95 % intervals contain the truth in 93 to 98 % overall and 90 % in each setting, are in the median at most half wider
 * than necessary, and are given for every pair with 20 effective steps; intervals from independent steps fail. */
static void hold(void **state)
{
	static double widths[PAIRS];
	int given = 0, held = 0, pairs = 0, naive = 0;
	char name[160];

	(void)state;
	for (int k = 0; k < SIMULATE_SETTINGS / 10; k++) {
		struct simulate s = simulate_setting(10 * k + k % 10);
		struct simulate_tally t = { .widths = widths };
		double width;

		simulate_run(&s, PAIRS, 1000 + (uint64_t)k, &t);
		width = median_of(widths, (size_t)t.given);
		if (t.held < 0.9 * t.given || width > 1.5 || t.given < t.wanted)
			fail_msg("%s: %d of %d hold, width %.2f; %d pairs with 20 effective steps",
				 simulate_name(&s, name, sizeof(name)), t.held, t.given, width, t.wanted);
		given += t.given;
		held += t.held;
		pairs += t.pairs;
		naive += t.naive_held;
	}
	if (held < 0.93 * given || held > 0.98 * given || naive > 0.9 * pairs)
		fail_msg("%d of %d hold; naive ones %d of %d", held, given, naive, pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(hold) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
