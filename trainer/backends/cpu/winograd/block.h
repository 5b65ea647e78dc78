/* SPDX-License-Identifier: Apache-2.0 */
/* block.h: transforms tiles of a tensor into the 36 matrices of a block, and multiplies matrices. Include it where
 * AVX-512 is the target, after vec.h and plan.h. */
#ifndef DPT_BACKENDS_CPU_WINOGRAD_BLOCK_H
#define DPT_BACKENDS_CPU_WINOGRAD_BLOCK_H

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(64), may_alias));

/* One direction of a transform: reads vectors `step` apart and writes adjacent ones. */
enum turn {
	TURN_INPUT,    /* B^T: 6 to 6 */
	TURN_RESULT,   /* A^T: 6 to 4 */
	TURN_GRADIENT, /* A: 4 to 6 */
	TURN_WEIGHTS,  /* G: 3 to 6 */
	TURN_DW,       /* G^T: 6 to 3 */
};

INLINE int turn_in(enum turn t)
{
	return t == TURN_GRADIENT ? TILE : t == TURN_WEIGHTS ? 3 : PATCH;
}

INLINE int turn_out(enum turn t)
{
	return t == TURN_RESULT ? TILE : t == TURN_DW ? 3 : PATCH;
}

/* The polynomials are evaluated at 0, infinity and ±a, ±b with a b = 1: no factor is larger than 2.83, which halves
 * the rounding of the usual 0, ±1, ±2. */
#define A 0.70710678f /* a^2 = 1/2 */
#define B 1.41421356f /* b^2 = 2 */

INLINE void turn_input(const vec *d, vec *to)
{
	vec even = d[4] - 2 * d[2], odd = A * d[3] - B * d[1], even2 = d[4] - 0.5f * d[2], odd2 = B * d[3] - A * d[1];

	to[0] = d[0] - 2.5f * d[2] + d[4];
	to[1] = even + odd;
	to[2] = even - odd;
	to[3] = even2 + odd2;
	to[4] = even2 - odd2;
	to[5] = d[1] - 2.5f * d[3] + d[5];
}

INLINE void turn_result(const vec *m, vec *to)
{
	vec sum = m[1] + m[2], dif = m[1] - m[2], sum2 = m[3] + m[4], dif2 = m[3] - m[4];

	to[0] = m[0] + sum + sum2;
	to[1] = A * dif + B * dif2;
	to[2] = 0.5f * sum + 2 * sum2;
	to[3] = 0.5f * A * dif + 2 * B * dif2 + m[5];
}

INLINE void turn_gradient(const vec *y, vec *to)
{
	vec even = y[0] + 0.5f * y[2], odd = A * y[1] + 0.5f * A * y[3], even2 = y[0] + 2 * y[2],
	    odd2 = B * y[1] + 2 * B * y[3];

	to[0] = y[0];
	to[1] = even + odd;
	to[2] = even - odd;
	to[3] = even2 + odd2;
	to[4] = even2 - odd2;
	to[5] = y[3];
}

INLINE void turn_weights(const vec *w, vec *to)
{
	vec even = w[0] * (-2 / 3.0f) + w[2] * (-1 / 3.0f), odd = w[1] * (-2 / 3.0f * A);
	vec even2 = w[0] * (1 / 6.0f) + w[2] * (1 / 3.0f), odd2 = w[1] * (1 / 6.0f * B);

	to[0] = w[0];
	to[1] = even + odd;
	to[2] = even - odd;
	to[3] = even2 + odd2;
	to[4] = even2 - odd2;
	to[5] = w[2];
}

INLINE void turn_dw(const vec *m, vec *to)
{
	vec sum = m[1] + m[2], dif = m[1] - m[2], sum2 = m[3] + m[4], dif2 = m[3] - m[4];

	to[0] = m[0] + sum * (-2 / 3.0f) + sum2 * (1 / 6.0f);
	to[1] = dif * (-2 / 3.0f * A) + dif2 * (1 / 6.0f * B);
	to[2] = sum * (-1 / 3.0f) + sum2 * (1 / 3.0f) + m[5];
}

INLINE void turn_line(const enum turn t, const vec *from, vec *to)
{
	switch (t) {
	case TURN_INPUT:
		turn_input(from, to);
		break;
	case TURN_RESULT:
		turn_result(from, to);
		break;
	case TURN_GRADIENT:
		turn_gradient(from, to);
		break;
	case TURN_WEIGHTS:
		turn_weights(from, to);
		break;
	case TURN_DW:
		turn_dw(from, to);
		break;
	}
}

/* How the numbers of a tensor are stored. */
enum element {
	ELEMENT_F32,
	ELEMENT_BF16, /* widened when read, rounded to nearest when written */
};

/* A square of vectors in memory: the address of element (0, 0), the bytes between rows and columns, and which rows,
 * columns and lanes exist; the others read as zero and are not written. */
struct square {
	char *at;
	int64_t row, col;
	enum element element;
	__mmask16 lanes;
	__mmask16 rows[PATCH], cols[PATCH]; /* all lanes or none */
	bool whole;			    /* nothing is missing */
};

