/* exec_time.h: which kind of a step's time a node takes, and room for times of nodes, the same for every executor. */
#ifndef DPT_RUN_EXEC_TIME_H
#define DPT_RUN_EXEC_TIME_H

#include "trainer/run/exec/exec.h"

enum exec_time exec_time_of(const struct node *n);

/* … and waiting for a stream. */
enum exec_time exec_time_of_wait(enum stream s);

const char *exec_time_name(enum exec_time kind); /* as a phase of a span */

/* Zeros for the seconds of each of the program's nodes, by id; made at the first call, the caller's to free. */
int exec_time_begin(double **seconds, const struct program *p, struct err *err);

#endif
