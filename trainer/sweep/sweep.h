/* sweep.h: `dptrain sweep FILE`: trials of many settings, as processes. There is no service: a run of the sweep's name
 * beside those of its trials is its state, and what the trials' own journals say. */
#ifndef DPT_SWEEP_SWEEP_H
#define DPT_SWEEP_SWEEP_H

#include "tracker/base/err.h"
#include "trainer/config/config.h"

/* 0, 130 when it was interrupted, or negative; called again it goes on. program: argv[0]. */
int sweep_main(const struct run_config *cfg, const char *program, struct err *err);

#endif
