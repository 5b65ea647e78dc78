/* exec_time.h: the kind of a step's time that a node counts as, and storage for times of nodes, the same for every
 * executor. */
#ifndef DPT_RUN_EXEC_TIME_H
#define DPT_RUN_EXEC_TIME_H

#include "trainer/run/exec/exec.h"

enum exec_time exec_time_of(const struct node *n);

/* The same for a wait for a stream. */
enum exec_time exec_time_of_wait(enum stream s);

const char *exec_time_name(enum exec_time kind); /* phase of a span */

/* Zeroes the seconds of each of the program's nodes, by id; allocated at the first call, freed by the caller. */
int exec_time_begin(double **seconds, const struct program *p, struct err *err);

#endif
