/* cached_step.h: steps on a batch that is there already: what a step takes that waits for no loader and between which nothing
 * is evaluated or saved. A diagnosis tells by it what waits cost besides their own time: caches that have gone cold. */
#ifndef DPT_RUN_CACHED_STEP_H
#define DPT_RUN_CACHED_STEP_H

#include "trainer/run/engine.h"

#define CACHED_STEP_S 1.0 /* about so long they are made */

struct cached_step;
struct exec_call;
struct loader_batch;

int cached_step_new(struct cached_step **ret, struct err *err); /* ERR_NOMEM */
void cached_step_free(struct cached_step *b);			  /* NULL is fine */

/* Before a batch of the first step is given to p: keeps what it is given. Batches of other steps are passed over. */
int cached_step_keep(struct cached_step *b, const struct loader_batch *of, const struct program *p, const struct exec_call *call,
	      struct err *err);

/* Collective, where no step is under way: makes such steps, which change parameters as others do. *ret: seconds of one,
 * the mean of them; NaN where no first step was kept. */
int cached_step_run(const struct engine *e, double *ret, struct err *err);

#endif
