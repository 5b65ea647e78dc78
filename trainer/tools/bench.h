/* bench.h: `dptrain bench` in a rank's process. */
#ifndef DPT_TOOLS_BENCH_H
#define DPT_TOOLS_BENCH_H

#include "trainer/run/engine.h"

/* Returns the exit code; a failure is also recorded in the rank context. */
int bench_main(const struct job *job, struct rank_context *seat);

#endif
