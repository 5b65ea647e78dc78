/* against.h: `dptrain bench --against FLAGS`: the same measurement with and without further flags, in turn. */
#ifndef DPT_TOOLS_AGAINST_H
#define DPT_TOOLS_AGAINST_H

#include "trainer/run/engine.h"

/* Whether --against asks for it; a blank one does not. */
bool against_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` anew for every round and side, and prints what the flags of --against change. The exit code;
 * negative with err. */
int against_main(const struct job *job, struct err *err);

#endif
