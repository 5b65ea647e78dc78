/* SPDX-License-Identifier: Apache-2.0 */
/* exact.h: exact sums of doubles: the same bits for any order and grouping of terms. A sum is a fixed-point number wide
 * enough for every finite double, in 32-bit limbs stored in 64-bit words. Up to 2^31 terms, and then whole sums word by
 * word, can be added before carries are propagated (after Neal, "Fast exact summation using small and large
 * superaccumulators", 2015). Terms must not be negative. */
#ifndef DPT_OPS_NORM_EXACT_H
#define DPT_OPS_NORM_EXACT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "trainer/graph/host_device.h"

#define EXACT_LIMBS 68 /* limb i has weight 2^(32 i - 1074) */
#define EXACT_ODD 68   /* word that counts NaNs, and infinities in its upper half */
#define EXACT_WORDS 72 /* i64 words of a sum: a multiple of a cache line */

/* The three words that a term adds to, starting at `word`. */
struct exact_term {
	int word;
	int64_t add[3];
};

HOST_DEVICE_INLINE struct exact_term exact_term_of(double v)
{
	struct exact_term t = { EXACT_ODD, { 0, 0, 0 } };
	uint64_t bits, exponent, fraction, lower;
	unsigned place;

	memcpy(&bits, &v, sizeof(bits));
	exponent = bits >> 52 & 0x7ff;
	fraction = bits & (((uint64_t)1 << 52) - 1);
	if (exponent == 0x7ff) {
		t.add[0] = fraction ? 1 : (int64_t)1 << 32;
		return t;
	}
	place = exponent ? (unsigned)exponent - 1 : 0; /* position of the last bit above 2^-1074 */
	fraction |= exponent ? (uint64_t)1 << 52 : 0;
	lower = fraction << place % 32;
	t.word = (int)(place / 32);
	t.add[0] = (uint32_t)lower;
	t.add[1] = (int64_t)(lower >> 32);
	t.add[2] = place % 32 ? (int64_t)(fraction >> (64 - place % 32)) : 0;
	return t;
}

static inline void exact_add(int64_t *w, double v)
{
	const struct exact_term t = exact_term_of(v);

	for (int i = 0; i < 3; i++)
		w[t.word + i] += t.add[i];
}

/* Rounds the sum to the nearest double. */
HOST_DEVICE_INLINE double exact_value(const int64_t *w)
{
	uint64_t limb[EXACT_LIMBS + 2] = { 0 }, carry = 0; /* two zero limbs below */
	uint64_t upper, rest = 0;
	int top = EXACT_LIMBS + 1, shift = 0;

	if (w[EXACT_ODD])
		return (uint32_t)w[EXACT_ODD] ? (double)NAN : (double)INFINITY;
	for (int i = 0; i < EXACT_LIMBS; i++) {
		carry += (uint64_t)w[i];
		limb[i + 2] = (uint32_t)carry;
		carry >>= 32;
	}
	while (top > 2 && !limb[top])
		top--;
	if (!limb[top])
		return 0;
	for (int i = 0; i < top - 2; i++)
		rest |= limb[i];
	upper = limb[top] << 32 | limb[top - 1];
	while (!(upper << shift >> 63))
		shift++;
	rest |= (uint32_t)(limb[top - 2] << shift);
	upper = upper << shift | limb[top - 2] << shift >> 32 | (rest != 0);
	return ldexp((double)upper, 32 * (top - 3) - shift - 1074);
}

#endif
