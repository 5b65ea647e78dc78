/* window.h: an order that reads a set nearly from its beginning to its end, in 64 lanes at once, and mixes it on the
 * way: a pure function of key, N and the global batch G, without a table.
 *
 * The places of a batch are shared out: place j of it takes from lane floor(j 64 / G). So lane l has w places of each
 * batch, side by side; ranks, which take contiguous parts of a batch, take from different lanes. Lanes lie one behind
 * the other in 0 … N-1, each as long as the places of an epoch that take from it. The places of one lane take its
 * samples permuted within windows: as many batches as hold `window` samples over all lanes. */
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
	int64_t batches; /* of a window, >= 1 */
};

static inline int64_t window_lane_number(int64_t place, int64_t global)
{
	return (int64_t)((__int128)place * WINDOW_LANES / global);
}

void window_init(struct window *w, const struct window_opts *o);

/* What position (of the epoch: batch * G + j) takes, from 0 to n - 1; or, for skip > 0, the position that is `skip`
 * further in its lane, around the lane's end. */
int64_t window_at(const struct window *w, int64_t position, int64_t skip);

int64_t window_lane(const struct window *w, int64_t position); /* how many samples its lane has */

#endif
