/* draw.h: initial values of tensors that no file provides. */
#ifndef DPT_STATE_DRAW_H
#define DPT_STATE_DRAW_H

#include "trainer/config/config.h"
#include "trainer/models/models.h"
#include "trainer/state/tensors.h"

/* Gives every persistent tensor its initial values, except those that initial_load fills. They are keyed by (seed,
 * name, element): the same for any number of ranks and threads, any partition and any processor. The slabs must exist,
 * zeroed. */
int draw_values(const struct tensors *s, const struct run_config *cfg, const struct model *m, struct err *err);

#endif
