/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: weights in 1/16384; with AVX2 two taps per multiply-add. Each source row is scaled horizontally once and
 * kept in a ring only as long as an output row needs it. */
#include "tracker/base/round.h"
#include "trainer/data/pictures/resize.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/pictures/codec.h"
#include "trainer/data/pictures/pixels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ONE 16384 /* sum of an output pixel's weights; 255 * ONE is far below 32 bits */
#define SHIFT 14
#define HALF (ONE / 2)
#define SLACK 3 /* pixels after the last one that may be read: 4 bytes each of the 16 readable ones */

struct axis_weights {
	int n;		 /* output pixels */
	int room;	 /* n, rounded up to a multiple of 4 */
	int taps;	 /* weights per output pixel, a multiple of 4 */
	int *first;	 /* [room]: source pixel of the first weight */
	int16_t *weight; /* [room * taps]; 0 after the last tap and the last pixel */
	size_t first_bytes, weight_bytes; /* allocated */
	int begin, end; /* source pixels used */
};

struct resize {
	struct axis_weights x, y;
	uint8_t *ring;	      /* horizontally scaled rows; row s is at s % y.taps */
	const uint8_t **rows; /* [y.taps]: the source rows of an output row */
	uint8_t *out;
	size_t ring_bytes, out_bytes, rows_bytes;
	size_t stride; /* bytes of a row of ring and out */
	bool avx2;
	int row;  /* next source row */
	int done; /* output rows written */
};

struct resize *resize_new(void)
{
	struct resize *r = mem_zalloc(sizeof(*r));

	r->avx2 = pixels_avx2();
	return r;
}

static void free_axis_weights(struct axis_weights *a)
{
	free(a->first);
	free(a->weight);
}

void resize_free(struct resize *r)
{
	if (!r)
		return;
	free_axis_weights(&r->x);
	free_axis_weights(&r->y);
	free(r->ring);
	free(r->rows);
	free(r->out);
	free(r);
}

/* Rounds the weights of an output pixel over the source pixels [first, first + n) so that they add up to ONE; the
 * largest takes the remainder. */
static void round_weights(const double *w, int n, double sum, int16_t *ret)
{
	int left = ONE, largest = 0;

	for (int k = 0; k < n; k++) {
		ret[k] = (int16_t)(w[k] / sum * ONE + 0.5);
		left -= ret[k];
		if (ret[k] > ret[largest])
			largest = k;
	}
	ret[largest] = (int16_t)(ret[largest] + left);
}

static double triangle_weight(double x)
{
	x = x < 0 ? -x : x;
	return x < 1 ? 1 - x : 0;
}

/* Source pixels under the triangle of an output pixel. */
struct triangle_span {
	double centre, half;
	int first, n;
};

/* Pillow's rule: the triangle's half width is the scale, at least one pixel; pixels with their centre under it
 * count. */
static struct triangle_span find_triangle_span(const struct resize_axis *o, int i)
{
	double scale = o->size / o->out;
	struct triangle_span s = { .centre = o->from + (i + 0.5) * scale, .half = scale > 1 ? scale : 1 };
	int last = (int)(s.centre + s.half + 0.5);

	s.first = (int)(s.centre - s.half + 0.5);
	s.first = s.first > o->begin ? s.first : o->begin;
	s.first = s.first < o->end ? s.first : o->end - 1;
	last = last < o->end ? last : o->end;
	s.n = last > s.first ? last - s.first : 1;
	return s;
}

/* Computes the weights of output pixel i. Shifts them so that no tap, even of weight 0, is more than SLACK pixels
 * after the last source pixel. */
static void compute_pixel_weights(struct axis_weights *a, const struct resize_axis *o, int i, double *w)
{
	struct triangle_span s = find_triangle_span(o, i);
	int16_t *weight = a->weight + (size_t)i * (size_t)a->taps;
	int beyond = s.first + a->taps - (a->end + SLACK);
	double sum = 0;

	for (int k = 0; k < s.n; k++)
		sum += w[k] = triangle_weight((s.first + k - s.centre + 0.5) / s.half);
	if (sum <= 0)
		sum = w[0] = 1;
	a->first[i] = s.first;
	if (beyond > 0) {
		a->first[i] -= beyond;
		weight += beyond;
	}
	round_weights(w, s.n, sum, weight);
}

static int round_up_to_four(int n)
{
	return (n + 3) & ~3;
}

