/* nonfinite_search.h: whether a run can go on after a step, and if not, what made its numbers useless. */
#ifndef DPT_RUN_NONFINITE_SEARCH_H
#define DPT_RUN_NONFINITE_SEARCH_H

#include "trainer/run/step.h"

/* Collective: ERR_CANCELED when the run cannot go on after a step that was skipped: its loss is not finite (with a loss
 * scale that may be an overflow, and goes on), or too many were. Such a step changed nothing, so it is made again on
 * the same batch, node by node: the message names the first node, its op, direction, rank and sample. */
int nonfinite_search_check(struct engine *e, const struct step_result *r, struct err *err);

#endif
