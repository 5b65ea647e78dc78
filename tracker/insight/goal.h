/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h: which value of a metric is its best, and which metric runs are judged by: what a run says, else
 * schema/insight/goals.def, else unknown. The page and the Python package are made from the same table. */
#ifndef DPTRACK_INSIGHT_GOAL_H
#define DPTRACK_INSIGHT_GOAL_H

#include <stddef.h>

/* The tag of a run that says which value of the metric KEY is best is this with KEY appended; its value is "min" or
 * "max". */
#define GOAL_TAG "dptrack.best."

enum goal_best { GOAL_UNKNOWN, GOAL_MIN, GOAL_MAX };

/* said: the value of the run's tag, or NULL. */
enum goal_best goal_best_of(const char *key, const char *said);

/* Returns "min" or "max", as members of JSON and of SQL's expressions are named; "last" if unknown. */
const char *goal_best_word(enum goal_best best);

/* The most suitable of several metrics to judge runs by. Begin with {0}: none. */
struct goal_choice {
	const char *key; /* borrowed */
	enum goal_best best;
	double merit;
};

/* Chooses the metric if it is more suitable than those before it. have of n runs have it; said as above. */
void goal_choice_add(struct goal_choice *c, const char *key, const char *said, size_t have, size_t n);

#endif
