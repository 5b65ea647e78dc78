/* SPDX-License-Identifier: Apache-2.0 */
/* block.h: transforms tiles of a tensor into the 36 matrices of a block, and multiplies matrices. Include it where
 * AVX-512 is the target, after immintrin.h, string.h, cpu.h and plan.h. */
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

/* A square of vectors in memory: the address of element (0, 0), the distances between rows and columns, and which rows,
 * columns and lanes exist; the others read as zero and are not written. */
struct square {
	float *at;
	int64_t row, col;
	__mmask16 lanes;
	__mmask16 rows[PATCH], cols[PATCH]; /* all lanes or none */
	bool whole;			    /* nothing is missing */
};

static void square_whole(struct square *s, float *at, int64_t row, int64_t col)
{
	*s = (struct square){ .at = at, .row = row, .col = col, .lanes = 0xffff, .whole = true };
	memset(s->rows, 0xff, sizeof(s->rows));
	memset(s->cols, 0xff, sizeof(s->cols));
}

INLINE __m512 square_get(const struct square *s, int i, int j, const bool whole)
{
	const float *at = s->at + i * s->row + j * s->col;

	return whole ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(s->rows[i] & s->cols[j] & s->lanes, at);
}

INLINE void square_put(const struct square *s, int i, int j, __m512 v, const bool whole)
{
	float *at = s->at + i * s->row + j * s->col;

	if (whole)
		_mm512_storeu_ps(at, v);
	else
		_mm512_mask_storeu_ps(at, s->rows[i] & s->cols[j] & s->lanes, v);
}

/* Transforms both directions: columns first, with the intermediate result on the stack. */
INLINE void turn_both(const enum turn t, const struct square *from, const struct square *to, const bool from_whole,
		      const bool to_whole)
{
	vec middle[PATCH][PATCH], line[PATCH], done[PATCH];
	const int in = turn_in(t), out = turn_out(t);

#pragma GCC unroll 6
	for (int j = 0; j < in; j++) {
#pragma GCC unroll 6
		for (int i = 0; i < in; i++)
			line[i] = (vec)square_get(from, i, j, from_whole);
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
			square_put(to, i, j, (__m512)done[j], to_whole);
	}
}

/* Results and gradients are stored to a square that may be incomplete; the others are loaded from one. */
INLINE void turn_square(const enum turn t, const struct square *from, const struct square *to)
{
	const bool puts = t == TURN_RESULT || t == TURN_DW;

	if (puts ? to->whole : from->whole)
		turn_both(t, from, to, true, true);
	else
		turn_both(t, from, to, puts, !puts);
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
	unsigned first = at < 0 ? (unsigned)-at : 0, end = (unsigned)min_of(side, n - at);
	unsigned there = ((1u << end) - 1) >> first << first;

	for (int i = 0; i < PATCH; i++)
		masks[i] = (__mmask16) - (there >> i & 1);
}

/* Returns the square of a tensor that a tile covers, with all lanes; what is outside is missing. */
static void square_of_tile(struct square *s, const struct grid *g, const float *tensor, const struct tile_place *p)
{
	int64_t y = p->row * TILE - g->before, x = p->col * TILE - g->before;

	s->at = (float *)tensor + ((p->image * g->h + y) * g->w + x) * g->c;
	s->row = g->w * g->c;
	s->col = g->c;
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
	const float *tensor;
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
	for (int64_t i = c.begin; i < c.end && i < g->c; i += LANES, from->at += LANES, into.at += LANES) {
		square_lanes(from, i, g->c, whole);
		fetch_below(from, g->side, 0);
		turn_square(t, from, &into);
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
			int64_t width = min_of(l->panel, g->lanes - c);

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
