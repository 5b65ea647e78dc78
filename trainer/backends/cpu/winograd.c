/* winograd.c: y = A^T [(G w G^T) . (B^T d B)] A over tiles of 4 x 4 results and 6 x 6 inputs that overlap by two.
 *
 * Of a block of tiles, every input is transformed, 16 channels at a time, into 36 matrices [tile][channel]; each is
 * multiplied by its matrix of transformed weights [channel][result channel], a panel of at most 64 result channels at a
 * time, so that the 36 products of a panel are still near when they are transformed into results. dgrad is the same
 * with turned weights. For wgrad both activations are transformed and the 36 products sum over tiles:
 * dw = G^T [sum (A dy A^T) . (B^T x B)] G. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trainer/backends/cpu/winograd.h"

#define LANES 16
#define TILE 4	 /* results of a tile in each direction */
#define PATCH 6	 /* inputs of a tile in each direction */
#define POINTS 36 /* PATCH * PATCH */
#define PANEL 64  /* result channels of a panel, at most */
#define GAP LANES /* floats between matrices, so that those of one tile do not share a set of the cache */
#define STRIP_FLOATS (LANES * PANEL + GAP)
#define BLOCK_GRAIN 24 /* tiles; a multiple of the rows of every product below */
#define BLOCK_BYTES ((int64_t)640 << 10) /* of the transformed inputs of a block */
#define SHARED_BYTES ((int64_t)512 << 10) /* of both transformed activations of a block of wgrad */
#define SHARED_TILES_LEAST 128
#define STRIP_TILES 128 /* of wgrad, at most: all of them are transformed at once, and sums stay near */

/* How a tensor [n,h,w,c] is cut into tiles. */
struct grid {
	int64_t n, h, w, c; /* of the tensor that is read or written */
	int64_t lanes;	    /* c, up to a multiple of LANES */
	int64_t rows, cols; /* tiles of an image */
	int64_t before;	    /* rows above and columns left of the tensor that the first tile covers */
	int64_t side;	    /* of a tile: TILE or PATCH */
};

struct winograd {
	struct grid in, out; /* inputs, 6 x 6, and results, 4 x 4; of wgrad x and dy */
	int64_t tiles, block, step_in, step_out; /* step: floats from one of the 36 matrices of a block to the next */
	int64_t part_floats; /* workspace of one part; of all for wgrad, shared_floats of it for the activations */
	int64_t shared_floats;
	bool strips; /* wgrad: sums of LANES filters and a panel of channels at a time, else of all */
	const float *a, *b;
	float *result, *workspace;
	int64_t begin, count; /* wgrad: the tiles of the block that is worked on */
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t up(int64_t n, int64_t grain)
{
	return (n + grain - 1) / grain * grain;
}

static void plan_grids(struct winograd *w, const struct dnn_conv_spec *s)
{
	bool back = s->pass == DNN_DGRAD;
	int64_t h = back ? s->h : s->p, width = back ? s->w : s->q;

	memset(w, 0, sizeof(*w));
	w->in = (struct grid){ .n = s->n, .side = PATCH, .rows = up(h, TILE) / TILE, .cols = up(width, TILE) / TILE };
	w->out = w->in;
	w->out.side = TILE;
	w->in.before = back ? 2 - s->pad : s->pad;
	w->in.h = back ? s->p : s->h, w->in.w = back ? s->q : s->w, w->in.c = back ? s->k : s->c;
	w->out.h = h, w->out.w = width, w->out.c = back ? s->c : s->k;
	w->in.lanes = up(w->in.c, LANES);
	w->out.lanes = up(w->out.c, LANES);
	w->tiles = s->n * w->in.rows * w->in.cols;
}

static void plan(struct winograd *w, const struct dnn_conv_spec *s, int threads)
{
	int64_t bytes;

	plan_grids(w, s);
	if (s->pass == DNN_WGRAD) {
		bytes = POINTS * (w->in.lanes + w->out.lanes) * 4;
		w->block = SHARED_BYTES / bytes > SHARED_TILES_LEAST ? SHARED_BYTES / bytes : SHARED_TILES_LEAST;
		w->strips = w->tiles <= STRIP_TILES;
		w->block = least(w->block, w->tiles);
		w->step_in = w->block * w->in.lanes + GAP;
		w->step_out = w->block * w->out.lanes + GAP;
		w->shared_floats = POINTS * (w->step_in + w->step_out);
		w->part_floats = w->shared_floats +
				 POINTS * (w->strips ? threads * STRIP_FLOATS : w->in.lanes * w->out.lanes);
		return;
	}
	bytes = POINTS * w->in.lanes * 4;
	w->block = BLOCK_BYTES / bytes / BLOCK_GRAIN * BLOCK_GRAIN;
	w->block = least(w->block < BLOCK_GRAIN ? BLOCK_GRAIN : w->block,
			 up((w->tiles + threads - 1) / threads, BLOCK_GRAIN));
	w->step_in = w->block * w->in.lanes + GAP;
	w->step_out = w->block * least(w->out.lanes, PANEL) + GAP;
	w->part_floats = POINTS * (w->step_in + w->step_out);
}

static int parts_of(const struct winograd *w, int threads)
{
	return (int)least(threads, (w->tiles + w->block - 1) / w->block);
}

size_t winograd_packed_bytes(const struct dnn_conv_spec *s)
{
	struct winograd w;

	if (s->pass == DNN_WGRAD)
		return 0;
	plan_grids(&w, s);
	return (size_t)(POINTS * w.in.lanes * w.out.lanes) * sizeof(float);
}

size_t winograd_workspace_bytes(const struct dnn_conv_spec *s, int threads)
{
	struct winograd w;

	plan(&w, s, threads);
	return (size_t)w.part_floats * sizeof(float) * (size_t)(s->pass == DNN_WGRAD ? 1 : parts_of(&w, threads));
}

#if defined(__x86_64__)
/* Where there are fewer results or channels than a tile and a vector hold, most of the work would be padding. */
bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	bool fits = !s->bf16 && s->kernel == 3 && s->stride == 1 && s->pad <= 2;
	bool pays = s->p >= TILE && s->q >= TILE && s->c >= LANES && s->k >= LANES;

