/* whole.h: the memory of one configuration of a search as its strategy's own passes plan it, for the whole model: what
 * formulas fed with two and three blocks said of it is then checked. Nothing runs and no tensor is allocated. */
#ifndef DPT_TOOLS_WHOLE_H
#define DPT_TOOLS_WHOLE_H

#include "trainer/advise/advise.h"
#include "trainer/run/engine.h"

/* Fills bytes and host_bytes of *ret: without what checkpoints take. *work grows by the squares of its programs' items,
 * as the time does. job->cfg: of that configuration, resolved. stage: of a pipeline, the one that needs most by
 * formula; its ends are planned too, the neediest counts. ERR_USAGE, ERR_UNSUPPORTED: it cannot be trained so. */
int whole_plan(struct advise_cost *ret, double *work, const struct job *job, int stage, struct err *err);

#endif
