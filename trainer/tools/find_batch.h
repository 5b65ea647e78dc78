/* find_batch.h: `dptrain find batch`: the largest that fits, the fastest, and how many samples a step pay. */
#ifndef DPT_TOOLS_FIND_BATCH_H
#define DPT_TOOLS_FIND_BATCH_H

#include "trainer/run/engine.h"

/* After the job's own run, in `dir`, which recorded the noise scale. Measures, then prints. The exit code (of what was
 * started, when that failed); negative with err. */
int find_batch(const struct job *job, const char *dir, struct err *err);

#endif