	return !m->direct && m->isa >= CPU_AVX512 && fits && pays;
}

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

#define INLINE static inline __attribute__((always_inline))

#include "trainer/backends/cpu/turn16.h"
#include "trainer/backends/cpu/winograd_turn.h"

/* A tile by its image, row and column. */
struct place {
	int64_t image, row, col;
};

static struct place place_at(const struct grid *g, int64_t tile)
{
	return (struct place){ tile / g->cols / g->rows, tile / g->cols % g->rows, tile % g->cols };
}

static void place_next(struct place *p, const struct grid *g)
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
	unsigned first = at < 0 ? (unsigned)-at : 0, end = (unsigned)least(side, n - at);
	unsigned there = ((1u << end) - 1) >> first << first;

	for (int i = 0; i < PATCH; i++)
		masks[i] = (__mmask16) - (there >> i & 1);
}

/* The square that a tile covers of a tensor, all lanes; what lies outside is missing. */
static void square_of_tile(struct square *s, const struct grid *g, const float *tensor, const struct place *p)
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
struct laid {
	const struct grid *grid;
	const float *tensor;
	float *to;
	int64_t step, block, panel;
};

/* Of the first tile. */
static int64_t place_of(const struct laid *l, int64_t channel)
{
	int64_t in_panel = channel % l->panel;

	return (channel - in_panel) * l->block + in_panel;
}

/* What the tile below will be the first to touch: memory answers before its turn comes. Beyond the image lies the next
 * one. */
INLINE void fetch_below(const struct square *s, int64_t side, const int write)
{
#pragma GCC unroll 4
	for (int64_t i = 0; i < TILE; i++)
#pragma GCC unroll 4
		for (int64_t j = 0; j < TILE; j++)
			__builtin_prefetch(s->at + (side + i) * s->row + j * s->col, write, 3);
}

/* One tile of a panel's channels, which begin at `to`. */
INLINE void turn_panel(const enum turn t, const struct laid *l, struct square *from, float *to, struct cpu_range c)
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
INLINE void turn_tiles(const enum turn t, const struct laid *l, struct cpu_range tiles, int64_t first)
{
	const struct grid *g = l->grid;
	struct place place = place_at(g, tiles.begin);
	struct square from;

	for (int64_t i = tiles.begin; i < tiles.end; i++, place_next(&place, g)) {
		square_of_tile(&from, g, l->tensor, &place);
		for (int64_t c = 0; c < g->lanes; c += l->panel) {
			int64_t width = least(l->panel, g->lanes - c);

			turn_panel(t, l, &from, l->to + c * l->block + (i - first) * width,
				   (struct cpu_range){ c, c + width });
		}
	}
}

