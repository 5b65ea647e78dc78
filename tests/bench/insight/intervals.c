/* SPDX-License-Identifier: Apache-2.0 */
/* intervals.c: coverage of the intervals of `dptrack compare --why`, for simulated pairs of runs with a known factor.
 *
 *	make tests/bench/insight/intervals && tests/bench/insight/intervals [--json] [PAIRS]
 *
 * PAIRS: per setting (default: 1,000). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/insight/simulate.h"
#include "tracker/base/array.h"

struct totals {
	int pairs, wanted, missing, given, held, settings_below, naive_held, steps_held, steps_pairs;
	double least, widest;
};

static void add(struct totals *all, const struct simulate *s, const struct simulate_tally *t, double width)
{
	double share = t->given ? (double)t->held / t->given : 0;

	all->pairs += t->pairs;
	all->wanted += t->wanted;
	all->missing += t->wanted > t->given ? t->wanted - t->given : 0;
	all->given += t->given;
	all->held += t->held;
	all->naive_held += t->naive_held;
	if (s->run_noise == 0) {
		all->steps_held += t->steps_held;
		all->steps_pairs += t->pairs;
	}
	all->settings_below += share < 0.90;
	all->least = fmin(all->least, share);
	all->widest = fmax(all->widest, width);
}

static void print(const struct totals *t, int json)
{
	double overall = (double)t->held / t->given, naive = (double)t->naive_held / t->pairs;
	double steps = (double)t->steps_held / t->steps_pairs;

	if (json) {
		printf("{\"settings\":%d,\"pairs\":%d,\"held\":%.4f,\"least\":%.4f,\"below_90\":%d,\"widest\":%.3f,"
		       "\"missing\":%d,\"naive\":%.4f,\"steps\":%.4f}\n",
		       SIMULATE_SETTINGS, t->pairs, overall, t->least, t->settings_below, t->widest, t->missing, naive,
		       steps);
		return;
	}
	printf("\n%d settings, %d pairs\n", SIMULATE_SETTINGS, t->pairs);
	printf("%8.1f %% of the 95 %% intervals hold the true factor\n", 100 * overall);
	printf("%8.1f %% in the worst setting; %d settings below 90 %%\n", 100 * t->least, t->settings_below);
	printf("%8.2f    the widest median, in intervals of the true variance at equal degrees of freedom\n",
	       t->widest);
	printf("%8d    pairs with 20 effective steps and no interval, of %d\n", t->missing, t->wanted);
	printf("%8.1f %% with every step an independent sample\n", 100 * naive);
	printf("%8.1f %% with intervals from steps only, where runs have no additional noise\n", 100 * steps);
}

int main(int argc, char **argv)
{
	int json = argc > 1 && !strcmp(argv[1], "--json");
	long pairs = argc > 1 + json ? strtol(argv[1 + json], NULL, 10) : 1000;
	struct totals all = { .least = 1 };
	double *widths = calloc((size_t)(pairs > 0 ? pairs : 1), sizeof(*widths));
	char name[160];

	if (!widths || pairs < 1 || pairs > 1000000)
		return 2;
	for (int i = 0; i < SIMULATE_SETTINGS; i++) {
		struct simulate s = simulate_setting(i);
		struct simulate_tally t = { .widths = widths };
		double width;

		simulate_run(&s, (int)pairs, (uint64_t)i + 1, &t);
		width = median_of(widths, (size_t)t.given);
		add(&all, &s, &t, width);
		if (!json)
			printf("%5.1f %%  width %4.2f  naive %5.1f %%  steps %5.1f %%  %s\n",
			       t.given ? 100.0 * t.held / t.given : 0, width, 100.0 * t.naive_held / t.pairs,
			       100.0 * t.steps_held / t.pairs, simulate_name(&s, name, sizeof(name)));
	}
	print(&all, json);
	free(widths);
	return 0;
}
