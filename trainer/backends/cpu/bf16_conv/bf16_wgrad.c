/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_wgrad.c: gradients of weights: dw[k][tap] = sum over pixels of dy[pixel][k] x[pixel + tap]. The terms of a block
 * are result numbers (bf16_plan.h). Each source cell is paired with its right neighbour, in lines of 16 channels, so
 * the pairs of 32 result numbers are every second line from the tap's cell on. dy is transposed: a line holds 32 result
 * numbers of one filter, and zeros for numbers without a pixel. A block is 32 filters by 32 terms of one tap. All
 * threads prepare a chunk of units in this form. Then they share its blocks. Each block adds all steps of the chunk to
 * its sums, which stay in the workspace from chunk to chunk. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/bf16_conv/bf16_plan.h"
#include "trainer/backends/cpu/vec.h"

#define UNIT_RESULTS 512	       /* result numbers per unit, about */
#define CHUNK_RESULTS 2048	       /* result numbers per chunk, about */
#define CHUNK_BYTES ((int64_t)3 << 20) /* bytes of a chunk in the prepared form, about */
#define LINE BLOCK_LINE
#define PANEL_STEP (2 * BLOCK_SIDE * LINE) /* bytes of 32 filters in a step */

struct bf16_wgrad {
	const struct bf16_conv *conv;
	const uint16_t *x, *dy;
	float *dw;
	bool turned; /* x and dy are swapped: sums are [c][k] */
	struct conv_plan plan;
	block_fn *block;
	int64_t chunk;	 /* units */
	int64_t steps;	 /* steps of a unit, of 32 result numbers each */
	int64_t panels;	 /* panels of 32 filters */
	int64_t columns; /* columns of blocks: 32 terms of a tap each */
	int64_t spread;	 /* cells from one line of pairs to the next */
	int64_t lines;	 /* lines of pairs for a unit and 16 terms */
	int64_t unit_cells_bytes;
	bool in_place;		/* units are read in the source itself: its pixels are the cells */
	char *pairs, *filters;	/* [16 terms][unit][line], [panel][unit][step] */
	int32_t *a_at, *b_at;	/* offsets for each step of a chunk */
	float *sums;		/* [block][BLOCK_SUMS] */
	char *cells;		/* cells of one unit, for each thread */
	struct cpu_range units; /* the units of the current chunk */
};

/* The bytes of each part of the workspace, in order. */
struct wgrad_room {
	int64_t offsets, pairs, filters, sums, cells;
};

/* With a 1x1 kernel and stride 1, x and dy can be swapped. Transposing costs more than pairing, so the one with fewer
 * channels is transposed. */
static bool turns_operands(const struct dnn_conv_spec *s)
{
	return s->kernel == 1 && s->stride == 1 && s->k >= 2 * s->c;
}

/* Chooses operands, panels and the units of a chunk for the gradient of a convolution's weights. */
static void plan_bf16_wgrad(struct bf16_wgrad *w, const struct bf16_conv *c)
{
	struct conv_plan *p = &w->plan;
	struct dnn_conv_spec s = c->spec;
	int64_t results, bytes;

	*w = (struct bf16_wgrad){ .conv = c, .turned = turns_operands(&s) };
	s.c = w->turned ? c->spec.k : c->spec.c;
	s.k = w->turned ? c->spec.c : c->spec.k;
	plan_conv(p, &s, UNIT_RESULTS);
	w->steps = divide_up(p->results, BLOCK_TERMS);
	w->panels = plan_panels(p->s.k);
	w->columns = p->cell / BLOCK_PANEL;
	w->spread = p->phase[0].taps == 1 ? 2 : 1;
	w->in_place = p->pixels && p->d == p->cell;
	/* a last step reads the cells of BLOCK_TERMS result numbers, and a pair ends one cell further */
	w->lines = divide_up(p->unit_cells + BLOCK_TERMS, w->spread);
	w->unit_cells_bytes = round_up(p->unit_cells * p->cell * 2, LINE);
	results = w->steps * BLOCK_TERMS;
	bytes = w->lines * p->cell / BLOCK_SIDE * LINE + w->panels * w->steps * PANEL_STEP;
	w->chunk = min_int64(CHUNK_RESULTS / results, CHUNK_BYTES / bytes);
	w->chunk = min_int64(w->chunk < c->threads ? c->threads : w->chunk, p->units);
}

static int64_t round_to_line(int64_t bytes)
{
	return round_up(bytes, LINE);
}

static int64_t count_wgrad_blocks(const struct bf16_wgrad *w)
{
	return w->columns * w->panels * w->plan.phase[0].taps;
}

