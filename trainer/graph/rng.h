/* rng.h: counter-based random numbers (Philox-4x32-10, Salmon et al. 2011): a pure function of key and counter, so the
 * draw for an element does not depend on who draws it, in what order, or where a run was resumed. */
#ifndef DPT_GRAPH_RNG_H
#define DPT_GRAPH_RNG_H

#include <stdint.h>

struct rng_key {
	uint64_t seed;
	uint64_t stream; /* what is drawn: rng_stream("shuffle") ^ epoch, a tensor's name, … */
};

uint64_t rng_stream(const char *name);                          /* FNV-1a of a name */
void rng_block(struct rng_key key, uint64_t counter, uint32_t out[4]); /* 128 bits for one counter value */
uint64_t rng_u64(struct rng_key key, uint64_t counter);
double rng_uniform(struct rng_key key, uint64_t counter);       /* [0, 1), 53 bits */
double rng_normal(struct rng_key key, uint64_t counter);        /* Box-Muller on one block */
uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n); /* [0, n), n > 0, unbiased to 2^-64 */

#endif