/* out [rows][vectors of 16] = (add: +=) sum over l < depth of a[row][l] b[l][…]. */
struct product {
	const float *a, *b;
	float *out;
	int64_t a_row, a_next, b_next, out_row, depth;
	bool add;
};

INLINE void product_tile(const struct product *p, const int rows, const int vectors)
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

/* A product of `rows` rows, in tiles that fill the registers. */
static void product_rows(struct product p, int64_t rows, int64_t width)
{
	const int64_t tall = width == PANEL ? 6 : width == 48 ? 8 : width == 32 ? 12 : 24;

	for (int64_t i = 0; i < rows; i += tall, p.a += tall * p.a_row, p.out += tall * p.out_row)
		switch (width / LANES) {
		case 4:
			product_tile(&p, 6, 4);
			break;
		case 3:
			product_tile(&p, 8, 3);
			break;
		case 2:
			product_tile(&p, 12, 2);
			break;
		default:
			product_tile(&p, 24, 1);
		}
}

/* The results of a panel from their 36 products. */
static void finish_panel(const struct winograd *w, struct cpu_range tiles, int64_t first, int64_t width)
{
	const float *products = w->workspace + POINTS * w->step_in;
	struct place place = place_at(&w->out, tiles.begin);
	struct square from, to;

	square_whole(&from, NULL, PATCH * w->step_out, w->step_out);
	for (int64_t i = tiles.begin; i < tiles.end; i++, place_next(&place, &w->out)) {
		square_of_tile(&to, &w->out, w->result, &place);
		to.at += first;
		from.at = (float *)products + (i - tiles.begin) * width;
		for (int64_t c = first, whole = to.whole; c < first + width; c += LANES) {
			square_lanes(&to, c, w->out.c, whole);
			fetch_below(&to, TILE, 1);
			turn_square(TURN_RESULT, &from, &to);
			to.at += LANES, from.at += LANES;
		}
	}
}

static void block_run(const struct winograd *w, struct cpu_range tiles)
{
	const struct laid in = { &w->in, w->a, w->workspace, w->step_in, w->block, w->in.lanes };
	float *products = w->workspace + POINTS * w->step_in;

	turn_tiles(TURN_INPUT, &in, tiles, tiles.begin);
	for (int64_t first = 0; first < w->out.lanes; first += PANEL) {
		int64_t width = least(PANEL, w->out.lanes - first);

		for (int64_t point = 0; point < POINTS; point++) {
			const struct product p = { .a = w->workspace + point * w->step_in,
						   .b = w->b + (POINTS * first + point * width) * w->in.lanes,
						   .out = products + point * w->step_out,
						   .a_row = w->in.lanes,
						   .a_next = 1,
						   .b_next = width,
						   .out_row = width,
						   .depth = w->in.lanes };

			product_rows(p, tiles.end - tiles.begin, width);
		}
		finish_panel(w, tiles, first, width);
	}
}

static void part_run(void *arg, int part, int parts)
{
	struct winograd w = *(const struct winograd *)arg;
	struct cpu_range r = cpu_split(w.tiles, w.block, part, parts);

	w.workspace += part * w.part_floats;
	for (int64_t i = r.begin; i < r.end; i += w.block)
		block_run(&w, (struct cpu_range){ i, least(i + w.block, r.end) });
}

/* --- the gradient of the weights ------------------------------------------------------------------------------- */

static struct laid laid_x(const struct winograd *w)
{
	return (struct laid){ &w->in, w->a, w->workspace, w->step_in, w->block, PANEL };
}

static struct laid laid_dy(const struct winograd *w)
{
	return (struct laid){ &w->out, w->b, w->workspace + POINTS * w->step_in, w->step_out, w->block, LANES };
}

/* Sums over tiles: 36 matrices of filters and channels, which begin with those of a pair of ranges. */
struct sums {
	float *at;
	int64_t row, step; /* floats from one filter, and from one matrix, to the next */
	struct cpu_range k, c;
};

