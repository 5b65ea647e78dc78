/* bench_compare.h: the same measurement with and without additional flags, in turn: `dptrain bench --compare-with
 * FLAGS`, and the gain of an action for `dptrain doctor --try`. */
#ifndef DPT_TOOLS_BENCH_COMPARE_H
#define DPT_TOOLS_BENCH_COMPARE_H

#include "tracker/insight/run_change.h"
#include "trainer/run/engine.h"

/* Returns true if --compare-with is given and not blank. */
bool bench_compare_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` for every round and side, and prints what the flags of --compare-with change. Returns the exit
 * code, or a negative code with err. */
int bench_compare_main(const struct job *job, struct err *err);

/* Makes short runs of `dptrain doctor` with the job's command line, with and without the flags. Returns the exit code
 * (0: *ret is filled), or a negative code with err. */
int bench_compare_try(const struct job *job, const char *flags, struct change *ret, struct err *err);

#endif
