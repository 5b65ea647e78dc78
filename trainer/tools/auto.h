/* auto.h: `dptrain plan --auto`: ranks the configurations of one global batch, for this machine or for one that a
 * hardware file describes. `dptrain train --auto` uses the best one that runs here. */
#ifndef DPT_TOOLS_AUTO_H
#define DPT_TOOLS_AUTO_H

#include "trainer/run/engine.h"

/* Adds a table, or with --json an object, to out. job->cfg is resolved. */
int auto_plan(const struct job *job, struct buf *out, struct err *err);

/* Sets the flags of the best plan in job->cfg, which is not resolved yet. Global batch and precision stay. */
int auto_choose(struct job *job, struct err *err);

#endif
