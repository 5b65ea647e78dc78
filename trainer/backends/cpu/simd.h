/* SPDX-License-Identifier: Apache-2.0 */
/* simd.h: vectors of LANES elements, as many as a register of the instruction set has (larger ones the compiler
 * keeps in memory, at a third of the speed and less): types, loads, stores and arithmetic, compiled once per set
 * by each.h (no include guard on purpose). Elements are f32, or bf16 (`bf`) widened on load and rounded to nearest
 * even on store. `bf` and the like are constants at every call, so each use costs what its type costs. A file
 * whose data come in 16 lanes whatever the set defines CPU_LANES as that. */

#undef LANES
#undef VEC_NUMBERS
#if defined(CPU_HAS_AVX512) || defined(CPU_LANES)
#define LANES 16
#define VEC_NUMBERS { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#elif defined(CPU_HAS_AVX2)
#define LANES 8
#define VEC_NUMBERS { 0, 1, 2, 3, 4, 5, 6, 7 }
#else
#define LANES 4
#define VEC_NUMBERS { 0, 1, 2, 3 }
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef uint8_t vb __attribute__((vector_size(LANES)));
typedef float vhalf __attribute__((vector_size(2 * LANES))); /* half as many elements */
typedef double vd __attribute__((vector_size(4 * LANES)));   /* likewise */

typedef float vf_u __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t vh_u __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint8_t vb_u __attribute__((vector_size(LANES), aligned(1), may_alias));

/* 0, 1, 2 ... */
VEC_INLINE vi vlane(void)
{
	return (vi)VEC_NUMBERS;
}

VEC_INLINE vf vset(float x)
{
	return x - (vf){ 0 };
}

/* Lanes of a where the mask is all ones, of b where it is zero. */
VEC_INLINE vf vblend(vi mask, vf a, vf b)
{
	return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* Returns b if either is NaN. vmax does the same. */
VEC_INLINE vf vmin(vf a, vf b)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(CPU_HAS_AVX2) && !defined(CPU_LANES)
	return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
	return vblend(a < b, a, b);
#endif
}

VEC_INLINE vf vmax(vf a, vf b)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(CPU_HAS_AVX2) && !defined(CPU_LANES)
	return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return vblend(a > b, a, b);
#endif
}

/* v where a > b, else 0. */
VEC_INLINE vf vkeep_gt(vf v, vf a, vf b)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ), (__m512)v);
#else
	return (vf)((vi)v & (a > b));
#endif
}

VEC_INLINE vf vsqrt(vf v)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_sqrt_ps((__m512)v);
#elif defined(CPU_HAS_AVX2) && !defined(CPU_LANES)
	return (vf)_mm256_sqrt_ps((__m256)v);
#else
	for (int i = 0; i < LANES; i++)
		v[i] = __builtin_sqrtf(v[i]);
	return v;
#endif
}

/* max(v, 0), NaN stays NaN. */
VEC_INLINE vf vrelu(vf v)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NLE_UQ), (__m512)v);
#else
	return (vf)((vi)v & ~(v <= 0));
#endif
}

/* Where x is larger than *best, or NaN while *best is not, stores x in *best and its index in `place`. */
VEC_INLINE void vbest(vf *best, vi *where, vf x, int place)
{
#ifdef CPU_HAS_AVX512
	__mmask16 number = _mm512_cmp_ps_mask((__m512)*best, (__m512)*best, _CMP_ORD_Q);
	__mmask16 wins = _mm512_mask_cmp_ps_mask(number, (__m512)x, (__m512)*best, _CMP_NLE_UQ);

	*best = (vf)_mm512_mask_mov_ps((__m512)*best, wins, (__m512)x);
	*where = (vi)_mm512_mask_set1_epi32((__m512i)*where, wins, place);
#else
	vi wins = ~(x <= *best) & (*best == *best);

	*best = vblend(wins, x, *best);
	*where = (wins & place) | (~wins & *where);
#endif
}

