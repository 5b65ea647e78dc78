/* window.h: a shuffled order that reads a set nearly sequentially, in 64 lanes at once: a pure function of key, N and
 * the global batch G, without a table.
 *
 * Position j of a batch belongs to lane floor(j 64 / G), so lane l has w consecutive positions of each batch. Ranks
 * take contiguous parts of a batch, so they read different lanes. The lanes divide 0 … N-1 into consecutive ranges,
 * each as long as the lane's positions in an epoch. A lane's samples are permuted within windows: as many batches as
 * have `window` samples over all lanes. */
#ifndef DPT_DATA_WINDOW_H
#define DPT_DATA_WINDOW_H

#include <stdint.h>

#include "trainer/graph/rng.h"

#define WINDOW_LANES 64

struct window_opts {
	int64_t n, global; /* >= 1 */
	int64_t window;	   /* samples, >= 1 */
	struct rng_key key;
};

struct window {
	struct window_opts o;
	int64_t batches; /* per window, >= 1 */
};

static inline int64_t window_lane_number(int64_t place, int64_t global)
{
	return (int64_t)((__int128)place * WINDOW_LANES / global);
}

/* Initialises *w for one epoch, whose key is o->key. */
void window_init(struct window *w, const struct window_opts *o);

/* Returns the sample (0 to n - 1) at a position of the epoch (batch * G + j). skip > 0: the sample `skip` positions
 * further in its lane, cyclically. */
int64_t window_at(const struct window *w, int64_t position, int64_t skip);

int64_t window_lane(const struct window *w, int64_t position); /* number of samples in the position's lane */

#endif
