/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_forward.c: forward passes and data gradients. Each thread copies a chunk of units into cells (bf16_plan.h). Then
 * each panel of 32 results is multiplied with all blocks of the chunk; a block is two tiles of 16 result numbers. Terms
 * are cut into runs whose weights stay in the first-level cache for all blocks of the chunk. Between runs the sums are
 * kept in the workspace. Small images waste much of an image's last tile. For these the 16 rows of a tile are the same
 * result of 16 images ("across"). */
#ifndef CPU_PASS
#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/bf16_conv/bf16_plan.h"
#include "trainer/backends/cpu/vec.h"

#define RESULTS_MOST 1024		 /* result numbers per chunk, about */
#define CHUNK_BYTES ((int64_t)640 << 10) /* cells of a chunk, about: small enough for the second-level cache */
#define RUN_STEPS 18			 /* steps of weights per run: 36 KiB, small enough for the first-level cache */
#define ACROSS_FILL 0.85		 /* if tiles along a row are filled less than this, tiles go across images */
#define ACROSS_LEAST 12			 /* images */
#define TILE_UNITS BLOCK_SIDE
#define SLACK_CELLS (2 * BLOCK_SIDE) /* cells that a last tile reads after the end of its unit */

struct forward {
	const struct bf16_conv *conv;
	const struct dnn_conv_args *args;
	struct conv_plan plan;
	block_fn *block;
	bool across;
	bool in_place; /* units are read in the source itself: its pixels are the cells */
	int64_t chunk; /* units */
	int64_t tiles; /* tiles per chunk, at most */
	int unit_parts, panel_parts;
	int64_t cells_bytes, sums_bytes, part_bytes;
	int32_t *a_at, *b_at; /* offsets for each step of a panel */
	char *rooms;	      /* memory per thread: cells, sums, tiles */
};

/* Where a tile starts among the cells, and where its rows are stored: elements from the start of the results; -1:
 * dropped. */
struct forward_tile {
	int64_t at, place[BLOCK_SIDE];
};

/* A part's chunk of units. */
struct forward_chunk {
	const struct forward *f;
	struct cpu_range units, panels;
	const char *cells;
	float *sums;
	struct forward_tile *tile;
	const struct conv_phase *phase;
	int64_t tiles, panel;
	struct plan_ahead ahead;
	int64_t ahead_lines; /* a block */
};

static int64_t count_unit_tiles(const struct conv_plan *p)
{
	return divide_up(p->results, BLOCK_SIDE);
}

/* Counts the results that are kept among those that tiles along rows compute. */
static double find_kept_share(const struct conv_plan *p)
{
	const double kept = (double)(p->phase[0].y.results * p->phase[0].x.results);

	return kept / (double)(p->bands * count_unit_tiles(p) * BLOCK_SIDE);
}

void bf16_forward_plan(struct conv_plan *p, const struct bf16_conv *c)
{
	plan_conv(p, &c->spec, RESULTS_MOST);
}

/* Chooses bands so low that the cells of one stay in the cache. */
static void plan_forward_bands(struct forward *f)
{
	const struct bf16_conv *c = f->conv;

	bf16_forward_plan(&f->plan, c);
	while (f->plan.rows > 1 && f->plan.unit_cells * f->plan.cell * 2 > 2 * CHUNK_BYTES)
		plan_conv(&f->plan, &c->spec, f->plan.rows / 2 * f->plan.pitch);
}

static void plan_forward_chunk(struct forward *f)
{
	const struct conv_plan *p = &f->plan;
	const int64_t unit_bytes = p->unit_cells * p->cell * 2;
	const int64_t fits = min_int64(CHUNK_BYTES / unit_bytes, RESULTS_MOST / p->results);

	f->across = p->bands == 1 && p->n >= ACROSS_LEAST && find_kept_share(p) < ACROSS_FILL;
	f->in_place = p->pixels && p->d == p->cell;
	f->chunk = fits > 1 ? min_int64(fits, divide_up(p->units, f->conv->threads)) : 1;
	if (f->across)
		f->chunk = TILE_UNITS;
	f->tiles = f->across ? p->rows * p->columns : f->chunk * count_unit_tiles(p);
}

static void plan_forward_parts(struct forward *f)
{
	const struct conv_plan *p = &f->plan;
	const int64_t chunks = divide_up(p->units, f->chunk), threads = f->conv->threads;

	f->unit_parts = (int)min_int64(threads, chunks);
	f->panel_parts = (int)min_int64(threads / f->unit_parts, plan_panels(p->e));
	f->cells_bytes =
		round_up((f->chunk * p->unit_cells + SLACK_CELLS) * p->cell * 2, BLOCK_LINE);
	f->sums_bytes = divide_up(f->tiles, 2) * BLOCK_SUMS * (int64_t)sizeof(float);
	f->part_bytes = f->cells_bytes + f->sums_bytes + f->tiles * (int64_t)sizeof(struct forward_tile);
}

