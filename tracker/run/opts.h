/* opts.h: options to open or find a run: validation and defaults. No access to disk or environment. */
#ifndef DPT_RUN_OPTS_H
#define DPT_RUN_OPTS_H

#include "tracker/base/err.h"
#include "tracker/dptrack.h"

int opts_check(const struct dptrack_run_opts *o, struct err *err); /* 0 or ERR_USAGE */

const char *opts_runs_dir(const struct dptrack_run_opts *o);
const char *opts_experiment(const struct dptrack_run_opts *o);

#endif
