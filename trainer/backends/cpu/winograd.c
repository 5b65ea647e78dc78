/* winograd.c: y = A^T [(G w G^T) . (B^T d B)] A over tiles of 4 x 4 results and 6 x 6 inputs that overlap by two.
 *
 * Of a block of tiles, every input is transformed, 16 channels at a time, into 36 matrices [tile][channel]; each is
 * multiplied by its matrix of transformed weights [channel][result channel], of at most 64 by 64 at a time: weights are
 * transformed right before they are multiplied by, for four times their size of memory would take longer to write and
 * read, and the 36 products of 64 result channels are still near when they are transformed into results. dgrad is the
 * same with turned weights. For wgrad both activations are transformed and the 36 products sum over tiles:
 * dw = G^T [sum (A dy A^T) . (B^T x B)] G. Threads share tiles and then sums, block by block; where all sums are small,
 * each has groups of tiles and sums of its own, which are added in the order of the groups, whoever had them. */
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
#define GRAIN 24 /* tiles; a multiple of the rows of every product below */
#define BLOCK_BYTES ((int64_t)648 << 10) /* of a block's products, of its inputs of a panel: 72 tiles of 64 channels */
#define NEAR_BYTES (BLOCK_BYTES / 2) /* where weights are transformed once: both stay in 1 MB of a core's own cache */
#define SHARED_BYTES ((int64_t)512 << 10) /* of both transformed activations of a block of wgrad */
#define SHARED_TILES_LEAST 128
#define APART_BYTES ((int64_t)160 << 10) /* of all sums, at most, for threads to have their own: 32 by 32 channels */
#define APART_BLOCK_BYTES ((int64_t)400 << 10)
#define APART_GROUPS 16
#define APART_TILES_LEAST 64 /* of a group */
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
	int64_t tiles, block, rows; /* rows: that the matrices of a block have room for */
	int64_t step_in, step_out, step_weights; /* floats from one of 36 matrices to the next */
	int64_t shared_floats, part_floats; /* workspace: of all parts together, then of each */
	bool back;     /* dgrad */
	bool together; /* all inputs are transformed before the first product, for there are few blocks of tiles */
	int64_t groups; /* wgrad: of tiles that have sums of their own; 0: sums are shared */
	bool strips; /* wgrad: sums of LANES filters and a panel of channels at a time, else of all */
	int64_t filters, channels; /* of the weights */
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

static int64_t over(int64_t n, int64_t by)
{
	return (n + by - 1) / by;
}

