/* child.h: runs dptrain as a child process, and reads steps from its output. */
#ifndef DPT_TOOLS_CHILD_H
#define DPT_TOOLS_CHILD_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/insight/step_time.h"

/* Runs this program with those words, up to a NULL, waits for its end, and adds its stdout to out. It reports errors on
 * stderr; *ret_code is its exit code. Signals that stop a run are forwarded to it. */
int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err);

/* Reads the step time from the --json output of `dptrain bench` or `dptrain doctor`. ERR_CORRUPT: no steps. */
int child_pace(const struct buf *text, struct step_time *ret, struct err *err);

#endif
