/* mlflow_repeat.h: drops points that are stored already, the same run, key, time, step and value: a client that got no answer
 * sends its batch again. Points behind everything stored, the usual case, cost one comparison. Writer's thread. */
#ifndef DPT_STORE_MLFLOW_REPEAT_H
#define DPT_STORE_MLFLOW_REPEAT_H

#include "web/store/write/intake.h"
#include "web/store/write/state.h"

/* Takes repeated run-level points, also those inside the batch itself, out of in. */
int repeat_drop(struct state *st, struct state_run *r, struct intake *in, struct err *err);

#endif
