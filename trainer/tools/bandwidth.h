/* bandwidth.h: `dptrain bench --bandwidth` in a rank's process: times each collective between the ranks of a job over
 * sizes, without a model. */
#ifndef DPT_TOOLS_BANDWIDTH_H
#define DPT_TOOLS_BANDWIDTH_H

#include "trainer/run/engine.h"

/* Returns the exit code; a failure is also recorded in the rank context. */
int bandwidth_main(const struct job *job, struct rank_context *seat);

#endif
