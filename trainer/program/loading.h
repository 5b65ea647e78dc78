/* loading.h: the loader of a run's samples: how many threads it has, where its batches lie. */
#ifndef DPT_ENGINE_LOADING_H
#define DPT_ENGINE_LOADING_H

#include "trainer/run/engine.h"

int loading_workers(const struct engine *e); /* threads, at most */

/* Of all batches that are in flight at once: what is planned for them. The samplers are made. */
size_t loading_bytes(const struct engine *e, enum split split);

/* Of training: from e->step on; of evaluation: once through. In the memory that was planned, if there is any. */
int loading_open(struct loader **ret, struct engine *e, enum split split, struct err *err);

#endif
