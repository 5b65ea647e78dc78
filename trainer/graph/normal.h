/* SPDX-License-Identifier: Apache-2.0 */
/* normal.h: bulk normal draws: bit-identical to rng_normal, in a tenth of its time. */
#ifndef DPT_GRAPH_NORMAL_H
#define DPT_GRAPH_NORMAL_H

#include <stdint.h>

#include "trainer/graph/rng.h"

/* Sets to[i] = (float)(scale * rng_normal(key, first + i)) for i < n. The result is the same on every processor.
 * Thread-safe. */
void normal_fill(float *to, int64_t n, struct rng_key key, uint64_t first, double scale);

#endif
