/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: what several subcommands share: dptrain as a child process, the run that a job has recorded, and progress
 * lines. */
#ifndef DPT_TOOLS_CHILD_H
#define DPT_TOOLS_CHILD_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
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

/* Progress of a long task: a line on stderr every PROGRESS_S seconds; a shorter task prints nothing. */
#define PROGRESS_S 5

struct progress {
	double begun_s, said_s; /* clock_mono_s */
};

void progress_begin(struct progress *p);

/* Returns true if it is time for a line. */
bool progress_due(struct progress *p);

/* Prints a line if it is time: "120000 of 1281167 training samples, ETA 0:00:42". whole >= done. */
void progress_say(struct progress *p, int64_t done, int64_t whole, const char *what);

/* Numbers in JSON, which has neither NaN nor infinity. */
static inline json_t *real_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

#endif
