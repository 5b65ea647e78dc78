/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.c: chooses the tiles, blocks and workspace of a convolution, and runs forward.c or wgrad.c. */
#include <string.h>

#include "trainer/backends/cpu/winograd/plan.h"
#include "trainer/backends/cpu/own_convs.h"

#define GRAIN 24			 /* in tiles; a multiple of the rows of every product below */
#define BLOCK_BYTES ((int64_t)648 << 10) /* products of a block, or inputs of a panel: 72 tiles of 64 channels */
#define NEAR_BYTES (BLOCK_BYTES / 2) /* limit if weights are transformed once: both fit 1 MB of a core's own cache */
#define SHARED_BYTES ((int64_t)512 << 10) /* both transformed activations of a block of wgrad */
#define SHARED_TILES_LEAST 128
#define APART_BYTES ((int64_t)160 << 10) /* limit for each thread to have its own sums: 32 by 32 channels */
#define APART_BLOCK_BYTES ((int64_t)400 << 10)
#define APART_GROUPS 16
#define APART_TILES_LEAST 64 /* tiles of a group */
#define STRIP_TILES 128 /* tiles per strip of wgrad, at most: all are transformed at once, and the sums stay cached */

/* Divides inputs and results into tiles; of the data gradient, dy is the input. */
static void plan_grids(struct winograd *w, const struct dnn_conv_spec *s)
{
	bool back = s->pass == DNN_DGRAD;
	int64_t h = back ? s->h : s->p, width = back ? s->w : s->q;

	memset(w, 0, sizeof(*w));
	w->back = back;
	w->filters = s->k;
	w->channels = s->c;
	w->in = (struct grid){ .n = s->n,
			       .side = PATCH,
			       .bf16 = s->bf16,
			       .rows = round_up(h, TILE) / TILE,
			       .cols = round_up(width, TILE) / TILE };
	w->out = w->in;
	w->out.side = TILE;
	w->in.before = back ? 2 - s->pad : s->pad;
	w->in.h = back ? s->p : s->h, w->in.w = back ? s->q : s->w, w->in.c = back ? s->k : s->c;
	w->out.h = h, w->out.w = width, w->out.c = back ? s->c : s->k;
	w->in.lanes = round_up(w->in.c, LANES);
	w->out.lanes = round_up(w->out.c, LANES);
	w->tiles = s->n * w->in.rows * w->in.cols;
}

static void plan_winograd_wgrad(struct winograd *w)
{
	int64_t bytes = POINTS * (w->in.lanes + w->out.lanes) * 4, sums = POINTS * w->in.lanes * w->out.lanes, floats;

	w->block = SHARED_BYTES / bytes > SHARED_TILES_LEAST ? SHARED_BYTES / bytes : SHARED_TILES_LEAST;
	w->strips = w->tiles <= STRIP_TILES;
	if (sums * 4 <= APART_BYTES && w->in.lanes <= PANEL && w->tiles >= 2 * APART_TILES_LEAST && !w->strips) {
		w->groups = min_int64(APART_GROUPS, w->tiles / APART_TILES_LEAST);
		w->block = APART_BLOCK_BYTES / bytes;
	}
	w->block = min_int64(w->block, w->tiles);
	w->rows = w->block;
	w->step_in = w->rows * w->in.lanes + GAP;
	w->step_out = w->rows * w->out.lanes + GAP;
	w->parts = w->groups ? (int)min_int64(w->threads, w->groups) : w->threads;
	floats = POINTS * (w->step_in + w->step_out);
	w->part_floats = w->groups ? floats : w->strips ? POINTS * STRIP_FLOATS : 0;
	w->shared_floats = w->groups ? w->groups * sums : w->strips ? floats : floats + sums;
}

/* Blocks have similar sizes, and each thread has the same number of them. If there are too few blocks, threads share
 * the inputs and divide the result channels as well. */
static void plan_winograd_forward(struct winograd *w)
{
	int64_t deep = min_int64(w->in.lanes, PANEL), wide = min_int64(w->out.lanes, PANEL), most, each, blocks;
	int64_t bytes = w->in.lanes <= PANEL && w->out.lanes <= PANEL ? NEAR_BYTES : BLOCK_BYTES;

	most = bytes / (POINTS * 4 * (deep > wide ? deep : wide)) / GRAIN * GRAIN;
	w->together = w->threads > 1 && divide_up(w->tiles, most) < 2 * w->threads;
	each = w->together ? w->tiles : divide_up(w->tiles, w->threads);
	w->block = divide_up(each, divide_up(each, most));
	w->rows = round_up(w->block, GRAIN);
	w->step_in = w->rows * w->in.lanes + GAP;
	w->step_out = w->rows * wide + GAP;
	w->step_weights = deep * wide + GAP;
	blocks = divide_up(w->tiles, w->block);
	w->parts = (int)min_int64(w->threads, w->together ? blocks * divide_up(w->out.lanes, PANEL) : blocks);
	w->part_floats = POINTS * (w->step_out + w->step_weights);
	if (w->together)
		w->shared_floats = blocks * POINTS * w->step_in;
	else
		w->part_floats += POINTS * w->step_in;
}

static void plan_winograd(struct winograd *w, const struct dnn_conv_spec *s, int threads)
{
	plan_grids(w, s);
	w->threads = threads;
	if (s->pass == DNN_WGRAD)
		plan_winograd_wgrad(w);
	else
		plan_winograd_forward(w);
}

size_t winograd_workspace_bytes(const struct dnn_conv_spec *s, int threads)
{
	struct winograd w;

	plan_winograd(&w, s, threads);
	return (size_t)(w.shared_floats + w.parts * w.part_floats) * sizeof(float);
}

size_t winograd_packed_bytes(const struct dnn_conv_spec *s)
{
	return s->bf16 && s->pass != DNN_WGRAD ? (size_t)(s->k * 9 * s->c) * 2 : 0;
}

#if defined(__x86_64__)
/* With fewer results or channels than a tile and a vector hold, most of the work would be padding. */
bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	bool fits = s->kernel == 3 && s->stride == 1 && s->pad <= 2;
	bool pays = s->p >= TILE && s->q >= TILE && s->c >= LANES && s->k >= LANES;

	return !m->direct && m->isa >= CPU_AVX512 && fits && pays;
}

void winograd_pack(const struct dnn_conv_spec *s, int threads, const float *krsc, void *packed)
{
	struct winograd w = { .filters = s->k, .channels = s->c, .threads = threads, .b = krsc, .result = packed };

	winograd_round(&w);
}

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	struct winograd w;

	plan_winograd(&w, s, threads);
	w.a = args->a;
	w.b = args->b;
	w.result = args->out;
	w.workspace = args->workspace;
	if (s->pass == DNN_WGRAD)
		winograd_wgrad(&w);
	else
		winograd_forward(&w);
}
#else
bool winograd_takes(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	(void)m, (void)s;
	return false;
}

void winograd_pack(const struct dnn_conv_spec *s, int threads, const float *krsc, void *packed)
{
	(void)s, (void)threads, (void)krsc, (void)packed;
}

void winograd_run(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args)
{
	(void)s, (void)threads, (void)args;
}
#endif
