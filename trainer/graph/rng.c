/* rng.c: Philox-4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3"). */
#include "trainer/graph/rng.h"

#include <math.h>

#define PHILOX_ROUNDS 10

uint64_t rng_stream(const char *name)
{
	uint64_t h = 14695981039346656037u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	return h;
}

/* The seed is the key; the stream fills the upper half of the 128-bit counter. */
void rng_block(struct rng_key key, uint64_t counter, uint32_t out[4])
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

static uint64_t pair(const uint32_t *w)
{
	return (uint64_t)w[1] << 32 | w[0];
}

static double unit(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

uint64_t rng_u64(struct rng_key key, uint64_t counter)
{
	uint32_t w[4];

	rng_block(key, counter, w);
	return pair(w);
}

double rng_uniform(struct rng_key key, uint64_t counter)
{
	return unit(rng_u64(key, counter));
}

double rng_normal(struct rng_key key, uint64_t counter)
{
	uint32_t w[4];
	double u, v;

	rng_block(key, counter, w);
	u = 1 - unit(pair(w)); /* (0, 1]: the logarithm stays finite */
	v = unit(pair(w + 2));
	return sqrt(-2 * log(u)) * cos(6.283185307179586476925 * v);
}

uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n)
{
	return (uint64_t)((unsigned __int128)rng_u64(key, counter) * n >> 64);
}
