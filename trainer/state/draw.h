/* draw.h: first values that no file gives. */
#ifndef DPT_ENGINE_DRAW_H
#define DPT_ENGINE_DRAW_H

#include "trainer/run/engine.h"

/* Every persistent tensor but those that initial_load fills gets its first values, keyed by (seed, name, element): the same
 * for any number of ranks, threads and on any processor. The slabs are there, zeroed. */
int draw_values(struct engine *e, struct err *err);

#endif