/* Returns sum + v in the lanes whose byte equals `place`. */
VEC_INLINE vf vadd_where(vf sum, vb bytes, int place, vf v)
{
#ifdef CPU_HAS_AVX512
	__mmask16 mine = _mm_cmpeq_epi8_mask((__m128i)bytes, _mm_set1_epi8((char)place));

	return (vf)_mm512_mask_add_ps((__m512)sum, mine, (__m512)sum, (__m512)v);
#else
	vi mine = __builtin_convertvector(bytes, vi) == place;

	return sum + (vf)((vi)v & mine);
#endif
}

VEC_INLINE vh vto_bf16(vf v)
{
#ifdef CPU_HAS_BF16
	return (vh)_mm512_cvtneps_pbh((__m512)v);
#else
	vu u = (vu)v;
	vu even = u + 0x7fff + ((u >> 16) & 1);
	vu nan = u | 0x400000;
	vu is_nan = (vu)(v != v);

	return __builtin_convertvector(((is_nan & nan) | (~is_nan & even)) >> 16, vh);
#endif
}

VEC_INLINE vf vload(const void *p, int64_t i, bool bf)
{
	if (bf)
		return (vf)(__builtin_convertvector(*(const vh_u *)((const uint16_t *)p + i), vu) << 16);
	return *(const vf_u *)((const float *)p + i);
}

VEC_INLINE void vstore(void *p, int64_t i, vf v, bool bf)
{
	if (bf)
		*(vh_u *)((uint16_t *)p + i) = vto_bf16(v);
	else
		*(vf_u *)((float *)p + i) = v;
}

/* Like vstore, but bypasses the caches if the vector is aligned, so that the destination is not read first. Call
 * vpast_end at the end of such a loop, before others read. */
VEC_INLINE void vstore_past(void *p, int64_t i, vf v, bool bf)
{
#ifdef CPU_HAS_AVX512
	if (bf)
		_mm256_stream_si256((__m256i *)((uint16_t *)p + i), (__m256i)vto_bf16(v));
	else
		_mm512_stream_ps((float *)p + i, (__m512)v);
#else
	vstore(p, i, v, bf);
#endif
}

VEC_INLINE void vpast_end(void)
{
#ifdef CPU_HAS_AVX512
	_mm_sfence();
#endif
}

/* The first n lanes (0 < n < LANES); the others read as zero and are not written. */
VEC_INLINE vf vload_n(const void *p, int64_t i, int n, bool bf)
{
#ifdef CPU_HAS_AVX512
	__mmask16 m = (__mmask16)((1u << n) - 1);

	if (bf)
		return (vf)_mm512_slli_epi32(
			_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, (const uint16_t *)p + i)), 16);
	return (vf)_mm512_maskz_loadu_ps(m, (const float *)p + i);
#else
	if (bf) {
		uint16_t h[LANES] = { 0 };

		memcpy(h, (const uint16_t *)p + i, (size_t)n * sizeof(*h));
		return vload(h, 0, true);
	}
	float f[LANES] = { 0 };

	memcpy(f, (const float *)p + i, (size_t)n * sizeof(*f));
	return vload(f, 0, false);
#endif
}

VEC_INLINE void vstore_n(void *p, int64_t i, vf v, int n, bool bf)
{
	if (bf) {
		uint16_t h[LANES];

		vstore(h, 0, v, true);
		memcpy((uint16_t *)p + i, h, (size_t)n * sizeof(*h));
	} else {
		float f[LANES];

		vstore(f, 0, v, false);
		memcpy((float *)p + i, f, (size_t)n * sizeof(*f));
	}
}

/* n >= LANES: a whole vector. */
VEC_INLINE vf vload_any(const void *p, int64_t i, int64_t n, bool bf)
{
	return n >= LANES ? vload(p, i, bf) : vload_n(p, i, (int)n, bf);
}

VEC_INLINE void vstore_any(void *p, int64_t i, vf v, int64_t n, bool bf)
{
	if (n >= LANES)
		vstore(p, i, v, bf);
	else
		vstore_n(p, i, v, (int)n, bf);
}

VEC_INLINE float vsum(vf v)
{
	float s = 0, f[LANES];

	memcpy(f, &v, sizeof(f));
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int i = 0; i < w; i++)
			f[i] += f[i + w];
	s = f[0];
	return s;
}

