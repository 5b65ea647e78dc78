/* exec_value.h: what a run leaves for the host to read, and what the host clears for it; the same for all executors. */
#ifndef DPT_RUN_EXEC_VALUE_H
#define DPT_RUN_EXEC_VALUE_H

#include "trainer/run/exec/exec.h"

/* Values that runs leave, as the host reads them: tensor of a program, where in the results, and how many bytes. */
struct exec_value {
	const struct tensor *tensor; /* NULL: the program has none */
	size_t offset, bytes;	     /* in struct exec_results */
};

#define EXEC_VALUES 5
void exec_values(struct exec_value ret[EXEC_VALUES], const struct program *p);

/* Whether the host clears the program's result, which another stage of a pipeline has. */
bool exec_clears(const struct program *p);

/* Losses that a run of any of the programs leaves, at most. */
int64_t exec_losses_most(const struct prepared *p);

#endif
