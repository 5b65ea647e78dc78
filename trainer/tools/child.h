/* child.h: dptrain, started anew: what it prints on stdout, and the steps in it. */
#ifndef DPT_TOOLS_CHILD_H
#define DPT_TOOLS_CHILD_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/insight/step_time.h"

/* Runs this program with those words, up to a NULL, and waits for its end. What went wrong there it has said itself, on
 * stderr; *ret_code is its exit code. Signals that stop a run are handed on to it while it lives. */
int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err);

/* The pace of the steps that `dptrain bench` and `dptrain doctor` print with --json. ERR_CORRUPT: it has none. */
int child_pace(const struct buf *text, struct step_time *ret, struct err *err);

#endif
