/* mlflow_repeat.h: drops points that are stored already (same run, key, time, step and value), because clients
 * without an answer send a batch again. In the usual case, points after all stored ones, it costs one comparison.
 * Writer's thread. */
#ifndef DPT_STORE_MLFLOW_REPEAT_H
#define DPT_STORE_MLFLOW_REPEAT_H

#include "web/store/write/change.h"

/* Removes repeated run-level points from in, also repeats inside the batch. */
int mlflow_repeat_drop(struct state *st, struct state_run *r, struct intake *in, struct err *err);

#endif