static struct wgrad_room plan_wgrad_room(const struct bf16_wgrad *w)
{
	return (struct wgrad_room){
		.offsets = round_to_line(2 * w->chunk * w->steps * (int64_t)sizeof(int32_t)),
		.pairs = w->plan.cell / BLOCK_SIDE * w->chunk * w->lines * LINE,
		.filters = w->panels * w->chunk * w->steps * PANEL_STEP,
		.sums = count_wgrad_blocks(w) * BLOCK_SUMS * (int64_t)sizeof(float),
		.cells = w->conv->threads * w->unit_cells_bytes,
	};
}

size_t bf16_wgrad_workspace_bytes(const struct bf16_conv *c)
{
	struct wgrad_room r;
	struct bf16_wgrad w;

	plan_bf16_wgrad(&w, c);
	r = plan_wgrad_room(&w);
	return (size_t)(r.offsets + r.pairs + r.filters + r.sums + r.cells);
}

static void place_wgrad(struct bf16_wgrad *w, char *at)
{
	const struct wgrad_room r = plan_wgrad_room(w);

	w->a_at = (int32_t *)(void *)at;
	w->b_at = w->a_at + w->chunk * w->steps;
	w->pairs = at + r.offsets;
	w->filters = w->pairs + r.pairs;
	w->sums = (float *)(void *)(w->filters + r.filters);
	w->cells = w->filters + r.filters + r.sums;
}

static void fill_wgrad_offsets(struct bf16_wgrad *w)
{
	for (int64_t u = 0; u < w->chunk; u++)
		for (int64_t i = 0; i < w->steps; i++) {
			w->a_at[u * w->steps + i] = (int32_t)((u * w->steps + i) * PANEL_STEP);
			w->b_at[u * w->steps + i] = (int32_t)((u * w->lines + i * BLOCK_TERMS / w->spread) * LINE);
		}
}

/* ---- blocks ---- */

struct wgrad_block {
	int64_t column, panel, tap;
};

/* Blocks that read the same pairs are adjacent. */
static struct wgrad_block find_wgrad_block(const struct bf16_wgrad *w, int64_t i)
{
	const int64_t taps = w->plan.phase[0].taps;

	return (struct wgrad_block){ i / taps / w->panels, i / taps % w->panels, i % taps };
}

static void meet_wgrad_block(const struct bf16_wgrad *w, int64_t i)
{
	const struct conv_plan *p = &w->plan;
	const struct wgrad_block at = find_wgrad_block(w, i);
	const int64_t block_bytes = w->chunk * w->lines * LINE;
	const char *filters = w->filters + at.panel * w->chunk * w->steps * PANEL_STEP;
	const char *pairs = w->pairs + at.column * 2 * block_bytes + plan_tap_cell(p, &p->phase[0], at.tap) * LINE;
	const struct bf16_block o = {
		.a = { filters, at.panel * BLOCK_PANEL + BLOCK_SIDE < p->s.k ? filters + BLOCK_SIDE * LINE : NULL },
		.b = { pairs, at.column * BLOCK_PANEL + BLOCK_SIDE < p->terms ? pairs + block_bytes : NULL },
		.a_row = LINE,
		.b_row = 2 / w->spread * LINE,
		.steps = (w->units.end - w->units.begin) * w->steps,
		.a_at = w->a_at,
		.b_at = w->b_at,
		.sums = w->sums + i * BLOCK_SUMS,
		.add = w->units.begin > 0,
	};

	w->block(&o);
}

/* Prepares a thread's share of the next chunk. */
static struct cpu_range find_next_units(const struct bf16_wgrad *w, int part, int parts)
{
	const int64_t first = w->units.end, n = min_int64(w->chunk, w->plan.units - first);
	const struct cpu_range r = cpu_split(n, 1, part, parts);

	return (struct cpu_range){ first + r.begin, first + r.end };
}

static void meet_wgrad_part(void *arg, int part, int parts)
{
	const struct bf16_wgrad *w = arg;
	const enum cpu_tiles tiles = w->conv->engine == BF16_TILES ? w->conv->module->tiles : CPU_TILES_NONE;
	const struct cpu_range r = cpu_split(count_wgrad_blocks(w), 1, part, parts),
			       next = find_next_units(w, part, parts);
	struct plan_ahead x = { NULL, NULL }, dy = { NULL, NULL };
	int64_t lines;

	if (next.begin < next.end) {
		x = plan_look_ahead(w->x, plan_source_range(&w->plan, next));
		dy = plan_look_ahead(w->dy, plan_result_range(&w->plan, next));
	}
	lines = (x.end - x.at + dy.end - dy.at) / BLOCK_LINE / (r.end - r.begin + 1) + 1;
	amx_begin(tiles);
	for (int64_t i = r.begin; i < r.end; i++) {
		meet_wgrad_block(w, i);
		plan_prefetch(x.at < x.end ? &x : &dy, lines);
	}
	amx_end(tiles);
}

