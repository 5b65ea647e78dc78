/* SPDX-License-Identifier: Apache-2.0 */
/* rank_check.h: checks before the first step that all ranks will do the same, so that a difference is reported in one
 * line instead of a hanging job: their flags, and the collectives of their programs. Does not know what these are
 * for. */
#ifndef DPT_PROGRAM_RANK_CHECK_H
#define DPT_PROGRAM_RANK_CHECK_H

#include "trainer/comm/bootstrap.h"
#include "trainer/config/config.h"
#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"

/* Collective over the ranks of x, before any other exchange between ranks: compares the flags without the trait LOCAL.
 * ERR_USAGE names the first one that differs. */
int rank_check_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err);

/* Collective over all ranks: each group compares a hash of its list of collectives, in their order. ERR_UNSUPPORTED
 * names the first difference. */
int rank_check_collectives(const struct prepared *p, const struct rank *r, struct err *err);

#endif
