/* SPDX-License-Identifier: Apache-2.0 */
/* nonfinite_search.h: decides whether a run can continue after a step, and if not, finds the first non-finite value. */
#ifndef DPT_RUN_NONFINITE_SEARCH_H
#define DPT_RUN_NONFINITE_SEARCH_H

#include "trainer/run/exec/exec.h"
#include "trainer/run/step.h"

/* Collective: ERR_CANCELED when the run cannot continue after a skipped step: its loss is not finite (with a loss scale
 * that may be an overflow, and the run continues), or ten steps in a row were skipped that a lower loss scale would not
 * have repaired. A skipped step changed nothing, so
 * it is repeated on the same batch, node by node. The message names the first node, its op, direction, rank and
 * sample. */
int nonfinite_search_check(struct engine *e, const struct step_result *r, struct err *err);

#endif
