/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h: counter-based random numbers (Philox-4x32-10, Salmon et al. 2011). A draw is a pure function of key and
 * counter. It does not depend on the thread or rank that draws, on the order of draws, or on where a run was
 * resumed. */
#ifndef DPT_GRAPH_RNG_H
#define DPT_GRAPH_RNG_H

#include <stdint.h>

#include "trainer/graph/host_device.h"

#define PHILOX_ROUNDS 10

struct rng_key {
	uint64_t seed;
	uint64_t stream; /* identifies the use: rng_stream("shuffle") ^ epoch, a tensor's name, … */
};

uint64_t rng_stream(const char *name); /* FNV-1a of a name */
uint64_t rng_u64(struct rng_key key, uint64_t counter);
double rng_uniform(struct rng_key key, uint64_t counter);	      /* [0, 1), 53 bits */
double rng_normal(struct rng_key key, uint64_t counter);	      /* Box-Muller on one block */
uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n); /* [0, n), n > 0, unbiased to 2^-64 */

/* 128 bits for one counter value. The seed is the key; the stream fills the upper half of the 128-bit counter. */
HOST_DEVICE_INLINE void rng_block(struct rng_key key, uint64_t counter, uint32_t out[4])
{
	uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
	uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
	uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/* ---- normal.c ----
 * Bulk normal draws: bit-identical to rng_normal, in a tenth of its time. */

/* Sets to[i] = (float)(scale * rng_normal(key, first + i)) for i < n. The result is the same on every processor.
 * Thread-safe. */
void normal_fill(float *to, int64_t n, struct rng_key key, uint64_t first, double scale);

/* ---- a keyed permutation ----
 * It permutes 0 … n-1 without a table: any position in constant time, the same on every machine. It is a
 * balanced Feistel network of six rounds over the next even power of two (Luby and Rackoff 1988). Results >= n are
 * permuted again until one is below n (cycle walking, Black and Rogaway 2002). */

#define PERMUTE_ROUNDS 6

struct permute {
	uint64_t n;
	int half; /* bits */
	uint64_t key[PERMUTE_ROUNDS];
};

void permute_init(struct permute *p, struct rng_key key, uint64_t n); /* n < 2^62 */
uint64_t permute_at(const struct permute *p, uint64_t place);	      /* place < n */

#endif
