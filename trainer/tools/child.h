/* child.h: dptrain, started anew: what it prints on stdout. */
#ifndef DPT_TOOLS_CHILD_H
#define DPT_TOOLS_CHILD_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

/* Runs this program with those words, up to a NULL, and waits for its end. What went wrong there it has said itself, on
 * stderr; *ret_code is its exit code. */
int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err);

#endif