/* Known when the code is compiled: nothing is missing, and how the numbers are stored. */
struct access {
	bool whole;
	enum element element;
};

INLINE int64_t element_bytes(enum element e)
{
	return e == ELEMENT_BF16 ? 2 : 4;
}

/* row, col: floats between rows and columns. */
static void square_whole(struct square *s, float *at, int64_t row, int64_t col)
{
	*s = (struct square){ .at = (char *)at, .row = 4 * row, .col = 4 * col, .lanes = 0xffff, .whole = true };
	memset(s->rows, 0xff, sizeof(s->rows));
	memset(s->cols, 0xff, sizeof(s->cols));
}

/* Moves to the next LANES channels. */
INLINE void square_next(struct square *s)
{
	s->at += LANES * element_bytes(s->element);
}

/* Rounds to nearest, ties to even; a NaN stays one. */
INLINE __m256i round_to_bf16(__m512 v)
{
	const __m512i u = _mm512_castps_si512(v),
		      odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
	const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
	const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);

	return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), nan, _mm512_set1_epi32(0x7fc0)));
}

INLINE __m512 widen_bf16(__m256i v)
{
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

INLINE __m512 square_get(const struct square *s, int i, int j, const struct access how)
{
	const char *at = s->at + i * s->row + j * s->col;
	const __mmask16 there = s->rows[i] & s->cols[j] & s->lanes;

	if (how.element == ELEMENT_BF16)
		return widen_bf16(how.whole ? _mm256_loadu_si256((const __m256i *)at)
					    : _mm256_maskz_loadu_epi16(there, at));
	return how.whole ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(there, at);
}

INLINE void square_put(const struct square *s, int i, int j, __m512 v, const struct access how)
{
	char *at = s->at + i * s->row + j * s->col;
	const __mmask16 there = how.whole ? 0xffff : s->rows[i] & s->cols[j] & s->lanes;

	if (how.element == ELEMENT_BF16)
		_mm256_mask_storeu_epi16(at, there, round_to_bf16(v));
	else if (how.whole)
		_mm512_storeu_ps(at, v);
	else
		_mm512_mask_storeu_ps(at, there, v);
}

/* Results and gradients are written to the tensor's square; the other squares are read from it. */
INLINE bool turn_puts(const enum turn t)
{
	return t == TURN_RESULT || t == TURN_DW;
}

/* Transforms both directions: columns first, with the intermediate result on the stack. how: of the tensor's square;
 * the matrices are whole and in f32. */
INLINE void turn_both(const enum turn t, const struct square *from, const struct square *to, const struct access how)
{
	const struct access matrices = { true, ELEMENT_F32 };
	const bool puts = turn_puts(t);
	vec middle[PATCH][PATCH], line[PATCH], done[PATCH];
	const int in = turn_in(t), out = turn_out(t);

#pragma GCC unroll 6
	for (int j = 0; j < in; j++) {
#pragma GCC unroll 6
		for (int i = 0; i < in; i++)
			line[i] = (vec)square_get(from, i, j, puts ? matrices : how);
		turn_line(t, line, done);
#pragma GCC unroll 6
		for (int i = 0; i < out; i++)
			middle[i][j] = done[i];
	}
#pragma GCC unroll 6
	for (int i = 0; i < out; i++) {
		turn_line(t, middle[i], done);
#pragma GCC unroll 6
		for (int j = 0; j < out; j++)
			square_put(to, i, j, (__m512)done[j], puts ? how : matrices);
	}
}

INLINE void turn_stored(const enum turn t, const struct square *from, const struct square *to, const enum element e)
{
	if (turn_puts(t) ? to->whole : from->whole)
		turn_both(t, from, to, (struct access){ true, e });
	else
		turn_both(t, from, to, (struct access){ false, e });
}

/* One of the squares is the tensor's. The gradient of weights is always written in f32. */
INLINE void turn_square(const enum turn t, const struct square *from, const struct square *to)
{
	if (t != TURN_DW && (turn_puts(t) ? to : from)->element == ELEMENT_BF16)
		turn_stored(t, from, to, ELEMENT_BF16);
	else
		turn_stored(t, from, to, ELEMENT_F32);
}

/* A tile by its image, row and column. */
struct tile_place {
	int64_t image, row, col;
};

static struct tile_place place_at(const struct grid *g, int64_t tile)
{
	return (struct tile_place){ tile / g->cols / g->rows, tile / g->cols % g->rows, tile % g->cols };
}

static void place_next(struct tile_place *p, const struct grid *g)
{
	if (++p->col < g->cols)
		return;
	p->col = 0;
	if (++p->row < g->rows)
		return;
	p->row = 0;
	p->image++;
}

/* Masks of the lines from `at` on within [0, n), among `side` lines. */
static void lines_there(__mmask16 *masks, int64_t at, int64_t n, int64_t side)
{
	unsigned first = at < 0 ? (unsigned)-at : 0, end = (unsigned)min_int64(side, n - at);
	unsigned there = ((1u << end) - 1) >> first << first;

	for (int i = 0; i < PATCH; i++)
		masks[i] = (__mmask16) - (there >> i & 1);
}

/* Returns the square of a tensor that a tile covers, with all lanes; what is outside is missing. */
static void square_of_tile(struct square *s, const struct grid *g, const void *tensor, const struct tile_place *p)
{
	int64_t y = p->row * TILE - g->before, x = p->col * TILE - g->before;

	s->element = g->bf16 ? ELEMENT_BF16 : ELEMENT_F32;
	s->col = g->c * element_bytes(s->element);
	s->row = g->w * s->col;
	s->at = (char *)tensor + (p->image * g->h + y) * s->row + x * s->col;
	s->whole = y >= 0 && x >= 0 && y + g->side <= g->h && x + g->side <= g->w;
	if (s->whole) {
		memset(s->rows, 0xff, sizeof(s->rows));
		memset(s->cols, 0xff, sizeof(s->cols));
		return;
	}
	lines_there(s->rows, y, g->h, g->side);
	lines_there(s->cols, x, g->w, g->side);
}

/* Selects the lanes of the channels from `channel` on. */
INLINE void square_lanes(struct square *s, int64_t channel, int64_t channels, bool whole)
{
	int64_t left = channels - channel;

	s->lanes = (__mmask16)(left >= LANES ? 0xffff : (1u << left) - 1);
	s->whole = whole && left >= LANES;
}

/* Where the transformed tiles of a tensor are stored: 36 matrices, `step` floats apart, each divided into panels of at
 * most `panel` channels; a panel is [tile][channel]. */
struct matrix_layout {
	const struct grid *grid;
	const void *tensor;
	float *to;
	int64_t step, rows, panel; /* rows: capacity of a panel */
};

/* Prefetches the data that the tile below reads first. The next image follows after the last row of an image. */
INLINE void fetch_below(const struct square *s, int64_t side, const int write)
{
#pragma GCC unroll 4
	for (int64_t i = 0; i < TILE; i++)
#pragma GCC unroll 4
		for (int64_t j = 0; j < TILE; j++)
			__builtin_prefetch(s->at + (side + i) * s->row + j * s->col, write, 3);
}

/* Transforms one tile of a panel's channels, stored from `to` on. */
INLINE void turn_panel(const enum turn t, const struct matrix_layout *l, struct square *from, float *to,
		       struct cpu_range c)
{
	const struct grid *g = l->grid;
	const bool whole = from->whole;
	struct square into;

	square_whole(&into, to, PATCH * l->step, l->step);
	for (int64_t i = c.begin; i < c.end && i < g->c; i += LANES) {
		square_lanes(from, i, g->c, whole);
		fetch_below(from, g->side, 0);
		turn_square(t, from, &into);
		square_next(from);
		square_next(&into);
	}
	from->whole = whole;
}

/* Transforms tiles of a tensor into the 36 matrices of a block; `to` is the address in the first one. */
INLINE void turn_tiles(const enum turn t, const struct matrix_layout *l, struct cpu_range tiles, int64_t first)
{
	const struct grid *g = l->grid;
	struct tile_place place = place_at(g, tiles.begin);
	struct square from;

	for (int64_t i = tiles.begin; i < tiles.end; i++, place_next(&place, g)) {
		square_of_tile(&from, g, l->tensor, &place);
		for (int64_t c = 0; c < g->lanes; c += l->panel) {
			int64_t width = min_int64(l->panel, g->lanes - c);

			turn_panel(t, l, &from, l->to + c * l->rows + (i - first) * width,
				   (struct cpu_range){ c, c + width });
		}
	}
}

/* out [rows][vectors of 16] = (add: +=) sum over l < depth of a[row][l] b[l][…]. */
struct panel_product {
	const float *a, *b;
	float *out;
	int64_t a_row, a_next, b_next, out_row, depth;
	bool add;
};

INLINE void product_tile(const struct panel_product *p, const int rows, const int vectors)
{
	__m512 acc[24];
	const float *a = p->a, *b = p->b;

#pragma GCC unroll 24
	for (int i = 0; i < rows * vectors; i++)
		acc[i] = p->add ? _mm512_loadu_ps(p->out + i / vectors * p->out_row + i % vectors * LANES)
				: _mm512_setzero_ps();
	for (int64_t l = 0; l < p->depth; l++, a += p->a_next, b += p->b_next) {
		__m512 line[4];

#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			line[v] = _mm512_loadu_ps(b + v * LANES);
#pragma GCC unroll 24
		for (int r = 0; r < rows; r++) {
			__m512 x = _mm512_set1_ps(a[r * p->a_row]);

#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				acc[r * vectors + v] = _mm512_fmadd_ps(x, line[v], acc[r * vectors + v]);
		}
	}
#pragma GCC unroll 24
	for (int i = 0; i < rows * vectors; i++)
		_mm512_storeu_ps(p->out + i / vectors * p->out_row + i % vectors * LANES, acc[i]);
}

#endif