static void plan_grids(struct winograd *w, const struct dnn_conv_spec *s)
{
	bool back = s->pass == DNN_DGRAD;
	int64_t h = back ? s->h : s->p, width = back ? s->w : s->q;

	memset(w, 0, sizeof(*w));
	w->back = back;
	w->filters = s->k;
	w->channels = s->c;
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

static void plan_wgrad(struct winograd *w)
{
	int64_t bytes = POINTS * (w->in.lanes + w->out.lanes) * 4, sums = POINTS * w->in.lanes * w->out.lanes, floats;

	w->block = SHARED_BYTES / bytes > SHARED_TILES_LEAST ? SHARED_BYTES / bytes : SHARED_TILES_LEAST;
	w->strips = w->tiles <= STRIP_TILES;
	if (sums * 4 <= APART_BYTES && w->in.lanes <= PANEL && w->tiles >= 2 * APART_TILES_LEAST && !w->strips) {
		w->groups = least(APART_GROUPS, w->tiles / APART_TILES_LEAST);
		w->block = APART_BLOCK_BYTES / bytes;
	}
	w->block = least(w->block, w->tiles);
	w->rows = w->block;
	w->step_in = w->rows * w->in.lanes + GAP;
	w->step_out = w->rows * w->out.lanes + GAP;
	floats = POINTS * (w->step_in + w->step_out);
	w->part_floats = w->groups ? floats : w->strips ? POINTS * STRIP_FLOATS : 0;
	w->shared_floats = w->groups ? w->groups * sums : w->strips ? floats : floats + sums;
}

/* Blocks are alike in size, and as many for each part; where there are too few of them for that, parts share the
 * inputs and divide result channels too. */
static void plan(struct winograd *w, const struct dnn_conv_spec *s, int threads)
{
	int64_t deep, wide, most, each, bytes;

	plan_grids(w, s);
	if (s->pass == DNN_WGRAD) {
		plan_wgrad(w);
		return;
	}
	deep = least(w->in.lanes, PANEL), wide = least(w->out.lanes, PANEL);
	bytes = w->in.lanes <= PANEL && w->out.lanes <= PANEL ? NEAR_BYTES : BLOCK_BYTES;
	most = bytes / (POINTS * 4 * (deep > wide ? deep : wide)) / GRAIN * GRAIN;
	w->together = threads > 1 && over(w->tiles, most) < 2 * threads;
	each = w->together ? w->tiles : over(w->tiles, threads);
	w->block = over(each, over(each, most));
	w->rows = up(w->block, GRAIN);
	w->step_in = w->rows * w->in.lanes + GAP;
	w->step_out = w->rows * wide + GAP;
	w->step_weights = deep * wide + GAP;
	w->part_floats = POINTS * (w->step_out + w->step_weights);
	if (w->together)
		w->shared_floats = over(w->tiles, w->block) * POINTS * w->step_in;
	else
		w->part_floats += POINTS * w->step_in;
}

static int parts_of(const struct winograd *w, enum dnn_pass pass, int threads)
{
	int64_t blocks = over(w->tiles, w->block);

	if (pass == DNN_WGRAD)
		return w->groups ? (int)least(threads, w->groups) : threads;
	return (int)least(threads, w->together ? blocks * over(w->out.lanes, PANEL) : blocks);
}

size_t winograd_workspace_bytes(const struct dnn_conv_spec *s, int threads)
{
	struct winograd w;

	plan(&w, s, threads);
	threads = parts_of(&w, s->pass, threads);
	return (size_t)(w.shared_floats + threads * w.part_floats) * sizeof(float);
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
	int64_t step, rows, panel; /* rows: that a panel has room for */
};

/* Of the first tile. */
static int64_t place_of(const struct laid *l, int64_t channel)
{
	int64_t in_panel = channel % l->panel;

	return (channel - in_panel) * l->rows + in_panel;
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

			turn_panel(t, l, &from, l->to + c * l->rows + (i - first) * width,
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

/* --- weights: of at most 64 by 64 channels, 36 matrices [channel][result channel] ------------------------------ */

struct corner { /* the panels that are multiplied: of channels, and of result channels */
	struct cpu_range in, out;
};

/* 16 filters and as many channels, turned so that filters lie side by side, into rows of 16 matrices. */
static void turn_filters(const struct winograd *w, int64_t k, int64_t c, struct square *into, int64_t row)
{
	__mmask16 lanes = (__mmask16)(w->channels - c >= LANES ? 0xffff : (1u << (w->channels - c)) - 1);
	__m512 taps[9][LANES];
	struct square from;

	for (int64_t tap = 0; tap < 9; tap++) {
		const float *at = w->b + (k * 9 + tap) * w->channels + c;

#pragma GCC unroll 16
		for (int64_t i = 0; i < LANES; i++)
			taps[tap][i] = _mm512_maskz_loadu_ps(k + i < w->filters ? lanes : 0, at + i * 9 * w->channels);
		turn_16(taps[tap]);
	}
	square_whole(&from, NULL, 3 * LANES * LANES, LANES * LANES);
	for (int64_t i = 0; i < LANES; i++, into->at += row) {
		from.at = (float *)&taps[0][i];
		turn_square(TURN_WEIGHTS, &from, into);
	}
}

static void weights_forward(const struct winograd *w, const struct corner *c, float *to)
{
	int64_t width = c->out.end - c->out.begin;
	struct square into;

	square_whole(&into, NULL, PATCH * w->step_weights, w->step_weights);
	for (int64_t k = c->out.begin; k < c->out.end; k += LANES)
		for (int64_t i = c->in.begin; i < c->in.end; i += LANES) {
			into.at = to + (i - c->in.begin) * width + k - c->out.begin;
			turn_filters(w, k, i, &into, width);
		}
}

/* Filters are rows, taps are turned round. */
static void weights_back(const struct winograd *w, const struct corner *c, float *to)
{
	int64_t channels = w->channels;
	struct square from, into;

	square_whole(&from, NULL, -3 * channels, -channels);
	square_whole(&into, to, PATCH * w->step_weights, w->step_weights);
	for (int64_t k = c->in.begin; k < c->in.end; k++)
		for (int64_t i = c->out.begin; i < c->out.end; i += LANES, into.at += LANES) {
			from.at = (float *)w->b + (k * 9 + 8) * channels + i;
			square_lanes(&from, i, channels, k < w->filters);
			from.lanes = k < w->filters ? from.lanes : 0;
			turn_square(TURN_WEIGHTS, &from, &into);
		}
}

static void weights_turn(const struct winograd *w, const struct corner *c, float *to)
{
	if (w->back)
		weights_back(w, c, to);
	else
		weights_forward(w, c, to);
}

/* --- forward and dgrad ----------------------------------------------------------------------------------------- */

/* What a thread works on: a block of tiles, whose inputs are transformed, and room of its own. */
struct work {
	const struct winograd *w;
	struct cpu_range tiles;
	float *inputs, *products, *weights;
	bool turned; /* weights hold the only corner that there is */
};

static struct work work_of(const struct winograd *w, int part)
{
	float *own = w->workspace + w->shared_floats + part * w->part_floats;

	return (struct work){ .w = w,
			      .products = own,
			      .weights = own + POINTS * w->step_out,
			      .inputs = own + POINTS * (w->step_out + w->step_weights) };
}

static struct laid laid_inputs(const struct winograd *w, float *to)
{
	return (struct laid){ &w->in, w->a, to, w->step_in, w->rows, PANEL };
}

/* The results of a panel from their 36 products. */
static void finish_panel(const struct work *k, struct cpu_range panel)
{
	const struct winograd *w = k->w;
	struct place place = place_at(&w->out, k->tiles.begin);
	struct square from, to;

	square_whole(&from, NULL, PATCH * w->step_out, w->step_out);
	for (int64_t i = k->tiles.begin; i < k->tiles.end; i++, place_next(&place, &w->out)) {
		square_of_tile(&to, &w->out, w->result, &place);
		to.at += panel.begin;
		from.at = k->products + (i - k->tiles.begin) * (panel.end - panel.begin);
		for (int64_t c = panel.begin, whole = to.whole; c < panel.end; c += LANES) {
			square_lanes(&to, c, w->out.c, whole);
			fetch_below(&to, TILE, 1);
			turn_square(TURN_RESULT, &from, &to);
			to.at += LANES, from.at += LANES;
		}
	}
}

/* The 36 products of a corner, added to those of the channels before it. */
static void corner_run(const struct work *k, const struct corner *c)
{
	const struct winograd *w = k->w;
	int64_t depth = c->in.end - c->in.begin, width = c->out.end - c->out.begin;
	const float *inputs = k->inputs + c->in.begin * w->rows;

	for (int64_t point = 0; point < POINTS; point++) {
		const struct product p = { .a = inputs + point * w->step_in,
					   .b = k->weights + point * w->step_weights,
					   .out = k->products + point * w->step_out,
					   .a_row = depth,
					   .a_next = 1,
					   .b_next = width,
					   .out_row = width,
					   .depth = depth,
					   .add = c->in.begin > 0 };

		product_rows(p, k->tiles.end - k->tiles.begin, width);
	}
}

static void panel_run(struct work *k, int64_t first)
{
	const struct winograd *w = k->w;
	struct corner c = { .out = { first, least(first + PANEL, w->out.lanes) } };

	for (; c.in.begin < w->in.lanes; c.in.begin += PANEL) {
		c.in.end = least(c.in.begin + PANEL, w->in.lanes);
		if (!k->turned)
			weights_turn(w, &c, k->weights);
		k->turned = w->in.lanes <= PANEL && w->out.lanes <= PANEL;
		corner_run(k, &c);
	}
	finish_panel(k, c.out);
}

static void part_run(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->tiles, w->block, part, parts);
	struct work k = work_of(w, part);
	const struct laid in = laid_inputs(w, k.inputs);

	for (int64_t i = r.begin; i < r.end; i += w->block) {
		k.tiles = (struct cpu_range){ i, least(i + w->block, r.end) };
		turn_tiles(TURN_INPUT, &in, k.tiles, i);
		for (int64_t first = 0; first < w->out.lanes; first += PANEL)
			panel_run(&k, first);
	}
}

static float *shared_inputs(const struct winograd *w, int64_t block)
{
	return w->workspace + block * POINTS * w->step_in;
}

static void together_turn(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->tiles, 1, part, parts), of;

	for (of.begin = r.begin; of.begin < r.end; of.begin = of.end) {
		int64_t block = of.begin / w->block;
		const struct laid in = laid_inputs(w, shared_inputs(w, block));

		of.end = least((block + 1) * w->block, r.end);
		turn_tiles(TURN_INPUT, &in, of, block * w->block);
	}
}

static void together_run(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	int64_t panels = over(w->out.lanes, PANEL), blocks = over(w->tiles, w->block);
	struct cpu_range r = cpu_split(panels * blocks, 1, part, parts);
	struct work k = work_of(w, part);

	for (int64_t i = r.begin; i < r.end; i++) {
		int64_t block = i % blocks;

		k.tiles = (struct cpu_range){ block * w->block, least((block + 1) * w->block, w->tiles) };
		k.inputs = shared_inputs(w, block);
		panel_run(&k, i / blocks * PANEL);
	}
}

/* --- the gradient of the weights ------------------------------------------------------------------------------- */

static struct laid laid_x(const struct winograd *w)
{
	return (struct laid){ &w->in, w->a, w->workspace, w->step_in, w->rows, PANEL };
}

static struct laid laid_dy(const struct winograd *w)
{
	return (struct laid){ &w->out, w->b, w->workspace + POINTS * w->step_in, w->step_out, w->rows, LANES };
}

/* Sums over tiles: 36 matrices of filters and channels, which begin with those of a pair of ranges. */
struct sums {
	float *at;
	int64_t row, step; /* floats from one filter, and from one matrix, to the next */
	struct cpu_range k, c;
	bool add; /* to those of the tiles before */
};

static int64_t sums_floats(const struct winograd *w)
{
	return POINTS * w->in.lanes * w->out.lanes;
}

static struct sums sums_all(const struct winograd *w, float *at)
{
	return (struct sums){ .at = at,
			      .row = w->in.lanes,
			      .step = w->in.lanes * w->out.lanes,
			      .k = { 0, w->out.lanes },
			      .c = { 0, w->in.lanes } };
}

static float *sums_shared(const struct winograd *w)
{
	return w->workspace + w->shared_floats - sums_floats(w);
}

/* Tiles of the block that is worked on. */
static void wgrad_tiles(const struct winograd *w, struct cpu_range r)
{
	const struct laid x = laid_x(w), dy = laid_dy(w);

	turn_tiles(TURN_INPUT, &x, r, w->begin);
	turn_tiles(TURN_GRADIENT, &dy, r, w->begin);
}

static void wgrad_turn(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->count, 1, part, parts);

	wgrad_tiles(w, (struct cpu_range){ r.begin + w->begin, r.end + w->begin });
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
			     .add = s->add };

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
	struct sums s = sums_all(w, NULL);
	int64_t panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct cpu_range r = cpu_split(POINTS * panels, 1, part, parts);

	s.add = w->begin > 0;
	for (int64_t i = r.begin; i < r.end; i++) {
		s.c.begin = i % panels * PANEL;
		s.c.end = least(s.c.begin + PANEL, w->in.lanes);
		s.at = sums_shared(w) + s.c.begin;
		wgrad_panel(w, &s, i / panels);
	}
}

