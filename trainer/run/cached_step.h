/* cached_step.h: times steps on a cached batch, without data loading, evaluation or checkpoints. `dptrain doctor`
 * compares them with normal steps: the difference beyond the waits themselves is the cost of cold caches. */
#ifndef DPT_RUN_CACHED_STEP_H
#define DPT_RUN_CACHED_STEP_H

#include "trainer/run/engine.h"

#define CACHED_STEP_S 1.0 /* seconds that such steps run, about */

struct cached_step;
struct exec_call;
struct loader_batch;

int cached_step_new(struct cached_step **ret, struct err *err); /* ERR_NOMEM */
void cached_step_free(struct cached_step *b);			  /* NULL is fine */

/* Called before a batch of the first step is passed to p: keeps its arguments. Ignores batches of other steps. */
int cached_step_keep(struct cached_step *b, const struct loader_batch *of, const struct program *p,
		     const struct exec_call *call, struct err *err);

/* Collective, while no step is in progress: runs such steps, which change parameters like others. *ret: mean seconds of
 * a step; NaN where no first step was kept. */
int cached_step_run(const struct engine *e, double *ret, struct err *err);

#endif
