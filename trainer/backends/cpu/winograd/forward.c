/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c: y = A^T [(G w G^T) . (B^T x B)] A. For a block of tiles, every input is transformed, 16 channels at a
 * time, into 36 matrices [tile][channel]. Each matrix is multiplied by its matrix of transformed weights
 * [channel][result channel], at most 64 by 64 at a time. Weights are transformed right before their use, because
 * writing and reading four times their size would take longer. Then the 36 products of 64 result channels are still
 * cached when they are transformed into results. dgrad is the same with turned weights. */
#include "trainer/backends/cpu/vec.h"
#include "trainer/backends/cpu/winograd/plan.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

#include "trainer/backends/cpu/winograd/block.h"
#include "trainer/backends/cpu/turn16.h"

/* Multiplies `rows` rows, in tiles that fill the registers. */
static void product_rows(struct panel_product p, int64_t rows, int64_t width)
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

/* --- weights: at most 64 by 64 channels, 36 matrices [channel][result channel] ------------------------------- */

struct corner { /* the panels that are multiplied: of channels, and of result channels */
	struct cpu_range in, out;
};

/* Returns the address of element i of the weights. */
static char *find_weight(const struct winograd *w, int64_t i)
{
	return (char *)w->b + i * (w->in.bf16 ? 2 : 4);
}

static __m512 load_weights(const struct winograd *w, int64_t i, __mmask16 there)
{
	const void *at = find_weight(w, i);

	return w->in.bf16 ? widen_bf16(_mm256_maskz_loadu_epi16(there, at)) : _mm512_maskz_loadu_ps(there, at);
}

/* Loads 16 filters by 16 channels, transposed so that filters are adjacent, into rows of 16 matrices. */
static void turn_filters(const struct winograd *w, int64_t k, int64_t c, struct square *into, int64_t row)
{
	__mmask16 lanes = (__mmask16)(w->channels - c >= LANES ? 0xffff : (1u << (w->channels - c)) - 1);
	__m512 taps[9][LANES];
	struct square from;

	for (int64_t tap = 0; tap < 9; tap++) {
#pragma GCC unroll 16
		for (int64_t i = 0; i < LANES; i++)
			taps[tap][i] =
				load_weights(w, ((k + i) * 9 + tap) * w->channels + c, k + i < w->filters ? lanes : 0);
		turn_16(taps[tap]);
	}
	square_whole(&from, NULL, 3 * LANES * LANES, LANES * LANES);
	for (int64_t i = 0; i < LANES; i++, into->at += row * 4) {
		from.at = (char *)&taps[0][i];
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
			into.at = (char *)(to + (i - c->in.begin) * width + k - c->out.begin);
			turn_filters(w, k, i, &into, width);
		}
}

