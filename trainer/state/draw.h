/* draw.h: first values that no file gives. */
#ifndef DPT_STATE_DRAW_H
#define DPT_STATE_DRAW_H

#include "trainer/config/config.h"
#include "trainer/models/models.h"
#include "trainer/state/tensors.h"

/* Every persistent tensor but those that initial_load fills gets its first values, keyed by (seed, name, element): the
 * same for any number of ranks, whatever each of them holds, for any threads and on any processor. The slabs are there,
 * zeroed. */
int draw_values(const struct tensors *s, const struct run_config *cfg, const struct model *m, struct err *err);

#endif
