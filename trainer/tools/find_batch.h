/* find_batch.h: `dptrain find batch`: the largest batch that fits, the fastest, and the largest that pays off. */
#ifndef DPT_TOOLS_FIND_BATCH_H
#define DPT_TOOLS_FIND_BATCH_H

#include "trainer/run/engine.h"

/* Call it after the job's run, in `dir`, which recorded the noise scale. Measures and prints. Returns the exit code
 * (of a child that failed), or a negative code with err. */
int find_batch(const struct job *job, const char *dir, struct err *err);

#endif