static void wgrad_finish(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct sums s = sums_all(w, sums_shared(w));

	wgrad_filters(w, &s, cpu_split(w->out.c, 1, part, parts));
}

/* The sums of a group of tiles, block by block, in memory of w's own. */
static void apart_group(struct winograd *w, int64_t group, float *at)
{
	const struct cpu_range r = cpu_split(w->tiles, 1, (int)group, (int)w->groups);
	struct sums s = sums_all(w, at);

	for (w->begin = r.begin; w->begin < r.end; w->begin += w->count) {
		w->count = least(w->block, r.end - w->begin);
		wgrad_tiles(w, (struct cpu_range){ w->begin, w->begin + w->count });
		s.add = w->begin > r.begin;
		for (int64_t point = 0; point < POINTS; point++)
			wgrad_panel(w, &s, point);
	}
}

static void floats_add(float *to, const float *from, int64_t n)
{
	for (int64_t i = 0; i < n; i += LANES)
		_mm512_storeu_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(to + i), _mm512_loadu_ps(from + i)));
}

/* The first thread adds up its groups as it goes, in the place of group 0, which no later group needs to wait for. */
static void apart_run(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct cpu_range r = cpu_split(w->groups, 1, part, parts);
	struct winograd own = *w;

	own.workspace += w->shared_floats + part * w->part_floats;
	for (int64_t group = r.begin; group < r.end; group++) {
		float *at = w->workspace + (part ? group : least(group, 1)) * sums_floats(w);

		apart_group(&own, group, at);
		if (!part && group)
			floats_add(w->workspace, at, sums_floats(w));
	}
}

