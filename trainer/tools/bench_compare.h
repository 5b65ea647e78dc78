/* bench_compare.h: the same measurement with and without further flags, in turn: `dptrain bench --compare-with
 * FLAGS`, and what an action of `dptrain doctor --try` brings. */
#ifndef DPT_TOOLS_BENCH_COMPARE_H
#define DPT_TOOLS_BENCH_COMPARE_H

#include "tracker/insight/run_change.h"
#include "trainer/run/engine.h"

/* Whether --compare-with asks for it; a blank one does not. */
bool bench_compare_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` anew for every round and side, and prints what the flags of --compare-with change. The exit
 * code; negative with err. */
int bench_compare_main(const struct job *job, struct err *err);

/* Short runs of `dptrain doctor` with the job's command line, and with the flags besides. The exit code (0: *ret is
 * filled); negative with err. */
int bench_compare_try(const struct job *job, const char *flags, struct change *ret, struct err *err);

#endif