/* The rows of a block's sums are filters. Their columns have the same order in dw as in a cell. */
static void put_wgrad_block(const struct bf16_wgrad *w, int64_t i)
{
	const struct conv_plan *p = &w->plan;
	const struct wgrad_block at = find_wgrad_block(w, i);
	const int64_t first = at.column * BLOCK_PANEL, left = min_int64(BLOCK_PANEL, p->terms - first);
	const int64_t low = min_int64(left, BLOCK_SIDE), row = p->s.kernel * p->s.kernel * p->s.c;
	float *dw = w->dw + at.tap * p->terms + first;

	for (int64_t k = 0; k < BLOCK_PANEL && at.panel * BLOCK_PANEL + k < p->s.k; k++) {
		const float *from =
			w->sums + i * BLOCK_SUMS + k / BLOCK_SIDE * 2 * BLOCK_TILE + k % BLOCK_SIDE * BLOCK_SIDE;
		float *to = dw + (at.panel * BLOCK_PANEL + k) * row;

		memcpy(to, from, (size_t)low * sizeof(*to));
		memcpy(to + low, from + BLOCK_TILE, (size_t)(left - low) * sizeof(*to));
	}
}

/* Returns the cells of a unit: those of the source if they all exist, else a copy. */
static const uint16_t *find_unit_cells(const struct bf16_wgrad *w, int64_t unit, uint16_t *room)
{
	const struct conv_plan *p = &w->plan;
	const int64_t first = unit * p->rows * p->pitch;

	if (w->in_place && first + p->unit_cells <= p->pixels)
		return w->x + first * p->d;
	plan_fill_cells(p, w->x, unit, room);
	return room;
}

/* Finds the pixel of dy for each result number of a step; NULL: none. */
static void find_step_pixels(const struct bf16_wgrad *w, int64_t unit, int64_t step, const uint16_t **pixels)
{
	const struct conv_plan *p = &w->plan;
	int64_t row = step * BLOCK_TERMS / p->pitch, column = step * BLOCK_TERMS % p->pitch;
	struct result_row r = { 0 };

	for (int i = 0; i < BLOCK_TERMS; i++) {
		if (i == 0 || column == 0)
			r = row < p->rows ? plan_result_row(p, &p->phase[0], unit, row) : (struct result_row){ 0 };
		pixels[i] = column < r.results ? w->dy + (r.pixel + column) * p->s.k : NULL;
		if (++column == p->pitch) {
			column = 0;
			row++;
		}
	}
}

#define CPU_LANES 16
#define CPU_BODY "trainer/backends/cpu/bf16_conv/bf16_wgrad.c"
#include "trainer/backends/cpu/each.h"

void bf16_wgrad_run(const struct bf16_conv *c, const struct dnn_conv_args *args)
{
	static cpu_part_fn *const lay[] = CPU_TABLE(lay_wgrad_part), *const put[] = CPU_TABLE(put_wgrad_part);
	struct bf16_wgrad w;

	plan_bf16_wgrad(&w, c);
	w.x = w.turned ? args->b : args->a;
	w.dy = w.turned ? args->a : args->b;
	w.dw = args->out;
	w.block = block_pick(c->module, c->engine);
	place_wgrad(&w, args->workspace);
	fill_wgrad_offsets(&w);
	for (; w.units.begin < w.plan.units; w.units.begin = w.units.end) {
		w.units.end = min_int64(w.units.begin + w.chunk, w.plan.units);
		cpu_parallel(c->threads, lay[c->module->isa], &w);
		cpu_parallel(c->threads, meet_wgrad_part, &w);
	}
	cpu_parallel(c->threads, put[c->module->isa], &w);
}

#else

VEC_INLINE v16h V(load_16)(const uint16_t *from)
{
	return *(const v16h_u *)from;
}

/* Loads elements from..from + 15 of a pixel's k; NULL: zeros. */
VEC_INLINE v16h V(load_filters)(const uint16_t *pixel, int64_t from, int64_t k)
{
	v16h h = { 0 };

	if (!pixel || from >= k)
		return h;
	if (k - from >= LANES)
		return V(load_16)(pixel + from);
	memcpy(&h, pixel + from, (size_t)(k - from) * sizeof(uint16_t));
	return h;
}

