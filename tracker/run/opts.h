/* opts.h: the options by which a caller opens or finds a run: whether they make sense, and what stands for those left
 * out. Touches neither disk nor environment. */
#ifndef DPT_RUN_OPTS_H
#define DPT_RUN_OPTS_H

#include "tracker/base/err.h"
#include "tracker/dptrack.h"

int opts_check(const struct dptrack_run_opts *o, struct err *err); /* 0 or ERR_USAGE */

const char *opts_runs_dir(const struct dptrack_run_opts *o);
const char *opts_experiment(const struct dptrack_run_opts *o);

#endif
