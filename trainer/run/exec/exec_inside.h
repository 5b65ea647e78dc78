/* SPDX-License-Identifier: Apache-2.0 */
/* exec_inside.h: what is the same for every executor: the kind of a step's time that a node counts as, storage for
 * times of nodes, the results that the host reads after a run and what it clears before. */
#ifndef DPT_RUN_EXEC_INSIDE_H
#define DPT_RUN_EXEC_INSIDE_H

#include "trainer/run/exec/exec.h"

enum exec_time exec_time_of(const struct node *n);

/* The same for a wait for a stream. */
enum exec_time exec_time_of_wait(enum stream s);

const char *exec_time_name(enum exec_time kind); /* phase of a span */

/* Zeroes the seconds of each of the program's nodes, by id; allocated at the first call, freed by the caller. */
int exec_time_begin(double **seconds, const struct program *p, struct err *err);

/* A value that the host reads after a run: a tensor of the program, its place in the results, and its size. */
struct exec_value {
	const struct tensor *tensor; /* NULL: not in this program */
	size_t offset, bytes;	     /* in struct exec_results */
};

#define EXEC_VALUES 5
void exec_values(struct exec_value ret[EXEC_VALUES], const struct program *p);

/* Returns true if the host must clear the program's result, because another stage of a pipeline computes it. */
bool exec_clears(const struct program *p);

/* Returns the most losses of a run of any program. */
int64_t exec_losses_most(const struct prepared *p);

#endif
