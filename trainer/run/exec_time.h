/* exec_time.h: which kind of a step's time a node takes, the same for every executor. */
#ifndef DPT_RUN_EXEC_TIME_H
#define DPT_RUN_EXEC_TIME_H

#include "trainer/run/exec.h"

enum exec_time exec_time_of(const struct node *n);

#endif
