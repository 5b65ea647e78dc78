/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c: Philox-4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3"). */
#include "trainer/graph/rng.h"

#include <math.h>

#include "tracker/base/hash.h"

uint64_t rng_stream(const char *name)
{
	return hash_fnv_text(HASH_FNV_BEGIN, name);
}

static uint64_t join_words(const uint32_t *w)
{
	return (uint64_t)w[1] << 32 | w[0];
}

static double to_unit_interval(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

uint64_t rng_u64(struct rng_key key, uint64_t counter)
{
	uint32_t w[4];

	rng_block(key, counter, w);
	return join_words(w);
}

double rng_uniform(struct rng_key key, uint64_t counter)
{
	return to_unit_interval(rng_u64(key, counter));
}

double rng_normal(struct rng_key key, uint64_t counter)
{
	uint32_t w[4];
	double u, v;

	rng_block(key, counter, w);
	u = 1 - to_unit_interval(join_words(w)); /* (0, 1]: the logarithm stays finite */
	v = to_unit_interval(join_words(w + 2));
	return sqrt(-2 * log(u)) * cos(6.283185307179586476925 * v);
}

uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n)
{
	return (uint64_t)((unsigned __int128)rng_u64(key, counter) * n >> 64);
}

/* ---- the keyed permutation ---- */

void permute_init(struct permute *p, struct rng_key key, uint64_t n)
{
	*p = (struct permute){ .n = n };
	while (n > 1 && (n - 1) >> (2 * p->half))
		p->half++;
	for (int i = 0; i < PERMUTE_ROUNDS; i++)
		p->key[i] = rng_u64(key, (uint64_t)i);
}

/* Mixes bits: each bit of x flips each result bit with probability 1/2 (finaliser of SplitMix64, Steele et al.
 * 2014). */
static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t apply_feistel(const struct permute *p, uint64_t x)
{
	uint64_t mask = (UINT64_C(1) << p->half) - 1, left = x >> p->half, right = x & mask;

	for (int i = 0; i < PERMUTE_ROUNDS; i++) {
		uint64_t next = left ^ (mix_bits(right + p->key[i]) & mask);

		left = right;
		right = next;
	}
	return left << p->half | right;
}

uint64_t permute_at(const struct permute *p, uint64_t place)
{
	if (p->n < 2)
		return 0;
	do
		place = apply_feistel(p, place);
	while (place >= p->n);
	return place;
}
