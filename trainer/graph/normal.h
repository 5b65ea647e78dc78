/* normal.h: many normal draws at once: the values of rng_normal, to the bit, in a tenth of its time. */
#ifndef DPT_GRAPH_NORMAL_H
#define DPT_GRAPH_NORMAL_H

#include <stdint.h>

#include "trainer/graph/rng.h"

/* to[i] = (float)(scale * rng_normal(key, first + i)) for i < n, on any processor. Any thread. */
void normal_fill(float *to, int64_t n, struct rng_key key, uint64_t first, double scale);

#endif
