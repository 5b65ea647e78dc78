/* SPDX-License-Identifier: Apache-2.0 */
/* permute.h: a keyed permutation of 0 … n-1 without a table: any position in constant time, the same on every
 * machine. It is a balanced Feistel network of six rounds over the next even power of two (Luby and Rackoff 1988).
 * Results >= n are permuted again until one is below n (cycle walking, Black and Rogaway 2002). */
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