static struct sums sums_all(const struct winograd *w)
{
	return (struct sums){ .at = w->workspace + w->shared_floats,
			      .row = w->in.lanes,
			      .step = w->in.lanes * w->out.lanes,
			      .k = { 0, w->out.lanes },
			      .c = { 0, w->in.lanes } };
}

static void wgrad_turn(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct laid x = laid_x(w), dy = laid_dy(w);
	struct cpu_range r = cpu_split(w->count, 1, part, parts);

	r.begin += w->begin, r.end += w->begin;
	turn_tiles(TURN_INPUT, &x, r, w->begin);
	turn_tiles(TURN_GRADIENT, &dy, r, w->begin);
}

/* The sums of one point and of a panel of channels, the range c of s; 16 filters lie together. */
static void wgrad_panel(const struct winograd *w, const struct sums *s, int64_t point)
{
	const struct laid x = laid_x(w), dy = laid_dy(w);
	int64_t width = s->c.end - s->c.begin, rows = width >= 48 ? 4 : width == 32 ? 8 : 16;
	struct product p = { .b = x.to + point * x.step + place_of(&x, s->c.begin),
			     .out = s->at + point * s->step,
			     .a_row = 1,
			     .a_next = LANES,
			     .b_next = width,
			     .out_row = s->row,
			     .depth = w->count,
			     .add = w->begin > 0 };

	for (int64_t k = s->k.begin; k < s->k.end; k += rows, p.out += rows * s->row) {
		p.a = dy.to + point * dy.step + place_of(&dy, k);
		switch (width / LANES) {
		case 4:
			product_tile(&p, 4, 4);
			break;
		case 3:
			product_tile(&p, 4, 3);
			break;
		case 2:
			product_tile(&p, 8, 2);
			break;
		default:
			product_tile(&p, 16, 1);
		}
	}
}

/* The gradient of filters r, of which s has the sums. */
static void wgrad_filters(const struct winograd *w, const struct sums *s, struct cpu_range r)
{
	int64_t channels = w->in.c;
	struct square from, to;

	square_whole(&from, NULL, PATCH * s->step, s->step);
	square_whole(&to, NULL, 3 * channels, channels);
	for (int64_t k = r.begin; k < least(r.end, w->out.c); k++)
		for (int64_t c = s->c.begin; c < least(s->c.end, channels); c += LANES) {
			from.at = s->at + (k - s->k.begin) * s->row + c - s->c.begin;
			to.at = w->result + k * 9 * channels + c;
			square_lanes(&to, c, channels, true);
			turn_square(TURN_DW, &from, &to);
		}
}

static void wgrad_sum(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct sums s = sums_all(w);
	int64_t panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct cpu_range r = cpu_split(POINTS * panels, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		s.c.begin = i % panels * PANEL;
		s.c.end = least(s.c.begin + PANEL, w->in.lanes);
		s.at = sums_all(w).at + s.c.begin;
		wgrad_panel(w, &s, i / panels);
	}
}

static void wgrad_finish(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct sums s = sums_all(w);

	wgrad_filters(w, &s, cpu_split(w->out.c, 1, part, parts));
}

/* Sums and gradients of 16 filters and a panel of channels at a time. */
static void wgrad_strips(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	int64_t strips = w->out.lanes / LANES, panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct sums s = { .at = w->workspace + w->shared_floats + part * POINTS * STRIP_FLOATS,
			  .row = PANEL,
			  .step = STRIP_FLOATS };
	const struct laid dy = laid_dy(w);
	struct cpu_range r = cpu_split(strips * panels, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		s.c.begin = i / strips * PANEL;
		s.c.end = least(s.c.begin + PANEL, w->in.lanes);
		s.k.begin = i % strips * LANES;
		s.k.end = s.k.begin + LANES;
		for (int64_t point = 0; point < POINTS; point++) {
			const float *next = dy.to + (point + 1) * dy.step + place_of(&dy, s.k.begin);

			for (int64_t j = 0; j < w->count; j++)
				__builtin_prefetch(next + j * LANES);
			wgrad_panel(w, &s, point);
		}
		wgrad_filters(w, &s, s.k);
	}
}

/* --- weights --------------------------------------------------------------------------------------------------- */

