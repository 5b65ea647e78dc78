/* SPDX-License-Identifier: Apache-2.0 */
/* wgrad_bf16.c: dw[k][r][s][c] = sum over pixels of dy[pixel][k] x[pixel + tap][c], in bf16 pairs. The dot-product
 * instruction adds two products per lane, so two neighbouring output pixels make a pair. dy is packed as pairs of
 * pixels, with 16 filters in a vector; x as pairs for 16 channels, which are broadcast from memory one at a time. Both
 * are packed once per band of rows and then used by every tap. A tile of results (16 or 32 filters, the taps of one
 * kernel row, 4 to 8 channels) stays in registers over all bands of a chunk. With one tap, x is packed only at pixels
 * that have an output. At stride 1 the images are one line of pixels, cut into rows of even length. Threads divide the
 * bands, and their results are added; or the filters, each thread packing all of x, where that is smaller. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trainer/backends/cpu/own_convs.h"

#define LANES 16
#define BAND_BYTES ((int64_t)32 << 10)	 /* bytes of 16 channels of x packed for one band, at most, if one row allows */
#define CHUNK_BYTES ((int64_t)128 << 10) /* bytes that are packed at a time; more when the results are large */
#define ROW_MOST 64			 /* pixels per row when one line is cut into rows */
#define ROW_LEAST 16
#define FETCH_LINES 8

struct wgrad_dots {
	struct dnn_conv_spec s;
	int64_t cb, kb;		     /* blocks of 16 channels and filters */
	int64_t bands, rows;	     /* bands per image, output rows of each but the last */
	int64_t x_rows, x_cols;	     /* size of one packed band */
	int64_t pairs, x_step;	     /* pairs of output pixels in a row; columns of x between pairs */
	int64_t units, chunk;	     /* (image, band) in all; number packed at a time */
	int64_t x_unit, dy_unit;     /* vectors of 64 bytes per unit and block */
	int64_t share;		     /* blocks of filters of a thread; kb: the threads divide bands */
	int64_t part_bytes, results; /* bytes of a thread's workspace; vectors of results */
	const uint16_t *x, *dy;
	float *dw;
	char *workspace;
	int parts;
};

/* Treats the pixels as one line, cut into rows of even length, if some length wastes nothing. */
static void join_pixel_rows(struct dnn_conv_spec *s)
{
	int64_t pixels = s->n * s->h * s->w, row = ROW_MOST;

	while (row >= ROW_LEAST && pixels % row != 0)
		row -= 2;
	if (row < ROW_LEAST)
		return;
	s->n = 1;
	s->h = s->p = pixels / row;
	s->w = s->q = row;
}

/* Decides what the threads divide; filters in twos, as a wide tile has them. */
static void share_wgrad(struct wgrad_dots *w, int threads)
{
	int64_t vectors = w->kb * w->cb * w->s.kernel * w->s.kernel * LANES, x = w->units * w->x_unit * w->cb;
	int64_t share = round_up(divide_up(w->kb, threads), 2);
	int bands = (int)min_int64(threads, w->units), filters = (int)divide_up(w->kb, share);
	bool by_filters = filters > 1 && (filters > bands || (filters == bands && x < vectors));

	w->share = by_filters ? share : w->kb;
	w->parts = by_filters ? filters : bands;
	w->results = vectors / w->kb * w->share;
}

