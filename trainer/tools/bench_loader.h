/* bench_loader.h: `dptrain bench --loader`: throughput of the loader, without a model. */
#ifndef DPT_TOOLS_BENCH_LOADER_H
#define DPT_TOOLS_BENCH_LOADER_H

#include "trainer/launch/rank_context.h"
#include "trainer/run/engine.h"

/* Runs one rank. Rank 0 prints a line for each pass over the set, or with --json one object. Returns the exit code. */
int bench_loader_main(const struct job *job, struct rank_context *seat);

#endif