/* Interleaves the lanes of a and b: a0, b0, a1, b1, ... */
VEC_INLINE v16u V(pair_lanes)(v16h a, v16h b)
{
	return __builtin_convertvector(a, v16u) | __builtin_convertvector(b, v16u) << 16;
}

/* Stores pairs of neighbouring cells, with zeros after the last cell. */
static void V(lay_pairs)(const struct bf16_wgrad *w, const uint16_t *cells, int64_t unit)
{
	const struct conv_plan *p = &w->plan;

	for (int64_t b = 0; b < p->cell / LANES; b++) {
		char *to = w->pairs + (b * w->chunk + unit) * w->lines * LINE;
		const uint16_t *from = cells + b * LANES;

		for (int64_t i = 0; i < w->lines; i++, to += LINE, from += w->spread * p->cell) {
			const int64_t left = p->unit_cells - i * w->spread;
			const v16u pair = left > 0 ? V(pair_lanes)(V(load_16)(from),
								   left > 1 ? V(load_16)(from + p->cell) : (v16h){ 0 })
						   : (v16u){ 0 };

			memcpy(to, &pair, LINE);
		}
	}
}

/* Transposes 32 result numbers of 16 filters into a line each. */
VEC_INLINE void V(lay_filter_tile)(const uint16_t *const *pixels, int64_t first, int64_t k, char *to)
{
	v16 m[LANES];

	for (int i = 0; i < LANES; i++)
		m[i] = (v16)V(pair_lanes)(V(load_filters)(pixels[2 * i], first, k),
					  V(load_filters)(pixels[2 * i + 1], first, k));
	vturn(m);
	memcpy(to, m, sizeof(m));
}

/* unit: counted over all units; at: counted within the chunk. */
static void V(lay_filters)(const struct bf16_wgrad *w, int64_t unit, int64_t at)
{
	const uint16_t *pixels[BLOCK_TERMS];

	for (int64_t i = 0; i < w->steps; i++) {
		find_step_pixels(w, unit, i, pixels);
		for (int64_t panel = 0; panel < w->panels; panel++) {
			char *to = w->filters + ((panel * w->chunk + at) * w->steps + i) * PANEL_STEP;

			V(lay_filter_tile)(pixels, panel * BLOCK_PANEL, w->plan.s.k, to);
			V(lay_filter_tile)(pixels, panel * BLOCK_PANEL + LANES, w->plan.s.k, to + LANES * LINE);
		}
	}
}

static void V(lay_wgrad_part)(void *arg, int part, int parts)
{
	const struct bf16_wgrad *w = arg;
	uint16_t *room = (uint16_t *)(void *)(w->cells + part * w->unit_cells_bytes);
	struct cpu_range r = cpu_split(w->units.end - w->units.begin, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		V(lay_pairs)(w, find_unit_cells(w, w->units.begin + i, room), i);
		V(lay_filters)(w, w->units.begin + i, i);
	}
}

/* Stores one tile of sums [c][k] as dw [k][c]. */
VEC_INLINE void V(put_turned_tile)(const struct bf16_wgrad *w, const float *sums, int64_t c, int64_t k)
{
	const int64_t channels = w->plan.s.k, rows = min_int64(LANES, w->plan.terms - k);
	v16 m[LANES];

	for (int i = 0; i < LANES; i++)
		m[i] = vload(sums, i * LANES, false);
	vturn(m);
	for (int64_t i = 0; i < rows; i++)
		vstore_any(w->dw, (k + i) * channels + c, m[i], channels - c, false);
}

static void V(put_turned_block)(const struct bf16_wgrad *w, int64_t i)
{
	const struct wgrad_block at = find_wgrad_block(w, i);

	for (int tile = 0; tile < 4; tile++) {
		const int64_t c = at.panel * BLOCK_PANEL + tile / 2 * LANES;
		const int64_t k = at.column * BLOCK_PANEL + tile % 2 * LANES;

		if (c < w->plan.s.k && k < w->plan.terms)
			V(put_turned_tile)(w, w->sums + i * BLOCK_SUMS + tile * BLOCK_TILE, c, k);
	}
}

static void V(put_wgrad_part)(void *arg, int part, int parts)
{
	const struct bf16_wgrad *w = arg;
	struct cpu_range r = cpu_split(count_wgrad_blocks(w), 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		w->turned ? V(put_turned_block)(w, i) : put_wgrad_block(w, i);
}

#endif