/* Chooses bands whose x fits BAND_BYTES, and chunks of as many bands as fit the budget. */
static void plan_wgrad_bf16(struct wgrad_dots *w, const struct dnn_conv_spec *spec, int threads)
{
	struct dnn_conv_spec *s = &w->s;
	int64_t row, budget, units, packed;

	memset(w, 0, sizeof(*w));
	*s = *spec;
	if (s->kernel == 1 && s->stride == 1)
		join_pixel_rows(s);
	w->cb = s->c / LANES;
	w->kb = s->k / LANES;
	w->pairs = divide_up(s->q, 2);
	w->x_step = s->kernel == 1 ? 1 : 2 * s->stride;
	w->x_cols = (w->pairs - 1) * w->x_step + (s->kernel == 1 ? 1 : s->stride + s->kernel);
	row = w->x_cols * (s->kernel == 1 ? 1 : s->stride) * 64;
	w->rows = BAND_BYTES / row > 1 ? min_int64(BAND_BYTES / row, s->p) : 1;
	w->bands = divide_up(s->p, w->rows);
	w->rows = divide_up(s->p, w->bands);
	w->x_rows = s->kernel == 1 ? w->rows : (w->rows - 1) * s->stride + s->kernel;
	w->x_unit = w->x_rows * w->x_cols;
	w->dy_unit = w->rows * w->pairs;
	w->units = s->n * w->bands;
	share_wgrad(w, threads);
	units = w->share == w->kb ? divide_up(w->units, w->parts) : w->units;
	packed = w->x_unit * w->cb + w->dy_unit * w->share;
	budget = w->results * 64 / 2 > CHUNK_BYTES ? w->results * 64 / 2 : CHUNK_BYTES;
	w->chunk = budget / (packed * 64);
	w->chunk = w->chunk < 1 ? 1 : min_int64(w->chunk, units);
	w->part_bytes = (w->results + w->chunk * packed) * 64;
}

size_t wgrad_bf16_workspace_bytes(const struct dnn_conv_spec *s, int threads)
{
	struct wgrad_dots w;

	plan_wgrad_bf16(&w, s, threads);
	return (size_t)(w.part_bytes * w.parts);
}

#if defined(__x86_64__)
bool wgrad_bf16_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	return m->isa == CPU_AVX512_BF16 && s->bf16 && s->pass == DNN_WGRAD && s->c % LANES == 0 && s->k % LANES == 0 &&
	       (s->kernel == 1 || s->kernel == 3) && s->stride <= 2 && s->pad < s->kernel;
}

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")

#define INLINE static inline __attribute__((always_inline))

/* Interleaves the lanes of a and b: (a0, b0), (a1, b1), … NULL reads as zeros. */
INLINE __m512i pair_up(const uint16_t *a, const uint16_t *b)
{
	const __m512i turn = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
					      6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	__m256i lo = a ? _mm256_loadu_si256((const __m256i *)a) : _mm256_setzero_si256();
	__m256i hi = b ? _mm256_loadu_si256((const __m256i *)b) : _mm256_setzero_si256();

	return _mm512_permutexvar_epi16(turn, _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1));
}

struct wgrad_unit {
	int64_t image, p0, rows; /* output rows p0 … p0 + rows - 1 */
};

static struct wgrad_unit unit_at(const struct wgrad_dots *w, int64_t i)
{
	struct wgrad_unit u = { i / w->bands, i % w->bands * w->rows, w->rows };

	u.rows = min_int64(u.rows, w->s.p - u.p0);
	return u;
}

/* Where pairs are stored: a vector of 16 lanes per block, with blocks `step` apart. */
struct wgrad_layout {
	__m512i *to;
	int64_t step, blocks;
};

/* Stores a pair of pixels in every block; NULL: zeros. */
INLINE void lay_pair(const struct wgrad_layout *l, int64_t at, const uint16_t *a, const uint16_t *b)
{
	__m512i *to = l->to + at;

	for (int64_t i = 0; i < l->blocks; i++, to += l->step)
		_mm512_store_si512(to, pair_up(a ? a + i * LANES : NULL, b ? b + i * LANES : NULL));
}

static void lay_nothing(const struct wgrad_layout *l, int64_t at, int64_t n)
{
	for (int64_t i = 0; i < l->blocks; i++)
		memset(l->to + i * l->step + at, 0, (size_t)n * sizeof(*l->to));
}

