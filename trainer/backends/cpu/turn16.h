/* SPDX-License-Identifier: Apache-2.0 */
/* turn16.h: transposes 16 x 16 floats in registers. Include it where AVX-512 is the target, after immintrin.h and
 * INLINE. */
#ifndef DPT_BACKENDS_CPU_TURN16_H
#define DPT_BACKENDS_CPU_TURN16_H

INLINE __m512 pd_low(__m512 a, __m512 b)
{
	return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

INLINE __m512 pd_high(__m512 a, __m512 b)
{
	return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/* Transposes 16 x 16: first 4 x 4 within quarters of a vector, then the quarters. */
INLINE void turn_16(__m512 *m)
{
	__m512 u[LANES];

#pragma GCC unroll 4
	for (int g = 0; g < LANES; g += 4) {
		__m512 a = _mm512_unpacklo_ps(m[g], m[g + 1]), b = _mm512_unpackhi_ps(m[g], m[g + 1]);
		__m512 c = _mm512_unpacklo_ps(m[g + 2], m[g + 3]), d = _mm512_unpackhi_ps(m[g + 2], m[g + 3]);

		u[g] = pd_low(a, c);
		u[g + 1] = pd_high(a, c);
		u[g + 2] = pd_low(b, d);
		u[g + 3] = pd_high(b, d);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		__m512 a = _mm512_shuffle_f32x4(u[i], u[4 + i], 0x44), b = _mm512_shuffle_f32x4(u[i], u[4 + i], 0xee);
		__m512 c = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0x44),
		       d = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0xee);

		m[i] = _mm512_shuffle_f32x4(a, c, 0x88);
		m[4 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
		m[8 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
		m[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
	}
}

#endif