/* The other threads' groups join, in order; then the gradient, each thread of its filters. */
static void apart_finish(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	const struct sums s = sums_all(w, w->workspace);
	const struct cpu_range first = cpu_split(w->groups, 1, 0, parts), r = cpu_split(w->out.c, 1, part, parts);

	for (int64_t group = first.end; group < w->groups; group++)
		for (int64_t point = 0; point < POINTS; point++) {
			float *to = s.at + point * s.step + r.begin * s.row;

			floats_add(to, to + group * sums_floats(w), (r.end - r.begin) * s.row);
		}
	wgrad_filters(w, &s, r);
}

/* Sums and gradients of 16 filters and a panel of channels at a time. */
static void wgrad_strips(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	int64_t strips = w->out.lanes / LANES, panels = (w->in.lanes + PANEL - 1) / PANEL;
	struct sums s = { .at = w->workspace + w->shared_floats + part * w->part_floats,
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

#pragma GCC pop_options

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	struct winograd w;

	plan(&w, s, threads);
	w.a = args->a;
	w.b = args->b;
	w.result = args->out;
	w.workspace = args->workspace;
	if (s->pass != DNN_WGRAD) {
		if (w.together)
			cpu_parallel(threads, together_turn, &w);
		cpu_parallel(parts_of(&w, s->pass, threads), w.together ? together_run : part_run, &w);
		return;
	}
	if (w.groups) {
		cpu_parallel(parts_of(&w, s->pass, threads), apart_run, &w);
		cpu_parallel(parts_of(&w, s->pass, threads), apart_finish, &w);
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

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	(void)s, (void)threads, (void)args;
}
#endif