/* Returns the pixel in column `at` of a row; NULL outside. */
INLINE const uint16_t *find_row_pixel(const struct dnn_conv_spec *s, const uint16_t *row, int64_t at)
{
	return at >= 0 && at < s->w ? row + at * s->c : NULL;
}

/* Packs x of one unit: every column paired with the one `stride` further; with one tap, the columns of a pair of
 * outputs. */
static void lay_x(const struct wgrad_dots *w, const struct wgrad_unit *u, const struct wgrad_layout *l)
{
	const struct dnn_conv_spec *s = &w->s;
	int64_t cols = s->kernel == 1 ? 2 * s->stride : 1, rows = s->kernel == 1 ? s->stride : 1;

	for (int64_t r = 0; r < w->x_rows; r++) {
		int64_t h = u->p0 * s->stride - s->pad + r * rows, at = r * w->x_cols;
		const uint16_t *row = w->x + ((u->image * s->h + h) * s->w) * s->c;
		/* columns need no test if the pixel and the next one are both inside the image */
		int64_t inner = min_int64((s->w - s->stride + s->pad + cols - 1) / cols, w->x_cols), i = 0;

		if (h < 0 || h >= s->h) {
			lay_nothing(l, at, w->x_cols);
			continue;
		}
		for (; i < s->pad; i++)
			lay_pair(l, at + i, find_row_pixel(s, row, i - s->pad),
				 find_row_pixel(s, row, i - s->pad + s->stride));
		for (; i < inner; i++) {
			const uint16_t *a = row + (i * cols - s->pad) * s->c;

			lay_pair(l, at + i, a, a + s->stride * s->c);
		}
		for (; i < w->x_cols; i++)
			lay_pair(l, at + i, find_row_pixel(s, row, i * cols - s->pad),
				 find_row_pixel(s, row, i * cols - s->pad + s->stride));
	}
}

static void lay_dy(const struct wgrad_dots *w, const struct wgrad_unit *u, const struct wgrad_layout *l)
{
	const struct dnn_conv_spec *s = &w->s;

	for (int64_t p = 0; p < w->rows; p++) {
		const uint16_t *row = w->dy + ((u->image * s->p + u->p0 + p) * s->q) * s->k;

		if (p >= u->rows) {
			lay_nothing(l, p * w->pairs, w->pairs);
			continue;
		}
		for (int64_t j = 0; j < w->pairs; j++)
			lay_pair(l, p * w->pairs + j, row + 2 * j * s->k,
				 2 * j + 1 < s->q ? row + (2 * j + 1) * s->k : NULL);
	}
}

/* Prefetches the next chunk while this one is computed: a few lines for each row of a tile. */
struct wgrad_ahead {
	const char *at[2], *end[2];
};

INLINE void prefetch_ahead(struct wgrad_ahead *f)
{
	int i = f->at[0] < f->end[0] ? 0 : 1;

	for (int n = 0; n < FETCH_LINES && f->at[i] < f->end[i]; n++, f->at[i] += 64)
		__builtin_prefetch(f->at[i], 0, 2);
}

/* Computes one tile over the units of a chunk: kv vectors of filters, `taps` taps of a kernel row, ct channels. */
struct tile {
	const __m512i *x;  /* x for this block of channels, from this kernel row on */
	const __m512i *dy; /* dy for the first vector of filters */
	float *acc;	   /* [kv][…][tap][16 channels][16 filters] */
	int64_t units, x_unit, dy_unit, dy_block, acc_block, rows, pairs,
		row_step; /* row_step: vectors between rows of x */
	int channel;
	struct wgrad_ahead *ahead;
};