/* Filters are rows, and taps are reversed. */
static void weights_back(const struct winograd *w, const struct corner *c, float *to)
{
	int64_t channels = w->channels;
	struct square from, into;

	square_whole(&from, NULL, 0, 0);
	from.element = w->in.bf16 ? ELEMENT_BF16 : ELEMENT_F32;
	from.col = -channels * element_bytes(from.element);
	from.row = 3 * from.col;
	square_whole(&into, to, PATCH * w->step_weights, w->step_weights);
	for (int64_t k = c->in.begin; k < c->in.end; k++)
		for (int64_t i = c->out.begin; i < c->out.end; i += LANES, square_next(&into)) {
			from.at = find_weight(w, (k * 9 + 8) * channels + i);
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

/* A thread's data: a block of tiles with transformed inputs, and its own memory. */
struct winograd_work {
	const struct winograd *w;
	struct cpu_range tiles;
	float *inputs, *products, *weights;
	bool turned; /* weights hold the only corner */
};

static struct winograd_work find_winograd_work(const struct winograd *w, int part)
{
	float *own = w->workspace + w->shared_floats + part * w->part_floats;

	return (struct winograd_work){ .w = w,
				       .products = own,
				       .weights = own + POINTS * w->step_out,
				       .inputs = own + POINTS * (w->step_out + w->step_weights) };
}

static struct matrix_layout laid_inputs(const struct winograd *w, float *to)
{
	return (struct matrix_layout){ &w->in, w->a, to, w->step_in, w->rows, PANEL };
}

/* Transforms the 36 products of a panel into results. */
static void finish_panel(const struct winograd_work *k, struct cpu_range panel)
{
	const struct winograd *w = k->w;
	struct tile_place place = place_at(&w->out, k->tiles.begin);
	struct square from, to;

	square_whole(&from, NULL, PATCH * w->step_out, w->step_out);
	for (int64_t i = k->tiles.begin; i < k->tiles.end; i++, place_next(&place, &w->out)) {
		square_of_tile(&to, &w->out, w->result, &place);
		to.at += panel.begin * element_bytes(to.element);
		from.at = (char *)(k->products + (i - k->tiles.begin) * (panel.end - panel.begin));
		for (int64_t c = panel.begin, whole = to.whole; c < panel.end; c += LANES) {
			square_lanes(&to, c, w->out.c, whole);
			fetch_below(&to, TILE, 1);
			turn_square(TURN_RESULT, &from, &to);
			square_next(&to);
			square_next(&from);
		}
	}
}

/* Adds the 36 products of a corner to those of the previous channels. */
static void corner_run(const struct winograd_work *k, const struct corner *c)
{
	const struct winograd *w = k->w;
	int64_t depth = c->in.end - c->in.begin, width = c->out.end - c->out.begin;
	const float *inputs = k->inputs + c->in.begin * w->rows;

	for (int64_t point = 0; point < POINTS; point++) {
		const struct panel_product p = { .a = inputs + point * w->step_in,
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

static void panel_run(struct winograd_work *k, int64_t first)
{
	const struct winograd *w = k->w;
	struct corner c = { .out = { first, min_int64(first + PANEL, w->out.lanes) } };

	for (; c.in.begin < w->in.lanes; c.in.begin += PANEL) {
		c.in.end = min_int64(c.in.begin + PANEL, w->in.lanes);
		if (!k->turned)
			weights_turn(w, &c, k->weights);
		k->turned = w->in.lanes <= PANEL && w->out.lanes <= PANEL;
		corner_run(k, &c);
	}
	finish_panel(k, c.out);
}

static void run_winograd_part(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->tiles, w->block, part, parts);
	struct winograd_work k = find_winograd_work(w, part);
	const struct matrix_layout in = laid_inputs(w, k.inputs);

	for (int64_t i = r.begin; i < r.end; i += w->block) {
		k.tiles = (struct cpu_range){ i, min_int64(i + w->block, r.end) };
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
		const struct matrix_layout in = laid_inputs(w, shared_inputs(w, block));

		of.end = min_int64((block + 1) * w->block, r.end);
		turn_tiles(TURN_INPUT, &in, of, block * w->block);
	}
}

static void together_run(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	int64_t panels = divide_up(w->out.lanes, PANEL), blocks = divide_up(w->tiles, w->block);
	struct cpu_range r = cpu_split(panels * blocks, 1, part, parts);
	struct winograd_work k = find_winograd_work(w, part);

	for (int64_t i = r.begin; i < r.end; i++) {
		int64_t block = i % blocks;

		k.tiles = (struct cpu_range){ block * w->block, min_int64((block + 1) * w->block, w->tiles) };
		k.inputs = shared_inputs(w, block);
		panel_run(&k, i / blocks * PANEL);
	}
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

static void pack_part_as_bf16(void *arg, int part, int parts)
{
	const struct winograd *w = arg;
	struct cpu_range r = cpu_split(w->filters * 9 * w->channels, LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		__mmask16 there = (__mmask16)(r.end - i >= LANES ? 0xffff : (1u << (r.end - i)) - 1);

		_mm256_mask_storeu_epi16((uint16_t *)w->result + i, there,
					 round_to_bf16(_mm512_maskz_loadu_ps(there, (const float *)w->b + i)));
	}
}

#pragma GCC pop_options

void winograd_round(struct winograd *w)
{
	cpu_parallel(w->threads, pack_part_as_bf16, w);
}

void winograd_forward(struct winograd *w)
{
	if (w->together)
		cpu_parallel(w->threads, together_turn, w);
	cpu_parallel(w->parts, w->together ? together_run : run_winograd_part, w);
}
#endif
