/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h: `dptrain sweep FILE`: trials of many settings, as processes. There is no service: the state is a run of the
 * sweep's name, next to the runs of its trials, and the journals of these. */
#ifndef DPT_SWEEP_SWEEP_H
#define DPT_SWEEP_SWEEP_H

#include "tracker/base/err.h"
#include "trainer/config/config.h"

/* Runs a sweep, or continues it. Returns 0, 130 if it was interrupted, or a negative code. program: argv[0]. */
int sweep_main(const struct run_config *cfg, const char *program, struct err *err);

#endif