INLINE void tile_run(const struct tile *t, const int kv, const int taps, const int ct, const int step)
{
	__m512 acc[2][3][8];

#pragma GCC unroll 2
	for (int v = 0; v < kv; v++)
#pragma GCC unroll 3
		for (int s = 0; s < taps; s++)
#pragma GCC unroll 8
			for (int c = 0; c < ct; c++)
				acc[v][s][c] = _mm512_load_ps(t->acc +
							      (v * t->acc_block + s * LANES + t->channel + c) * LANES);
	for (int64_t u = 0; u < t->units; u++)
		for (int64_t p = 0; p < t->rows; p++) {
			const __m512i *dy = t->dy + u * t->dy_unit + p * t->pairs;
			const int32_t *x = (const int32_t *)(t->x + u * t->x_unit + p * t->row_step) + t->channel;

			prefetch_ahead(t->ahead);
			for (int64_t j = 0; j < t->pairs; j++, x += step * LANES) {
				__m512bh d[2];

#pragma GCC unroll 2
				for (int v = 0; v < kv; v++)
					d[v] = (__m512bh)_mm512_load_si512(dy + j + v * t->dy_block);
#pragma GCC unroll 3
				for (int s = 0; s < taps; s++)
#pragma GCC unroll 8
					for (int c = 0; c < ct; c++) {
						__m512bh b = (__m512bh)_mm512_set1_epi32(x[s * LANES + c]);

#pragma GCC unroll 2
						for (int v = 0; v < kv; v++)
							acc[v][s][c] = _mm512_dpbf16_ps(acc[v][s][c], d[v], b);
					}
			}
		}
#pragma GCC unroll 2
	for (int v = 0; v < kv; v++)
#pragma GCC unroll 3
		for (int s = 0; s < taps; s++)
#pragma GCC unroll 8
			for (int c = 0; c < ct; c++)
				_mm512_store_ps(t->acc + (v * t->acc_block + s * LANES + t->channel + c) * LANES,
						acc[v][s][c]);
}

static void tile_3_wide(const struct tile *t, int64_t stride)
{
	stride == 1 ? tile_run(t, 2, 3, 4, 2) : tile_run(t, 2, 3, 4, 4);
}

/* Three taps at stride 1 for one vector of filters: each column is the last tap of one pair and the first of the next,
 * so it is read once for both. */
static void tile_3_narrow(const struct tile *t)
{
	__m512 acc[3][8];

#pragma GCC unroll 3
	for (int s = 0; s < 3; s++)
#pragma GCC unroll 8
		for (int c = 0; c < 8; c++)
			acc[s][c] = _mm512_load_ps(t->acc + (s * LANES + t->channel + c) * LANES);
	for (int64_t u = 0; u < t->units; u++)
		for (int64_t p = 0; p < t->rows; p++) {
			const __m512i *dy = t->dy + u * t->dy_unit + p * t->pairs;
			const int32_t *x = (const int32_t *)(t->x + u * t->x_unit + p * t->row_step) + t->channel;
			__m512bh before = (__m512bh)_mm512_setzero_si512();

			prefetch_ahead(t->ahead);
			for (int64_t j = 0; j < t->pairs; j++, x += 2 * LANES) {
				__m512bh d = (__m512bh)_mm512_load_si512(dy + j);

#pragma GCC unroll 8
				for (int c = 0; c < 8; c++) {
					__m512bh even = (__m512bh)_mm512_set1_epi32(x[c]),
						 odd = (__m512bh)_mm512_set1_epi32(x[LANES + c]);

					acc[0][c] = _mm512_dpbf16_ps(acc[0][c], d, even);
					acc[1][c] = _mm512_dpbf16_ps(acc[1][c], d, odd);
					acc[2][c] = _mm512_dpbf16_ps(acc[2][c], before, even);
				}
				before = d;
			}
#pragma GCC unroll 8
			for (int c = 0; c < 8; c++)
				acc[2][c] = _mm512_dpbf16_ps(acc[2][c], before, (__m512bh)_mm512_set1_epi32(x[c]));
		}
#pragma GCC unroll 3
	for (int s = 0; s < 3; s++)
#pragma GCC unroll 8
		for (int c = 0; c < 8; c++)
			_mm512_store_ps(t->acc + (s * LANES + t->channel + c) * LANES, acc[s][c]);
}

