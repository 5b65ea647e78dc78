/* exec_value.h: the results that the host reads after a run, and what it clears before; the same for all executors. */
#ifndef DPT_RUN_EXEC_VALUE_H
#define DPT_RUN_EXEC_VALUE_H

#include "trainer/run/exec/exec.h"

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
