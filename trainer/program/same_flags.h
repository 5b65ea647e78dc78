/* same_flags.h: checks that all ranks of a job on several machines have the same flags: those that decide what they
 * compute and exchange, not paths. Runs before any other exchange between ranks. */
#ifndef DPT_PROGRAM_SAME_FLAGS_H
#define DPT_PROGRAM_SAME_FLAGS_H

#include "trainer/comm/bootstrap.h"
#include "trainer/config/config.h"

/* Collective over the ranks of x: ERR_USAGE names the first flag that differs. */
int same_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err);

#endif