static void plan_bf16_forward(struct forward *f, const struct bf16_conv *c)
{
	*f = (struct forward){ .conv = c };
	plan_forward_bands(f);
	plan_forward_chunk(f);
	plan_forward_parts(f);
}

/* The table of both offsets. */
static int64_t count_offset_bytes(const struct forward *f)
{
	return round_up(f->plan.steps * 2 * (int64_t)sizeof(int32_t), BLOCK_LINE);
}

size_t bf16_forward_workspace_bytes(const struct bf16_conv *c)
{
	struct forward f;

	plan_bf16_forward(&f, c);
	return (size_t)(count_offset_bytes(&f) + f.unit_parts * f.panel_parts * f.part_bytes);
}

static void fill_forward_offsets(struct forward *f)
{
	const struct conv_plan *p = &f->plan;
	const int64_t each = p->cell / BLOCK_TERMS;

	for (int i = 0; i < p->phases; i++)
		for (int64_t k = 0; k < p->phase[i].steps; k++) {
			const int64_t cell = plan_tap_cell(p, &p->phase[i], k / each), at = p->phase[i].first_step + k;

			f->a_at[at] = (int32_t)(cell * p->cell * 2 + k % each * BLOCK_LINE);
			f->b_at[at] = (int32_t)(at * STEP_BYTES);
		}
}

/* ---- chunks ---- */

/* Units are read in place if all their tiles end within the source. */
static void fill_forward_chunk(struct forward_chunk *c, char *room)
{
	const struct conv_plan *p = &c->f->plan;
	const int64_t unit_bytes = p->unit_cells * p->cell * 2, first = c->units.begin * p->rows * p->pitch;
	const int64_t end = c->units.end * p->rows * p->pitch;

	c->cells = room;
	if (c->f->in_place && end <= p->pixels) {
		c->cells = (const char *)c->f->args->a + first * p->d * 2;
		return;
	}
	for (int64_t u = c->units.begin; u < c->units.end; u++, room += unit_bytes)
		plan_fill_cells(p, c->f->args->a, u, (uint16_t *)(void *)room);
}

/* Lists the tiles of a phase. Across: tile i is result i of all units, without the dropped ones. */
static void find_forward_tiles(struct forward_chunk *c)
{
	const struct conv_plan *p = &c->f->plan;
	const int64_t along = count_unit_tiles(p);

	c->tiles = c->f->across ? p->rows * p->columns : (c->units.end - c->units.begin) * along;
	for (int64_t i = 0; i < c->tiles; i++) {
		const int64_t cell = c->f->across ? i / p->columns * p->pitch + i % p->columns
						  : i / along * p->unit_cells + i % along * BLOCK_SIDE;

		c->tile[i].at = cell * p->cell * 2;
		for (int r = 0; r < BLOCK_SIDE; r++)
			c->tile[i].place[r] = -1;
	}
}

static void find_forward_places(struct forward_chunk *c)
{
	const struct conv_plan *p = &c->f->plan;
	const int64_t units = c->units.end - c->units.begin, along = count_unit_tiles(p) * BLOCK_SIDE;

	for (int64_t u = 0; u < units; u++)
		for (int64_t row = 0; row < p->rows; row++) {
			const struct result_row r = plan_result_row(p, c->phase, c->units.begin + u, row);
			int64_t place = r.pixel * p->e, v = u * along + row * p->pitch;

			for (int64_t x = 0; x < r.results; x++, v++, place += p->out_step * p->e)
				if (c->f->across)
					c->tile[row * p->columns + x].place[u] = place;
				else
					c->tile[v / BLOCK_SIDE].place[v % BLOCK_SIDE] = place;
		}
}

/* Prefetches the part of the source that the next chunk reads. */
static void plan_forward_ahead(struct forward_chunk *c, int64_t end)
{
	const struct conv_plan *p = &c->f->plan;
	const int64_t blocks = divide_up(c->f->tiles, 2) * (c->panels.end - c->panels.begin);
	const struct cpu_range next = { c->units.end, min_int64(c->units.end + c->f->chunk, end) };

	c->ahead = (struct plan_ahead){ NULL, NULL };
	if (next.begin < next.end)
		c->ahead = plan_look_ahead(c->f->args->a, plan_source_range(p, next));
	c->ahead_lines = (c->ahead.end - c->ahead.at) / BLOCK_LINE / blocks + 1;
}

#define CPU_LANES 16
#define CPU_BODY "trainer/backends/cpu/bf16_conv/bf16_forward.c"
#include "trainer/backends/cpu/each.h"

