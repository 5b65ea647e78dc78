/* same_flags.h: whether the ranks of a job on several machines were given the same flags: those that decide what they
 * compute and whom they meet, not where things lie. Asked before they do anything else together. */
#ifndef DPT_PROGRAM_SAME_FLAGS_H
#define DPT_PROGRAM_SAME_FLAGS_H

#include "trainer/comm/bootstrap.h"
#include "trainer/config/config.h"

/* Collective over the ranks of x: ERR_USAGE names the first flag that is not the same everywhere. */
int same_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err);

#endif
