/* asha.c: ranks trials at their rungs. A sweep has hundreds of trials, so no sorted order is kept between calls. */
#include "trainer/sweep/asha.h"

#include <math.h>

static bool is_better_value(const struct asha *a, double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(y) && !isnan(x);
	return a->maximize ? x > y : x < y;
}

/* Returns how many trials are better at the rung; the lower number wins a tie. */
static size_t trial_rank_at_rung(const struct asha *a, size_t trial, int rung)
{
	size_t rank = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];
		double mine = a->trials[trial].value[rung];

		if (i != trial && t->rungs > rung)
			rank += is_better_value(a, t->value[rung],
						mine) || (!is_better_value(a, mine, t->value[rung]) && i < trial);
	}
	return rank;
}

static size_t count_reached_rung(const struct asha *a, int rung)
{
	size_t n = 0;

	for (size_t i = 0; i < a->count; i++)
		n += a->trials[i].rungs > rung;
	return n;
}

/* Returns the best trial at the rung that may be promoted; a->count: none. */
static size_t find_promotable(const struct asha *a, int rung)
{
	size_t places = (size_t)((double)count_reached_rung(a, rung) / a->eta), found = a->count, best = places;

	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];
		size_t rank;

		if (t->rungs != rung + 1 || t->running || t->failed || isnan(t->value[rung]))
			continue;
		rank = trial_rank_at_rung(a, i, rung);
		if (rank < best) {
			best = rank;
			found = i;
		}
	}
	return found;
}

enum asha_next asha_next(const struct asha *a, size_t *ret_trial, int *ret_rung)
{
	bool running = false;

	for (int rung = a->rungs - 2; rung >= 0; rung--) {
		*ret_trial = find_promotable(a, rung);
		*ret_rung = rung + 1;
		if (*ret_trial < a->count)
			return ASHA_RUN;
	}
	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];

		running = running || t->running;
		if (t->rungs || t->running || t->failed)
			continue;
		*ret_trial = i;
		*ret_rung = 0;
		return ASHA_RUN;
	}
	return running ? ASHA_WAIT : ASHA_DONE;
}

size_t asha_best(const struct asha *a)
{
	for (int rung = a->rungs - 1; rung >= 0; rung--)
		for (size_t i = 0; i < a->count; i++)
			if (a->trials[i].rungs > rung && !isnan(a->trials[i].value[rung]) &&
			    !trial_rank_at_rung(a, i, rung))
				return i;
	return a->count;
}