/* Computes the taps and weights of all output pixels of an axis. */
static void make_axis_weights(struct axis_weights *a, const struct resize_axis *o)
{
	struct triangle_span first = find_triangle_span(o, 0), last = find_triangle_span(o, o->out - 1);
	double *w;

	a->n = o->out;
	a->room = round_up_to_four(a->n);
	a->begin = first.first;
	a->end = last.first + last.n;
	a->taps = round_up_to_four((int)(2 * first.half) + 2);
	if (a->taps > round_up_to_four(a->end - a->begin))
		a->taps = round_up_to_four(a->end - a->begin);
	grow_to(&a->first, &a->first_bytes, (size_t)a->room * sizeof(*a->first));
	grow_to(&a->weight, &a->weight_bytes, (size_t)a->room * (size_t)a->taps * sizeof(*a->weight));
	memset(a->weight, 0, (size_t)a->room * (size_t)a->taps * sizeof(*a->weight));
	w = mem_alloc((size_t)a->taps * sizeof(*w));
	for (int i = 0; i < a->n; i++)
		compute_pixel_weights(a, o, i, w);
	for (int i = a->n; i < a->room; i++)
		a->first[i] = a->begin;
	free(w);
}

void resize_begin(struct resize *r, const struct resize_opts *o)
{
	make_axis_weights(&r->x, &o->x);
	make_axis_weights(&r->y, &o->y);
	r->stride = round_up_bytes((size_t)o->x.out * RESIZE_PIXEL_BYTES, 32);
	grow_to(&r->ring, &r->ring_bytes, r->stride * (size_t)r->y.taps);
	grow_to(&r->rows, &r->rows_bytes, (size_t)r->y.taps * sizeof(*r->rows));
	grow_to(&r->out, &r->out_bytes, r->stride * (size_t)r->y.n);
	r->row = r->y.begin;
	r->done = 0;
}

struct resize_need resize_need(const struct resize *r)
{
	return (struct resize_need){ r->x.begin, r->x.end, r->y.begin, r->y.end };
}

/* Scales pixels [4q, 4q + 4) of a row horizontally. */
static void scale_quad(const struct axis_weights *x, int q, const uint8_t *row, uint8_t *to)
{
	for (int i = 4 * q; i < 4 * q + 4; i++) {
		const int16_t *weight = x->weight + (size_t)i * (size_t)x->taps;
		const uint8_t *from = row + (size_t)(x->first[i] - x->begin) * RESIZE_PIXEL_BYTES;

		for (int c = 0; c < RESIZE_PIXEL_BYTES; c++) {
			int sum = HALF;

			for (int k = 0; k < x->taps; k++)
				sum += weight[k] ? weight[k] * from[RESIZE_PIXEL_BYTES * k + c] : 0;
			to[(size_t)i * RESIZE_PIXEL_BYTES + (size_t)c] = (uint8_t)(sum >> SHIFT);
		}
	}
}

static void scale_row(const struct axis_weights *x, const uint8_t *row, uint8_t *to)
{
	for (int q = 0; q < x->room / 4; q++)
		scale_quad(x, q, row, to);
}

/* Mixes `taps` rows to `bytes` bytes of an output row. */
static void mix_rows(const uint8_t *const *rows, const int16_t *weight, int taps, size_t bytes, uint8_t *to)
{
	for (size_t i = 0; i < bytes; i++) {
		int sum = HALF;

		for (int k = 0; k < taps; k++)
			sum += weight[k] * rows[k][i];
		to[i] = (uint8_t)(sum >> SHIFT);
	}
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

/* Sums of two output pixels, a in the low half and b in the high half, four taps per step. */
AVX2 static inline __m256i two_pixels(const uint8_t *a, const uint8_t *b, const int16_t *wa, const int16_t *wb,
				      int taps)
{
	/* Selects pixels 0 and 1 (then 2 and 3) by channel, widened to 16 bits. */
	const __m256i first =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
	const __m256i second = _mm256_add_epi8(first, _mm256_set1_epi16(8));
	__m256i sum = _mm256_set1_epi32(HALF);

	for (int k = 0; k < taps; k += 4) {
		__m256i four = _mm256_inserti128_si256(
			_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(a + 4 * k))),
			_mm_loadu_si128((const __m128i *)(const void *)(b + 4 * k)), 1);
		__m256i w = _mm256_inserti128_si256(
			_mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)(wa + k))),
			_mm_loadl_epi64((const __m128i *)(const void *)(wb + k)), 1);

		sum = _mm256_add_epi32(sum,
				       _mm256_madd_epi16(_mm256_shuffle_epi8(four, first),
							 _mm256_shuffle_epi32(w, 0x00)));
		sum = _mm256_add_epi32(sum,
				       _mm256_madd_epi16(_mm256_shuffle_epi8(four, second),
							 _mm256_shuffle_epi32(w, 0x55)));
	}
	return _mm256_srai_epi32(sum, SHIFT);
}

