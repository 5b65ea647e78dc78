/* SPDX-License-Identifier: Apache-2.0 */
/* goal.c: see goal.h. */
#include "tracker/insight/goal.h"

#include <stddef.h>

static const struct insight_goal goals[] = {
#define GOAL(key, more) { key, more },
#include "schema/insight/goals.def"
#undef GOAL
};

const struct insight_goal *insight_goal_first(bool (*has)(void *user, const char *key), void *user)
{
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
		if (has(user, goals[i].key))
			return &goals[i];
	return NULL;
}
