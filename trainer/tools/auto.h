/* auto.h: `dptrain plan --auto`: the configurations of one global batch, ranked, for this machine or for one that a
 * hardware file describes; `dptrain train --auto` takes the best that runs here. */
#ifndef DPT_TOOLS_AUTO_H
#define DPT_TOOLS_AUTO_H

#include "trainer/run/engine.h"

/* A table, or with --json an object, to out. job->cfg is resolved. */
int auto_plan(const struct job *job, struct buf *out, struct err *err);

/* Writes the best plan's flags into job->cfg, which is not resolved yet; global batch and precision stay. */
int auto_choose(struct job *job, struct err *err);

#endif
