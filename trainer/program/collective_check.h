/* collective_check.h: checks at set-up that the programs of all ranks call the same collectives in the same order, so
 * that a difference is reported in one line instead of a hanging job. Does not know what the collectives are for. */
#ifndef DPT_PROGRAM_COLLECTIVE_CHECK_H
#define DPT_PROGRAM_COLLECTIVE_CHECK_H

#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"

/* Collective over all ranks: each group compares a hash of its list of collectives. ERR_UNSUPPORTED names the first
 * difference. */
int collective_check_collectives(const struct prepared *p, const struct rank *r, struct err *err);

#endif
