/* train.h: `dptrain train` in a rank's process. */
#ifndef DPT_RUN_TRAIN_H
#define DPT_RUN_TRAIN_H

#include "trainer/run/engine.h"

/* returns the exit code; stores a failure in the shared status */
int train_main(const struct job *job, struct rank_context *seat);

#endif
