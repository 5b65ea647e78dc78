/* whole.h: the memory of one configuration of a search, planned by the passes of its strategy for the whole model. It
 * replaces the estimate of the formulas. Nothing runs and no tensor is allocated. */
#ifndef DPT_TOOLS_WHOLE_H
#define DPT_TOOLS_WHOLE_H

#include "trainer/advise/advise.h"
#include "trainer/run/engine.h"

/* Fills bytes and host_bytes of *ret, without those of checkpoints. Adds the squares of the numbers of items of its
 * programs to *work, as a measure of time. job->cfg: the configuration, resolved. stage: the stage of a pipeline that
 * needs most by formula; the first and last stage are planned too, and the maximum counts. ERR_USAGE, ERR_UNSUPPORTED:
 * the configuration is impossible. */
int whole_plan(struct advise_cost *ret, double *work, const struct job *job, int stage, struct err *err);

#endif