void bf16_forward_run(const struct bf16_conv *c, const struct dnn_conv_args *args)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(run_forward_part);
	struct forward f;

	plan_bf16_forward(&f, c);
	f.args = args;
	f.block = block_pick(c->module, c->engine);
	f.a_at = args->workspace;
	f.b_at = f.a_at + f.plan.steps;
	f.rooms = (char *)args->workspace + count_offset_bytes(&f);
	fill_forward_offsets(&f);
	cpu_parallel(f.unit_parts * f.panel_parts, loops[c->module->isa], &f);
}

#else

/* Stores the results of one tile of a panel as bf16. */
VEC_INLINE void V(put_tile)(const struct forward_chunk *c, const int64_t *place, const float *sums)
{
	const int64_t first = c->panel * BLOCK_PANEL, left = c->f->plan.e - first;
	uint16_t *out = (uint16_t *)c->f->args->out + first;

	for (int r = 0; r < BLOCK_SIDE; r++, sums += BLOCK_SIDE) {
		if (place[r] < 0)
			continue;
		vstore_any(out, place[r], vload(sums, 0, false), left, true);
		if (left > LANES)
			vstore_any(out, place[r] + LANES, vload(sums, BLOCK_TILE, false), left - LANES, true);
	}
}

/* Multiplies one run of steps of a panel with all blocks of the chunk. */
static void V(meet_run)(struct forward_chunk *c, int64_t first, int64_t steps)
{
	const struct forward *f = c->f;
	const struct conv_plan *p = &f->plan;
	const char *weights = (const char *)f->args->b + c->panel * p->steps * STEP_BYTES;
	const bool last = first + steps == c->phase->steps, only = first == 0 && last;
	struct bf16_block o = { .b = { weights,
				       c->panel * BLOCK_PANEL + BLOCK_SIDE < p->e ? weights + BLOCK_LINE : NULL },
				.a_row = (f->across ? p->unit_cells : 1) * p->cell * 2,
				.b_row = 2 * BLOCK_LINE,
				.steps = steps,
				.a_at = f->a_at + c->phase->first_step + first,
				.b_at = f->b_at + c->phase->first_step + first,
				.add = first > 0 };

	for (int64_t i = 0; i < c->tiles; i += 2) {
		o.a[0] = c->cells + c->tile[i].at;
		o.a[1] = i + 1 < c->tiles ? c->cells + c->tile[i + 1].at : NULL;
		o.sums = c->sums + (only ? 0 : i / 2 * BLOCK_SUMS);
		f->block(&o);
		plan_prefetch(&c->ahead, c->ahead_lines);
		if (last)
			V(put_tile)(c, c->tile[i].place, o.sums);
		if (last && o.a[1])
			V(put_tile)(c, c->tile[i + 1].place, o.sums + 2 * BLOCK_TILE);
	}
}

static void V(run_phase)(struct forward_chunk *c)
{
	const int64_t steps = c->phase->steps, runs = steps ? divide_up(steps, RUN_STEPS) : 1;
	const int64_t run = divide_up(steps, runs);

	find_forward_tiles(c);
	find_forward_places(c);
	for (c->panel = c->panels.begin; c->panel < c->panels.end; c->panel++)
		for (int64_t i = 0; i < runs; i++)
			V(meet_run)(c, i * run, min_int64(run, steps - i * run));
}

/* Computes the chunks of a thread in order: cells, then each phase. */
static void V(run_forward_part)(void *arg, int part, int parts)
{
	const struct forward *f = arg;
	const struct conv_plan *p = &f->plan;
	char *room = f->rooms + part * f->part_bytes;
	const struct cpu_range r = cpu_split(p->units, f->chunk, part / f->panel_parts, f->unit_parts);
	struct forward_chunk c = { .f = f,
				   .panels = cpu_split(plan_panels(p->e), 1, part % f->panel_parts, f->panel_parts),
				   .sums = (float *)(void *)(room + f->cells_bytes),
				   .tile = (struct forward_tile *)(void *)(room + f->cells_bytes + f->sums_bytes) };
	const enum cpu_tiles tiles = f->conv->engine == BF16_TILES ? f->conv->module->tiles : CPU_TILES_NONE;

	(void)parts;
	amx_begin(tiles);
	for (int64_t u = r.begin; u < r.end; u += f->chunk) {
		c.units = (struct cpu_range){ u, min_int64(u + f->chunk, r.end) };
		fill_forward_chunk(&c, room);
		plan_forward_ahead(&c, r.end);
		for (int i = 0; i < p->phases; i++) {
			c.phase = &p->phase[i];
			V(run_phase)(&c);
		}
	}
	amx_end(tiles);
}

#endif