/* Adds the halves, then neighbours. */
VEC_INLINE double vsum_d(vd v)
{
	double d[LANES / 2];

	memcpy(d, &v, sizeof(d));
	for (int i = 0; i < LANES / 4; i++)
		d[i] += d[i + LANES / 4];
	for (int n = LANES / 8; n > 0; n /= 2)
		for (int i = 0; i < n; i++)
			d[i] = d[2 * i] + d[2 * i + 1];
	return d[0];
}

VEC_INLINE float vmax_lane(vf v)
{
	float f[LANES];

	memcpy(f, &v, sizeof(f));
	for (int i = 1; i < LANES; i++)
		f[0] = f[i] > f[0] ? f[i] : f[0];
	return f[0];
}

/* x 2^n for whole n in [-151, 129]. */
VEC_INLINE vf vscale(vf x, vf n)
{
#ifdef CPU_HAS_AVX512
	return (vf)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
	/* in two factors, which stay within the exponent's range */
	vi e = __builtin_convertvector(n, vi), half = e >> 1;

	return x * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
#endif
}

/* e^x within 1 ulp or so; 0 and infinity where it leaves the range of normal numbers; NaN stays NaN. x = n ln 2 + r,
 * |r| <= ln 2 / 2, e^r by its Taylor polynomial of degree 7 (remainder below 6e-9 of the value). */
VEC_INLINE vf vexp(vf x)
{
	const vf magic = vset(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
	vf n, r, p;

	x = vmin(vset(89), vmax(vset(-104), x));
	n = x * 1.44269504f + magic - magic;
	r = x - n * 0.693145752f;
	r = r - n * 1.42860677e-6f;
	p = 1.0f / 5040 * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r * r + r;
	return vscale(1 + p, n);
}

/* cap tanh(x / cap), near 0 by its Taylor polynomial. */
VEC_INLINE vf vcap(vf x, float cap)
{
	const vf u = x / cap, uu = u * u;
	const vf small = u * (1 + uu * (-1.0f / 3 + uu * (2.0f / 15 - uu * (17.0f / 315))));

	return cap * vblend(uu < 0.03f, small, 1 - 2 / (1 + vexp(2 * u)));
}

/* Swaps the off-diagonal blocks of w x w lanes between rows that are w apart. */
#define VTURN_STEP(m, w, ...)                                                                                          \
	for (int i = 0; i < LANES; i++)                                                                                \
		if (!(i & (w))) {                                                                                      \
			const vi from[2] = { __VA_ARGS__ };                                                            \
			vf a = (m)[i], b = (m)[i + (w)];                                                               \
                                                                                                                       \
			(m)[i] = __builtin_shuffle(a, b, from[0]);                                                     \
			(m)[i + (w)] = __builtin_shuffle(a, b, from[1]);                                               \
		}

/* Transposes a matrix of LANES x LANES. */
VEC_INLINE void vturn(vf m[LANES])
{
#if LANES == 16
#pragma GCC unroll 16
	VTURN_STEP(m, 1, { 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30 },
		   { 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31 })
#pragma GCC unroll 16
	VTURN_STEP(m, 2, { 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29 },
		   { 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31 })
#pragma GCC unroll 16
	VTURN_STEP(m, 4, { 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27 },
		   { 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31 })
#pragma GCC unroll 16
	VTURN_STEP(m, 8, { 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23 },
		   { 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31 })
#elif LANES == 8
#pragma GCC unroll 8
	VTURN_STEP(m, 1, { 0, 8, 2, 10, 4, 12, 6, 14 }, { 1, 9, 3, 11, 5, 13, 7, 15 })
#pragma GCC unroll 8
	VTURN_STEP(m, 2, { 0, 1, 8, 9, 4, 5, 12, 13 }, { 2, 3, 10, 11, 6, 7, 14, 15 })
#pragma GCC unroll 8
	VTURN_STEP(m, 4, { 0, 1, 2, 3, 8, 9, 10, 11 }, { 4, 5, 6, 7, 12, 13, 14, 15 })
#else
#pragma GCC unroll 4
	VTURN_STEP(m, 1, { 0, 4, 2, 6 }, { 1, 5, 3, 7 })
#pragma GCC unroll 4
	VTURN_STEP(m, 2, { 0, 1, 4, 5 }, { 2, 3, 6, 7 })
#endif
}
#undef VTURN_STEP
