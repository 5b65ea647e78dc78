/* SPDX-License-Identifier: Apache-2.0 */
/* permute.c: the Feistel network of permute.h. */
#include "trainer/data/permute.h"

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
