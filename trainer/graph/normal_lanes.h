/* SPDX-License-Identifier: Apache-2.0 */
/* normal_lanes.h: vectorised draws in the compiler's own vector notation. normal.c includes this file once per
 * instruction set (no include guard on purpose). It defines LANES(name), the vector width and the operations that the
 * notation lacks; all are undefined at the end.
 * Logarithm, sine and cosine are fdlibm's polynomials (Sun Microsystems, 1993). */

typedef double LANES(f64) __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t LANES(u64) __attribute__((vector_size(LANES_BYTES)));
typedef float LANES(f32) __attribute__((vector_size(LANES_BYTES / 2)));
typedef int32_t LANES(i32) __attribute__((vector_size(LANES_BYTES / 2)));

#define VD LANES(f64)
#define VU LANES(u64)

/* Joins 32 and 21 bits to a number in [0, 1). Adding 2^52 makes them exact integers. */
#define UNIT(high, low)                                                                                                \
	(((VD)(((high)&0xFFFFFFFFu) | TWO_52_BITS) - 0x1p52) * 0x1p-32 +                                               \
	 ((VD)(((low)&0xFFFFFFFFu) >> 11 | TWO_52_BITS) - 0x1p52) * 0x1p-53)

/* Vector form of rng_block. Only the lower 32 of each lane's 64 bits are used. */
static inline __attribute__((always_inline)) void LANES(uniform)(struct rng_key key, uint64_t first, VD *ret_u,
								 VD *ret_v)
{
	const VU a = (VU){ 0 } + 0xD2511F53u, b = (VU){ 0 } + 0xCD9E8D57u;
	VU c0 = first + (VU)LANES_STEP, c1 = c0 >> 32, c2 = (VU){ 0 } + key.stream, c3 = c2 >> 32;
	uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);

#pragma GCC unroll 10
	for (int round = 0; round < 10; round++) {
		VU p0 = LANES_MUL(c0, a), p1 = LANES_MUL(c2, b);

		c0 = (p1 >> 32) ^ c1 ^ k0;
		c2 = (p0 >> 32) ^ c3 ^ k1;
		c1 = p1;
		c3 = p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	*ret_u = UNIT(c1, c0);
	*ret_v = UNIT(c3, c2);
}

/* Replaces *x in (0, 1] by its logarithm: *x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2). */
static inline __attribute__((always_inline)) void LANES(log)(VD *x)
{
	VU e = (VU)*x - SQRT_HALF_BITS; /* e >> 52 is k in 12 bits */
	VD f = (VD)((e & 0xFFFFFFFFFFFFFu) + SQRT_HALF_BITS) - 1;
	VD k = (VD)((e >> 52 ^ 0x800) | TWO_52_BITS) - (0x1p52 + 0x800);
	VD s = f / (2 + f), z = s * s, w = z * z, half = 0.5 * f * f, r;

	r = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)) +
	    z * (6.666666666666735130e-01 +
		 w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
	*x = k * 6.93147180369123816490e-01 - ((half - (s * (half + r) + k * 1.90821492927058770002e-10)) - f);
}

/* Replaces *x in [0, 1) by cos(2 pi *x), computed as the sine or cosine of an angle of at most pi / 4. */
static inline __attribute__((always_inline)) void LANES(cos_turns)(VD *x)
{
	VD quarter = (4 * *x + 0x1.8p52) - 0x1.8p52, w = (*x - 0.25 * quarter) * 6.283185307179586476925, z = w * w;
	VU q = (VU)(quarter + 0x1p52), odd = 0 - (q & 1), sign = (q + 1) << 62 & 0x8000000000000000u;
	VD sine, cosine;

	sine = -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10;
	sine = 8.33333333332248946124e-03 +
	       z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * sine));
	sine = w + w * z * (-1.66666666666666324348e-01 + z * sine);
	cosine = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11);
	cosine = 4.16666666666666019037e-02 +
		 z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * cosine));
	cosine = 1 - (0.5 * z - z * z * cosine);
	*x = (VD)((((VU)sine & odd) | ((VU)cosine & ~odd)) ^ sign);
}

/* Fills to[0 … n - 1]; n is a multiple of the width. Writes NaN where the rounding to float is in doubt and returns
 * true if there is such a value. */
static bool LANES(draw)(float *to, int64_t n, struct rng_key key, uint64_t first, double scale)
{
	LANES(i32) doubts = { 0 };
	int32_t all = 0;

	for (int64_t i = 0; i < n; i += LANES_BYTES / 8) {
		LANES(f32) least, most;
		LANES(i32) differ;
		VD u, v, margin;

		LANES(uniform)(key, first + (uint64_t)i, &u, &v);
		u = 1 - u;
		LANES(log)(&u);
		LANES(cos_turns)(&v);
		u = scale * LANES_SQRT(-2 * u);
		margin = DOUBT * u;
		least = __builtin_convertvector(u * v - margin, LANES(f32));
		most = __builtin_convertvector(u * v + margin, LANES(f32));
		differ = (LANES(i32))(least != most);
		doubts |= differ;
		least = (LANES(f32))((LANES(i32))least | differ);
		memcpy(to + i, &least, sizeof(least));
	}
	for (int i = 0; i < LANES_BYTES / 8; i++)
		all |= doubts[i];
	return all;
}

#undef UNIT
#undef VD
#undef VU
#undef LANES
#undef LANES_BYTES
#undef LANES_STEP
#undef LANES_MUL
#undef LANES_SQRT