AVX2 static void scale_row_avx2(const struct axis_weights *x, const uint8_t *row, uint8_t *to)
{
	const uint8_t *from = row - (size_t)x->begin * RESIZE_PIXEL_BYTES;
	size_t taps = (size_t)x->taps;

	for (int i = 0; i < x->room; i += 4) {
		const int *at = x->first + i;
		const int16_t *w = x->weight + (size_t)i * taps;
		__m256i even = two_pixels(from + 4 * (size_t)at[0], from + 4 * (size_t)at[2], w, w + 2 * taps, x->taps);
		__m256i odd =
			two_pixels(from + 4 * (size_t)at[1], from + 4 * (size_t)at[3], w + taps, w + 3 * taps, x->taps);
		__m256i bytes = _mm256_packs_epi32(even, odd); /* 0 1 | 2 3 */

		bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(bytes, bytes), 0x08);
		_mm_storeu_si128((__m128i *)(void *)(to + 4 * (size_t)i), _mm256_castsi256_si128(bytes));
	}
}

/* Adds 32 bytes of two weighted rows to four sums of eight. The packs that follow restore the order. */
AVX2 static inline void add_weighted_rows(__m256i sum[4], __m256i a, __m256i b, __m256i w)
{
	__m256i zero = _mm256_setzero_si256(), low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);

	sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), w));
	sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), w));
	sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), w));
	sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), w));
}

AVX2 static void mix_rows_avx2(const uint8_t *const *rows, const int16_t *weight, int taps, size_t bytes, uint8_t *to)
{
	for (size_t at = 0; at < bytes; at += 32) {
		__m256i sum[4];
		int packed;

		for (int i = 0; i < 4; i++)
			sum[i] = _mm256_set1_epi32(HALF);
		for (int k = 0; k < taps; k += 2) {
			memcpy(&packed, weight + k, sizeof(packed));
			if (packed)
				add_weighted_rows(sum,
						  _mm256_loadu_si256((const __m256i *)(const void *)(rows[k] + at)),
						  _mm256_loadu_si256((const __m256i *)(const void *)(rows[k + 1] + at)),
						  _mm256_set1_epi32(packed));
		}
		for (int i = 0; i < 4; i++)
			sum[i] = _mm256_srai_epi32(sum[i], SHIFT);
		sum[0] = _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
		_mm256_storeu_si256((__m256i *)(void *)(to + at), sum[0]);
	}
}

#else

#define scale_row_avx2 scale_row
#define mix_rows_avx2 mix_rows

#endif

static uint8_t *ring_row(const struct resize *r, int row)
{
	return r->ring + (size_t)(row % r->y.taps) * r->stride;
}

/* Writes output row i, whose source rows are complete. */
static void write_output_row(const struct resize *r, int i)
{
	const struct axis_weights *y = &r->y;
	const int16_t *weight = y->weight + (size_t)i * (size_t)y->taps;

	for (int k = 0; k < y->taps; k++) /* missing rows have weight 0 */
		r->rows[k] = ring_row(r, weight[k] ? y->first[i] + k : y->first[i]);
	(r->avx2 ? mix_rows_avx2 : mix_rows)(r->rows, weight, y->taps, r->stride, r->out + (size_t)i * r->stride);
}

static int find_last_source_row(const struct axis_weights *y, int i)
{
	int k = y->taps - 1;

	while (k > 0 && !y->weight[(size_t)i * (size_t)y->taps + (size_t)k])
		k--;
	return y->first[i] + k;
}

void resize_row(struct resize *r, const uint8_t *pixels)
{
	(r->avx2 ? scale_row_avx2 : scale_row)(&r->x, pixels, ring_row(r, r->row));
	r->row++;
	while (r->done < r->y.n && find_last_source_row(&r->y, r->done) < r->row) {
		write_output_row(r, r->done);
		r->done++;
	}
}

const uint8_t *resize_result(const struct resize *r, size_t *ret_stride)
{
	*ret_stride = r->stride;
	return r->out;
}
