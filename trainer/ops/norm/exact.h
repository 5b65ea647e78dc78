/* exact.h: sums of doubles without rounding: the same bits in whatever order and parts the terms are added. A
 * fixed-point number wide enough for every finite double, in words of 32 bits that lie in 64 each, so that 2^31 terms,
 * and then whole numbers word by word, can be added before anything is carried (after Neal, "Fast exact summation using
 * small and large superaccumulators", 2015). For terms that are not negative. */
#ifndef DPT_OPS_NORM_EXACT_H
#define DPT_OPS_NORM_EXACT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXACT_LIMBS 68 /* of 2^(32 i - 1074) each */
#define EXACT_ODD 68   /* word that counts NaNs, and in its upper half infinities */
#define EXACT_WORDS 72 /* of a whole number: i64, a multiple of a cache line */

static inline void exact_add(int64_t *w, double v)
{
	uint64_t bits, exponent, fraction;
	unsigned __int128 shifted;
	unsigned place;

	memcpy(&bits, &v, sizeof(bits));
	exponent = bits >> 52 & 0x7ff;
	fraction = bits & ((UINT64_C(1) << 52) - 1);
	if (exponent == 0x7ff) {
		w[EXACT_ODD] += fraction ? 1 : INT64_C(1) << 32;
		return;
	}
	place = exponent ? (unsigned)exponent - 1 : 0; /* of the last bit, above 2^-1074 */
	shifted = (unsigned __int128)(exponent ? fraction | UINT64_C(1) << 52 : fraction) << place % 32;
	w[place / 32] += (int64_t)(uint32_t)shifted;
	w[place / 32 + 1] += (int64_t)(uint32_t)(shifted >> 32);
	w[place / 32 + 2] += (int64_t)(uint32_t)(shifted >> 64);
}

/* To the nearest double. */
static inline double exact_value(const int64_t *w)
{
	uint64_t limb[EXACT_LIMBS + 2] = { 0 }, carry = 0; /* two zeros in front */
	unsigned __int128 upper;
	uint64_t rest = 0;
	int top = EXACT_LIMBS + 1;

	if (w[EXACT_ODD])
		return (uint32_t)w[EXACT_ODD] ? (double)NAN : (double)INFINITY;
	for (int i = 0; i < EXACT_LIMBS; i++) {
		carry += (uint64_t)w[i];
		limb[i + 2] = (uint32_t)carry;
		carry >>= 32;
	}
	while (top > 2 && !limb[top])
		top--;
	for (int i = 0; i < top - 2; i++)
		rest |= limb[i];
	upper = (unsigned __int128)limb[top] << 64 | limb[top - 1] << 32 | limb[top - 2] | (rest != 0);
	return ldexp((double)upper, 32 * (top - 4) - 1074);
}

#endif
