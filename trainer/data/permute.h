/* permute.h: a permutation of 0 … n-1 by a key, without a table: any place of it in a constant time and the same on
 * every machine. A balanced Feistel network of six rounds over the next even power of two (Luby and Rackoff 1988),
 * followed until it falls below n (cycle walking, Black and Rogaway 2002). */
#ifndef DPT_DATA_PERMUTE_H
#define DPT_DATA_PERMUTE_H

#include <stdint.h>

#include "trainer/graph/rng.h"

#define PERMUTE_ROUNDS 6

struct permute {
	uint64_t n;
	int half; /* bits */
	uint64_t key[PERMUTE_ROUNDS];
};

void permute_init(struct permute *p, struct rng_key key, uint64_t n); /* n < 2^62 */
uint64_t permute_at(const struct permute *p, uint64_t place);	      /* place < n */

#endif
