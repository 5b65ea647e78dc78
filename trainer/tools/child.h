/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: what several subcommands share: dptrain as a child process, and the run that a job has recorded. */
#ifndef DPT_TOOLS_CHILD_H
#define DPT_TOOLS_CHILD_H

#include <jansson.h>
#include <math.h>

#include "tracker/dptrack.h"
#include "tracker/insight/step_time.h"
#include "trainer/run/engine.h"

/* Runs this program with those words, up to a NULL, waits for its end, and adds its stdout to out. It reports errors on
 * stderr; *ret_code is its exit code. Signals that stop a run are forwarded to it. */
int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err);

/* Reads the step time from the --json output of `dptrain bench` or `dptrain doctor`. ERR_CORRUPT: no steps. */
int child_pace(const struct buf *text, struct step_time *ret, struct err *err);

/* The folder of a run that a job has just recorded. */
int recorded_run(const struct job *job, const char *run_id, struct dptrack_found *ret, struct err *err); /* ERR_IO */

/* Numbers in JSON, which has neither NaN nor infinity. */
static inline json_t *real_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

#endif
