/* find.h: `dptrain find lr|batch`: the result of the run that a job has recorded. */
#ifndef DPT_TOOLS_FIND_H
#define DPT_TOOLS_FIND_H

#include "trainer/run/engine.h"

/* Prints the result. Returns the exit code, or a negative code with err. */
int find_main(const struct job *job, const char *run_id, struct err *err);

#endif