static void tile_3(const struct tile *t, int64_t stride)
{
	stride == 1 ? tile_3_narrow(t) : tile_run(t, 1, 3, 8, 4);
}

static void tile_1_wide(const struct tile *t)
{
	tile_run(t, 2, 1, 8, 1);
}

static void tile_1(const struct tile *t)
{
	tile_run(t, 1, 1, 8, 1);
}

/* Computes every tile of one pair of blocks, or with `wide` of one block of channels and two of filters. */
static void run_wgrad_tiles(const struct wgrad_dots *w, struct tile t, float *acc, bool wide)
{
	const struct dnn_conv_spec *s = &w->s;
	const __m512i *x = t.x;
	int step = s->kernel == 3 && wide ? 4 : 8;

	for (int64_t r = 0; r < s->kernel; r++) {
		t.x = x + r * w->x_cols;
		t.acc = acc + r * s->kernel * LANES * LANES;
		for (t.channel = 0; t.channel < LANES; t.channel += step) {
			if (s->kernel == 3)
				wide ? tile_3_wide(&t, s->stride) : tile_3(&t, s->stride);
			else
				wide ? tile_1_wide(&t) : tile_1(&t);
		}
	}
}

/* The rows of x and dy of some units, as long as they are contiguous. */
static struct wgrad_ahead find_chunk_source(const struct wgrad_dots *w, struct cpu_range units)
{
	const struct dnn_conv_spec *s = &w->s;
	struct wgrad_unit first = unit_at(w, units.begin), last = unit_at(w, units.end - 1);
	int64_t x_row = s->w * s->c, dy_row = s->q * s->k, from = first.p0 * s->stride,
		to = min_int64((last.p0 + last.rows) * s->stride, s->h);

	if (units.begin == units.end)
		return (struct wgrad_ahead){ { NULL, NULL }, { NULL, NULL } };
	return (struct wgrad_ahead){ { (const char *)(w->x + (first.image * s->h + from) * x_row),
				       (const char *)(w->dy + (first.image * s->p + first.p0) * dy_row) },
				     { (const char *)(w->x + (last.image * s->h + to) * x_row),
				       (const char *)(w->dy + (last.image * s->p + last.p0 + last.rows) * dy_row) } };
}

/* Packs the units of a chunk, then adds their products to the results of every pair of blocks. */
static void run_wgrad_chunk(const struct wgrad_dots *w, float *acc, __m512i *laid, struct cpu_range units,
			    struct wgrad_ahead ahead)
{
	const struct dnn_conv_spec *s = &w->s;
	int64_t n = units.end - units.begin, per_block = s->kernel * s->kernel * LANES * LANES;
	__m512i *dy = laid + w->cb * w->chunk * w->x_unit;

	for (int64_t i = 0; i < n; i++) {
		struct wgrad_unit u = unit_at(w, units.begin + i);

		lay_x(w, &u, &(struct wgrad_layout){ laid + i * w->x_unit, w->chunk * w->x_unit, w->cb });
		lay_dy(w, &u, &(struct wgrad_layout){ dy + i * w->dy_unit, w->chunk * w->dy_unit, w->kb });
	}
	for (int64_t k = 0; k < w->kb;) {
		bool wide = k + 1 < w->kb;

		for (int64_t c = 0; c < w->cb; c++) {
			struct tile t = { .x = laid + c * w->chunk * w->x_unit,
					  .dy = dy + k * w->chunk * w->dy_unit,
					  .units = n,
					  .x_unit = w->x_unit,
					  .dy_unit = w->dy_unit,
					  .dy_block = w->chunk * w->dy_unit,
					  .acc_block = w->cb * per_block / LANES,
					  .rows = w->rows,
					  .pairs = w->pairs,
					  .ahead = &ahead,
					  .row_step = (s->kernel == 1 ? 1 : s->stride) * w->x_cols };

			run_wgrad_tiles(w, t, acc + (k * w->cb + c) * per_block, wide);
		}
		k += wide ? 2 : 1;
	}
}

