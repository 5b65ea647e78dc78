/* find.h: `dptrain find lr|batch`: the answer of the run that a job has recorded. */
#ifndef DPT_TOOLS_FIND_H
#define DPT_TOOLS_FIND_H

#include "trainer/run/engine.h"

/* Prints it. The exit code; negative with err. */
int find_main(const struct job *job, const char *run_id, struct err *err);

#endif