struct packing {
	struct winograd w;
	int64_t filters, channels;
	const float *krsc;
	float *packed;
};

/* Row `row` of the matrix of one point in the panel of result channel `result`. */
INLINE float *packed_at(const struct packing *p, int64_t point, int64_t row, int64_t result)
{
	int64_t in_panel = result % PANEL, first = result - in_panel, width = p->w.out.lanes - first;

	width = width < PANEL ? width : PANEL;
	return p->packed + POINTS * first * p->w.in.lanes + (point * p->w.in.lanes + row) * width + in_panel;
}

/* dgrad: filters are rows, taps are turned round. */
static void pack_back(void *arg, int part, int parts)
{
	const struct packing *p = arg;
	struct cpu_range r = cpu_split(p->w.in.lanes, 1, part, parts);
	struct square from, to;

	square_whole(&from, NULL, -3 * p->channels, -p->channels);
	for (int64_t k = r.begin; k < r.end; k++)
		for (int64_t c = 0; c < p->channels; c += LANES) {
			int64_t step = packed_at(p, 1, k, c) - packed_at(p, 0, k, c);

			from.at = (float *)p->krsc + (k * 9 + 8) * p->channels + c;
			square_lanes(&from, c, p->channels, k < p->filters);
			from.lanes = k < p->filters ? from.lanes : 0;
			square_whole(&to, packed_at(p, 0, k, c), PATCH * step, step);
			turn_square(TURN_WEIGHTS, &from, &to);
		}
}

/* 16 filters and 16 channels, turned so that filters lie side by side. Written past the caches, which would get every
 * line from memory first and have dropped it again before all are packed. */
static void pack_block(const struct packing *p, int64_t k, int64_t c)
{
	__m512 turned[POINTS][LANES];
	struct square from, to;

	square_whole(&from, NULL, 3 * p->channels, p->channels);
	for (int64_t i = 0; i < LANES; i++) {
		from.at = (float *)p->krsc + (k + i) * 9 * p->channels + c;
		square_lanes(&from, c, p->channels, k + i < p->filters);
		from.lanes = k + i < p->filters ? from.lanes : 0;
		square_whole(&to, (float *)&turned[0][i], PATCH * LANES * LANES, LANES * LANES);
		turn_square(TURN_WEIGHTS, &from, &to);
	}
	for (int64_t point = 0; point < POINTS; point++) {
		turn_16(turned[point]);
		for (int64_t i = 0; i < LANES; i++)
			_mm512_stream_ps(packed_at(p, point, c + i, k), turned[point][i]);
	}
}

static void pack_forward(void *arg, int part, int parts)
{
	const struct packing *p = arg;
	struct cpu_range r = cpu_split(p->w.out.lanes, LANES, part, parts);

	for (int64_t k = r.begin; k < r.end; k += LANES)
		for (int64_t c = 0; c < p->channels; c += LANES)
			pack_block(p, k, c);
	_mm_sfence();
}

#pragma GCC pop_options

void winograd_pack(const struct dnn_conv_spec *s, int threads, const void *krsc_f32, void *packed)
{
	struct packing p = { .filters = s->k, .channels = s->c, .krsc = krsc_f32, .packed = packed };

	plan_grids(&p.w, s);
	cpu_parallel(threads, s->pass == DNN_DGRAD ? pack_back : pack_forward, &p);
}

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	struct winograd w;

	plan(&w, s, threads);
	w.a = args->a;
	w.b = args->b;
	w.result = args->out;
	w.workspace = args->workspace;
	if (s->pass != DNN_WGRAD) {
		cpu_parallel(parts_of(&w, threads), part_run, &w);
		return;
	}
	for (; w.begin < w.tiles; w.begin += w.count) {
		w.count = least(w.block, w.tiles - w.begin);
		cpu_parallel(threads, wgrad_turn, &w);
		cpu_parallel(threads, w.strips ? wgrad_strips : wgrad_sum, &w);
	}
	if (!w.strips)
		cpu_parallel(threads, wgrad_finish, &w);
}
#else
bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	(void)m, (void)s;
	return false;
}

void winograd_pack(const struct dnn_conv_spec *s, int threads, const void *krsc_f32, void *packed)
{
	(void)s, (void)threads, (void)krsc_f32, (void)packed;
}

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	(void)s, (void)threads, (void)args;
}
#endif