/* Computes the results of units r in the memory of a thread. */
static void run_wgrad_units(const struct wgrad_dots *w, int part, struct cpu_range r)
{
	float *acc = (float *)(w->workspace + part * w->part_bytes);

	memset(acc, 0, (size_t)w->results * 64);
	for (int64_t i = r.begin; i < r.end; i += w->chunk) {
		int64_t end = min_int64(i + w->chunk, r.end);
		struct cpu_range next = { end, min_int64(end + w->chunk, r.end) };

		run_wgrad_chunk(w, acc, (__m512i *)acc + w->results, (struct cpu_range){ i, end },
				find_chunk_source(w, next));
	}
}

static void run_wgrad_bands(void *arg, int part, int parts)
{
	const struct wgrad_dots *w = arg;

	run_wgrad_units(w, part, cpu_split(w->units, 1, part, parts));
}

#include "trainer/backends/cpu/turn16.h"

/* Adds the threads' results in order, and transposes them from [16 channels][16 filters] to dw's rows. Blocks of
 * channels follow each other, so that each of the 16 rows is written in order. */
static void fold_wgrad_parts(void *arg, int part, int parts)
{
	const struct wgrad_dots *w = arg;
	const struct dnn_conv_spec *s = &w->s;
	int64_t taps = s->kernel * s->kernel;
	struct cpu_range r = cpu_split(w->kb * w->cb * taps, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		int64_t c = i % w->cb, tap = i / w->cb % taps, k = i / taps / w->cb,
			at = ((k * w->cb + c) * taps + tap) * LANES * LANES;
		__m512 m[LANES];

		for (int v = 0; v < LANES; v++)
			m[v] = _mm512_load_ps((const float *)w->workspace + at + v * LANES);
		for (int p = 1; p < w->parts; p++)
			for (int v = 0; v < LANES; v++)
				m[v] = _mm512_add_ps(m[v],
						     _mm512_load_ps((const float *)(w->workspace + p * w->part_bytes) +
								    at + v * LANES));
		turn_16(m);
		for (int v = 0; v < LANES; v++)
			_mm512_storeu_ps(w->dw + ((k * LANES + v) * taps + tap) * s->c + c * LANES, m[v]);
	}
}

/* Computes a thread's share of the filters as if there were no others. */
static void run_wgrad_filters(void *arg, int part, int parts)
{
	struct wgrad_dots own = *(const struct wgrad_dots *)arg;
	const struct dnn_conv_spec *s = &own.s;
	int64_t first = part * own.share;

	(void)parts;
	own.kb = min_int64(own.share, own.kb - first);
	own.dy += first * LANES;
	own.dw += first * LANES * s->kernel * s->kernel * s->c;
	own.workspace += part * own.part_bytes;
	own.parts = 1;
	run_wgrad_units(&own, 0, (struct cpu_range){ 0, own.units });
	fold_wgrad_parts(&own, 0, 1);
}

#pragma GCC pop_options

void wgrad_bf16_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	struct wgrad_dots w;

	plan_wgrad_bf16(&w, s, threads);
	w.x = args->a;
	w.dy = args->b;
	w.dw = args->out;
	w.workspace = args->workspace;
	if (w.share < w.kb) {
		cpu_parallel(w.parts, run_wgrad_filters, &w);
		return;
	}
	cpu_parallel(w.parts, run_wgrad_bands, &w);
	cpu_parallel(w.results < 4096 ? 1 : threads, fold_wgrad_parts, &w);
}
#else
bool wgrad_bf16_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	(void)m, (void)s;
	return false;
}

void wgrad_bf16_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	(void)s, (void)threads, (void)args;
}
#endif
