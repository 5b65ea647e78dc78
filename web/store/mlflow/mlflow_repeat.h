/* mlflow_repeat.h: drops points that are stored already, the same run, key, time, step and value: a client that got no
 * answer sends its batch again. Points behind all that is stored, the usual case, cost one comparison. Writer's
 * thread. */
#ifndef DPT_STORE_MLFLOW_REPEAT_H
#define DPT_STORE_MLFLOW_REPEAT_H

#include "web/store/write/change.h"

/* Takes repeated run-level points, also those inside the batch itself, out of in. */
int mlflow_repeat_drop(struct state *st, struct state_run *r, struct intake *in, struct err *err);

#endif
