/* train.h: `dptrain train` in a rank's process: the loop, from opening to the last word. */
#ifndef DPT_RUN_TRAIN_H
#define DPT_RUN_TRAIN_H

#include "trainer/run/engine.h"

int train_main(const struct job *job, struct rank_context *seat); /* the exit code; a failure is left on the seat's board */

#endif
