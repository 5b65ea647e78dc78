/* collective_check.h: whether the ranks of a job mean the same: their programs meet each other in the same collectives, in the
 * same order. Asked at set-up, so that a difference is one line that names it, not a job that waits for its time
 * limit. Knows nothing of what the collectives are for. */
#ifndef DPT_PROGRAM_COLLECTIVE_CHECK_H
#define DPT_PROGRAM_COLLECTIVE_CHECK_H

#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"

/* Collective over all ranks: each group compares a hash of its list of collectives. ERR_UNSUPPORTED names the first
 * that its ranks have differently. */
int collective_check_collectives(const struct prepared *p, const struct rank *r, struct err *err);

#endif
