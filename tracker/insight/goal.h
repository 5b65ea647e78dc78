/* SPDX-License-Identifier: Apache-2.0 */
/* goal.h: the metric that runs are judged by where none is named. */
#ifndef DPT_INSIGHT_GOAL_H
#define DPT_INSIGHT_GOAL_H

#include <stdbool.h>

struct insight_goal {
	const char *key;
	bool more; /* larger is better */
};

/* Returns the first goal of goals.def whose key `has` accepts; NULL: none. */
const struct insight_goal *insight_goal_first(bool (*has)(void *user, const char *key), void *user);

#endif
