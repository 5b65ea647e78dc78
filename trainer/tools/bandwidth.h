/* bandwidth.h: `dptrain bench --bandwidth` in a rank's process: what each collective takes between the ranks of a job,
 * over sizes, without a model. */
#ifndef DPT_TOOLS_BANDWIDTH_H
#define DPT_TOOLS_BANDWIDTH_H

#include "trainer/run/engine.h"

int bandwidth_main(const struct job *job, struct rank_context *seat); /* the exit code; a failure is left on the seat's board */

#endif
