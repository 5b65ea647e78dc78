/* block.h: tiles of a tensor become the 36 matrices of a block, and matrices are multiplied. To be included where
 * AVX-512 is the target, below immintrin.h, string.h, cpu.h and plan.h. */
#ifndef DPT_BACKENDS_CPU_WINOGRAD_BLOCK_H
#define DPT_BACKENDS_CPU_WINOGRAD_BLOCK_H

#define INLINE static inline __attribute__((always_inline))

#include "trainer/backends/cpu/winograd/turn.h"

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

/* Which of the lines from `at` on lie within [0, n), as masks; of `side` lines, the others do not. */
static void lines_there(__mmask16 *masks, int64_t at, int64_t n, int64_t side)
{
	unsigned first = at < 0 ? (unsigned)-at : 0, end = (unsigned)min_of(side, n - at);
	unsigned there = ((1u << end) - 1) >> first << first;

	for (int i = 0; i < PATCH; i++)
		masks[i] = (__mmask16) - (there >> i & 1);
}

/* The square that a tile covers of a tensor, all lanes; what is outside is missing. */
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

/* Its lanes are those of the channels from `channel` on. */
INLINE void square_lanes(struct square *s, int64_t channel, int64_t channels, bool whole)
{
	int64_t left = channels - channel;

	s->lanes = (__mmask16)(left >= LANES ? 0xffff : (1u << left) - 1);
	s->whole = whole && left >= LANES;
}

/* Where the transformed tiles of a tensor lie: 36 matrices, `step` floats apart, each cut into panels of at most
 * `panel` channels, a panel [tile][channel]. */
struct matrix_layout {
	const struct grid *grid;
	const float *tensor;
	float *to;
	int64_t step, rows, panel; /* rows: that a panel has room for */
};

/* Prefetches what the tile below is the first to touch. After the last row of an image follows the next image. */
INLINE void fetch_below(const struct square *s, int64_t side, const int write)
{
#pragma GCC unroll 4
	for (int64_t i = 0; i < TILE; i++)
#pragma GCC unroll 4
		for (int64_t j = 0; j < TILE; j++)
			__builtin_prefetch(s->at + (side + i) * s->row + j * s->col, write, 3);
}

/* One tile of a panel's channels, which begin at `to`. */
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

/* Tiles of a tensor into the 36 matrices of a block, which begin at `to` with the first of them. */
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
