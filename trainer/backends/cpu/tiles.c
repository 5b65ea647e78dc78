/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: out = a b, 32 x 32 results at a time: four tiles of sums, each 16 x 16 floats. One instruction adds the
 * products of a tile of a (16 rows) and a tile of b (16 columns), over 32 terms. A panel is 32 rows of a, or 32 columns
 * of b, over the terms of a slice, stored tile by tile in the order of use. A tile of a holds rows of 16 pairs of
 * terms; a tile of b has a pair of terms for 16 columns in each row. f32 operands are split: x = high + low, both bf16,
 * with an error of about 2^-17 of x. Then a b is high high + high low + low high; the omitted low low is as small as
 * that error. Their panels hold the low tiles after the high ones, step by step. For each slice of terms, the side with
 * fewer panels is packed completely. The threads share the other side, one group of panels at a time. A group stays in
 * the second-level cache while each panel of the packed side is multiplied with it, in parts that stay in the
 * first-level cache. So each element is packed once. Sums of several slices are kept in the workspace. */
#ifndef CPU_PASS
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/vec.h"

#define SIDE 32			       /* rows or columns of a panel */
#define TERMS 32		       /* terms of one tile */
#define TILE 512		       /* elements */
#define STEP (2 * TILE)		       /* elements of a panel's step: TERMS terms of 32 rows; twice that if split */
#define SLICE 1024		       /* terms, at most */
#define GROUP_MAX 32		       /* panels of the shared side that are packed at a time */
#define GROUP_BYTES (768 << 10)	       /* bytes of such a group, about: small enough for the second-level cache */
#define PANEL_BYTES (32 << 10)	       /* bytes of a panel that stay in the first-level cache meanwhile */
#define SUMS (LANES_MOST * LANES_MOST) /* sums of a tile */
#define ACC (SIDE * SIDE)	       /* sums of 32 x 32 results, tile by tile */
#define LINE 64
#define AHEAD 64 /* prefetch distance in terms, where each term is a stored row */

struct tiles {
	const struct dnn_matmul_spec *s;
	const struct dnn_matmul_args *args;
	enum cpu_tiles how;
	bool whole_is_a; /* the side that is packed completely; the other is shared */
	int64_t panels_a, panels_b;
	int64_t first, terms;	  /* terms of the slice */
	int64_t steps;		  /* steps of a panel in the slice */
	int64_t near;		  /* steps of a panel that stay in the first-level cache */
	int64_t group;		  /* panels of the shared side per group */
	uint16_t *whole, *shared; /* panels; one group of them for each thread */
	float *sums;		  /* [panels_a][panels_b][ACC]; with one slice [threads][group][ACC] */
};

/* A thread's share: n panels of the shared side, starting at `first`; with one slice also their sums with one panel of
 * the other side. */
struct tiles_group {
	int64_t first, n;
	uint16_t *panels;
	float *sums;
};

/* One operand: element (row x, term k) of a, or (column x, term k) of b. */
struct product_operand {
	const void *data;
	bool split;	    /* f32, else bf16 */
	int64_t n, k;	    /* rows or columns, terms */
	int64_t step;	    /* elements between stored rows */
	bool by_term;	    /* each stored row is a term, not a row or column */
	bool pairs_in_rows; /* in its tiles, pairs of terms are adjacent in a row */
};

static int64_t whole_panels(const struct tiles *t)
{
	return t->whole_is_a ? t->panels_a : t->panels_b;
}

static int64_t shared_panels(const struct tiles *t)
{
	return t->whole_is_a ? t->panels_b : t->panels_a;
}

/* Returns the distance between steps of a panel. */
static int64_t step_elements(const struct tiles *t)
{
	return t->s->bf16 ? STEP : 2 * STEP;
}

/* Divides into the fewest pieces of at most `most`, of equal size. */
static int64_t share_evenly(int64_t n, int64_t most)
{
	return divide_up(n, divide_up(n, most < 1 ? 1 : most));
}

static void plan_caches(struct tiles *t)
{
	const int64_t step_bytes = step_elements(t) * (int64_t)sizeof(uint16_t);
	const int64_t panels = GROUP_BYTES / (t->steps * step_bytes);

	t->near = share_evenly(t->steps, PANEL_BYTES / step_bytes);
	t->group = share_evenly(shared_panels(t), panels < GROUP_MAX ? panels : GROUP_MAX);
}

static void plan_tiles(struct tiles *t, const struct dnn_matmul_spec *s)
{
	memset(t, 0, sizeof(*t));
	t->s = s;
	t->panels_a = divide_up(s->m, SIDE);
	t->panels_b = divide_up(s->n, SIDE);
	t->whole_is_a = t->panels_a <= t->panels_b;
	t->steps = divide_up(share_evenly(s->k, SLICE), TERMS);
	t->terms = t->steps * TERMS;
	plan_caches(t);
}

/* Sets the bytes of the packed side, the shared one and the sums, which follow each other in the workspace. */
struct tiles_room {
	size_t whole, shared, sums;
};

static int64_t panel_elements(const struct tiles *t)
{
	return t->steps * step_elements(t);
}

/* Chooses the terms of a slice: with several slices all sums are kept between them. */
static bool has_slices(const struct tiles *t)
{
	return t->terms < t->s->k;
}

static struct tiles_room plan_tiles_room(const struct tiles *t, int threads)
{
	size_t panel = (size_t)panel_elements(t) * sizeof(uint16_t);
	int64_t sums = has_slices(t) ? t->panels_a * t->panels_b : threads * t->group;

	return (struct tiles_room){
		.whole = (size_t)whole_panels(t) * panel,
		.shared = (size_t)(threads * t->group) * panel,
		.sums = (size_t)sums * ACC * sizeof(float),
	};
}

size_t tiles_workspace_bytes(const struct dnn_matmul_spec *s, int threads)
{
	struct tiles_room r;
	struct tiles t;

	plan_tiles(&t, s);
	r = plan_tiles_room(&t, threads);
	return r.whole + r.shared + r.sums + LINE;
}

/* ---- the instruction, and its emulation ---- */

/* A panel of a meets one of b. */
struct panel_block {
	const uint16_t *a, *b;
	int64_t steps;
	bool split;
	bool more, last;  /* add to the present sums; these are the last terms */
	bool streams_a;	  /* each panel of a is used once while that of b stays in the cache; else the reverse */
	const char *next; /* next address to prefetch: `lines` per step */
	int64_t lines;
};

/* A step's four tiles of sums. */
static void multiply_step(const uint16_t *a, const uint16_t *b, float *acc)
{
	for (int tile = 0; tile < 4; tile++)
		amx_add_plainly((struct amx_side){ a + tile / 2 * TILE, LINE },
				(struct amx_side){ b + tile % 2 * TILE, LINE }, acc + tile * SUMS, LINE);
}

static void multiply_plain_panels(const struct panel_block *o, float *acc)
{
	const uint16_t *a = o->a, *b = o->b;

	if (!o->more)
		memset(acc, 0, ACC * sizeof(*acc));
	for (int64_t i = 0; i < o->steps; i++, a += STEP, b += STEP) {
		multiply_step(a, b, acc);
		if (!o->split)
			continue;
		multiply_step(a, b + STEP, acc);
		multiply_step(a + STEP, b, acc);
		a += STEP;
		b += STEP;
	}
}

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

/* Below, registers 0 to 3 hold sums, 4 and 5 tiles of a, 6 and 7 of b. */
static void load_sums(const float *acc)
{
	_tile_loadd(0, acc, LINE);
	_tile_loadd(1, acc + SUMS, LINE);
	_tile_loadd(2, acc + 2 * SUMS, LINE);
	_tile_loadd(3, acc + 3 * SUMS, LINE);
}

static void zero_sums(void)
{
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
}

static void store_sums(float *acc)
{
	_tile_stored(0, acc, LINE);
	_tile_stored(1, acc + SUMS, LINE);
	_tile_stored(2, acc + 2 * SUMS, LINE);
	_tile_stored(3, acc + 3 * SUMS, LINE);
}

/* Data that is used once bypasses the first-level cache, so that it does not evict what is used again. */
#define LOAD(tile, from, once)                                                                                         \
	do {                                                                                                           \
		if (once)                                                                                              \
			_tile_stream_loadd(tile, from, LINE);                                                          \
		else                                                                                                   \
			_tile_loadd(tile, from, LINE);                                                                 \
	} while (0)

VEC_INLINE void ask_for_next(const struct panel_block *o, int64_t step)
{
	const char *next = o->next + step * o->lines * LINE;

	for (int64_t line = 0; line < o->lines; line++, next += LINE)
		__builtin_prefetch(next, 0, 2);
}

VEC_INLINE void add_steps(const struct panel_block *o, const bool streams_a)
{
	const uint16_t *a = o->a, *b = o->b;

	for (int64_t i = 0; i < o->steps; i++, a += STEP, b += STEP) {
		LOAD(4, a, streams_a);
		LOAD(6, b, !streams_a);
		LOAD(7, b + TILE, !streams_a);
		_tile_dpbf16ps(0, 4, 6);
		LOAD(5, a + TILE, streams_a);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
		ask_for_next(o, i);
	}
}

static void add_loaded(void)
{
	_tile_dpbf16ps(0, 4, 6);
	_tile_dpbf16ps(1, 4, 7);
	_tile_dpbf16ps(2, 5, 6);
	_tile_dpbf16ps(3, 5, 7);
}

/* Multiplies a's high part with b's high and low ones, then a's low part with b's high one. */
VEC_INLINE void add_split_steps(const struct panel_block *o, const bool streams_a)
{
	const uint16_t *a = o->a, *b = o->b;

	for (int64_t i = 0; i < o->steps; i++, a += 2 * STEP, b += 2 * STEP) {
		LOAD(4, a, streams_a);
		LOAD(5, a + TILE, streams_a);
		LOAD(6, b + STEP, !streams_a);
		LOAD(7, b + STEP + TILE, !streams_a);
		add_loaded();
		LOAD(6, b, !streams_a);
		LOAD(7, b + TILE, !streams_a);
		add_loaded();
		LOAD(4, a + STEP, streams_a);
		LOAD(5, a + STEP + TILE, streams_a);
		add_loaded();
		ask_for_next(o, i);
	}
}

static void multiply_amx_panels(const struct panel_block *o, float *acc)
{
	if (o->more)
		load_sums(acc);
	else
		zero_sums();
	if (o->split)
		o->streams_a ? add_split_steps(o, true) : add_split_steps(o, false);
	else
		o->streams_a ? add_steps(o, true) : add_steps(o, false);
	store_sums(acc);
}

#pragma GCC pop_options
#else
static void multiply_amx_panels(const struct panel_block *o, float *acc)
{
	multiply_plain_panels(o, acc);
}
#endif

/* ---- the whole ---- */

static struct product_operand find_product_operand(const struct tiles *t, bool a)
{
	const struct dnn_matmul_spec *s = t->s;

	if (a)
		return (struct product_operand){ .data = t->args->a,
				      .split = !s->bf16,
				      .n = s->m,
				      .k = s->k,
				      .step = s->a_step ? s->a_step : s->a_turned ? s->m : s->k,
				      .by_term = s->a_turned,
				      .pairs_in_rows = true };
	return (struct product_operand){ .data = t->args->b,
					 .split = !s->bf16,
					 .n = s->n,
					 .k = s->k,
					 .step = s->b_turned ? s->k : s->n,
					 .by_term = !s->b_turned };
}

#define CPU_LANES 16
#define CPU_BODY "trainer/backends/cpu/tiles.c"
#include "trainer/backends/cpu/each.h"

bool tiles_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s)
{
	return m->tiles != CPU_TILES_NONE && (s->bf16 || m->split);
}

void tiles_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
	       const struct dnn_matmul_args *args)
{
	static cpu_part_fn *const lay_whole[] = CPU_TABLE(tiles_lay_whole);
	static cpu_part_fn *const multiply[] = CPU_TABLE(tiles_multiply);
	char *at = (char *)(((uintptr_t)args->workspace + LINE - 1) / LINE * LINE);
	struct tiles_room r;
	struct tiles t;

	plan_tiles(&t, s);
	r = plan_tiles_room(&t, threads);
	t.args = args;
	t.how = m->tiles;
	t.whole = (uint16_t *)at;
	t.shared = (uint16_t *)(at + r.whole);
	t.sums = (float *)(at + r.whole + r.shared);
	for (; t.first < s->k; t.first += t.terms) {
		cpu_parallel(threads, lay_whole[m->isa], &t);
		cpu_parallel(threads, multiply[m->isa], &t);
	}
}

#else

/* ---- laying out ---- */

/* Tiles before transposition: one for bf16 operands, a high and a low one for f32. */
struct V(laid) {
	v16 tile[2][LANES];
};

/* Splits vectors into two bf16 parts; the second is the rest of the first. */
VEC_INLINE void V(tiles_split)(v16 x, v16h *high, v16h *low)
{
	*high = vto_bf16(x);
	*low = vto_bf16(x - (v16)(__builtin_convertvector(*high, v16u) << 16));
}

/* Loads elements i..i + 15 of a stored row of `n`, with zeros after its end. */
VEC_INLINE v16h V(tiles_low16)(const void *row, int64_t i, int64_t n)
{
	v16h h = { 0 };

	if (n - i >= LANES)
		return *(const v16h_u *)((const uint16_t *)row + i);
	if (n > i)
		memcpy(&h, (const uint16_t *)row + i, (size_t)(n - i) * sizeof(uint16_t));
	return h;
}

VEC_INLINE v16 V(tiles_full16)(const void *row, int64_t i, int64_t n)
{
	return n > i ? vload_any(row, i, n - i, false) : vset(0);
}

/* 16 elements as bf16: one part for bf16, two for f32. */
VEC_INLINE void V(tiles_read)(const struct product_operand *s, int64_t row, int64_t i, int64_t n, v16h part[2],
			      const bool split)
{
	const char *at = (const char *)s->data + row * s->step * (split ? 4 : 2);

	if (split)
		V(tiles_split)(V(tiles_full16)(at, i, n), &part[0], &part[1]);
	else
		part[0] = V(tiles_low16)(at, i, n);
}

/* Loads the 16 pairs of terms from k on for 16 rows or columns from x on. */
VEC_INLINE void V(tiles_read_rows)(const struct product_operand *s, int64_t x, int64_t k, struct V(laid) * to,
				   const bool split)
{
	for (int i = 0; i < LANES; i++) {
		v16h first[2] = { 0 }, second[2] = { 0 };

		if (x + i < s->n) {
			V(tiles_read)(s, x + i, k, s->k, first, split);
			V(tiles_read)(s, x + i, k + LANES, s->k, second, split);
		}
		for (int p = 0; p <= split; p++) {
			memcpy(&to->tile[p][i], &first[p], sizeof(v16h));
			memcpy((char *)&to->tile[p][i] + sizeof(v16h), &second[p], sizeof(v16h));
		}
	}
}

/* Lane j of vector i holds terms k + 2 i and k + 2 i + 1 of row or column x + j. */
VEC_INLINE void V(tiles_read_terms)(const struct product_operand *s, int64_t x, int64_t k, struct V(laid) * to,
				    const bool split)
{
	for (int i = 0; i < LANES; i++) {
		v16h first[2] = { 0 }, second[2] = { 0 };

		if (k + 2 * i < s->k)
			V(tiles_read)(s, k + 2 * i, x, s->n, first, split);
		if (k + 2 * i + 1 < s->k)
			V(tiles_read)(s, k + 2 * i + 1, x, s->n, second, split);
		for (int p = 0; p <= split; p++)
			to->tile[p][i] = (v16)(__builtin_convertvector(first[p], v16u) |
					       __builtin_convertvector(second[p], v16u) << 16);
	}
}

VEC_INLINE void V(tiles_lay_tile)(const struct product_operand *s, int64_t x, int64_t k, uint16_t *tile,
				  const bool split)
{
	struct V(laid) laid;

	if (s->by_term)
		V(tiles_read_terms)(s, x, k, &laid, split);
	else
		V(tiles_read_rows)(s, x, k, &laid, split);
	for (int p = 0; p <= split; p++) {
		if (s->by_term == s->pairs_in_rows)
			vturn(laid.tile[p]);
		memcpy(tile + p * STEP, laid.tile[p], sizeof(laid.tile[p]));
	}
}

/* Packs both tiles of a complete bf16 step: each stored row fills one line. */
VEC_INLINE void V(tiles_read_lines)(const struct product_operand *s, int64_t x, int64_t k, v16 tile[2][LANES])
{
	const v32h low = { 0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
			   8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47 };
	const uint16_t *at = (const uint16_t *)s->data + (s->by_term ? k * s->step + x : x * s->step + k);

	for (int i = 0; s->by_term && i < SIDE; i++)
		__builtin_prefetch(at + (AHEAD + i) * s->step);
	for (int i = 0; i < LANES; i++) {
		if (s->by_term) {
			v32h first = *(const v32h_u *)(at + 2 * i * s->step);
			v32h second = *(const v32h_u *)(at + (2 * i + 1) * s->step);

			tile[0][i] = (v16)__builtin_shuffle(first, second, low);
			tile[1][i] = (v16)__builtin_shuffle(first, second, low + LANES);
		} else {
			tile[0][i] = (v16) * (const v32h_u *)(at + i * s->step);
			tile[1][i] = (v16) * (const v32h_u *)(at + (i + LANES) * s->step);
		}
	}
}

VEC_INLINE void V(tiles_lay_lines)(const struct product_operand *s, int64_t x, int64_t k, uint16_t *to)
{
	v16 tile[2][LANES];

	V(tiles_read_lines)(s, x, k, tile);
	for (int i = 0; i < 2; i++) {
		if (s->by_term == s->pairs_in_rows)
			vturn(tile[i]);
		memcpy(to + i * TILE, tile[i], sizeof(tile[i]));
	}
}

VEC_INLINE void V(tiles_lay_steps)(const struct tiles *t, bool a, int64_t panel, uint16_t *to, const bool split)
{
	const struct product_operand s = find_product_operand(t, a);
	const int64_t x = panel * SIDE;

	for (int64_t i = 0, k = t->first; i < t->steps; i++, k += TERMS, to += step_elements(t)) {
		if (!split && x + SIDE <= s.n && k + TERMS <= s.k) {
			V(tiles_lay_lines)(&s, x, k, to);
			continue;
		}
		V(tiles_lay_tile)(&s, x, k, to, split);
		V(tiles_lay_tile)(&s, x + LANES, k, to + TILE, split);
	}
}

static void V(tiles_lay_panel)(const struct tiles *t, bool a, int64_t panel, uint16_t *to)
{
	t->s->bf16 ? V(tiles_lay_steps)(t, a, panel, to, false) : V(tiles_lay_steps)(t, a, panel, to, true);
}

static void V(tiles_lay_whole)(void *arg, int part, int parts)
{
	const struct tiles *t = arg;
	struct cpu_range r = cpu_split(whole_panels(t), 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		V(tiles_lay_panel)(t, t->whole_is_a, i, t->whole + i * panel_elements(t));
}

/* ---- results ---- */

VEC_INLINE void V(tiles_put_row)(const struct tiles *t, int64_t row, int64_t column, const float *sums)
{
	const struct dnn_matmul_spec *s = t->s;
	const int64_t at = row * (s->out_step ? s->out_step : s->n) + column, left = s->n - column;
	v16 y = vload(sums, 0, false);

	if (t->s->bias)
		y += vload_any(t->args->bias, column, left, false);
	if (s->add)
		y += vload_any(t->args->out, at, left, s->out_bf16);
	vstore_any(t->args->out, at, y, left, s->out_bf16);
}

VEC_INLINE void V(tiles_put)(const struct tiles *t, int64_t a, int64_t b, const float *acc)
{
	for (int64_t i = 0; i < SIDE && a * SIDE + i < t->s->m; i++)
		for (int64_t j = 0; j < SIDE && b * SIDE + j < t->s->n; j += LANES)
			V(tiles_put_row)
	(t, a * SIDE + i, b * SIDE + j, acc + (i / LANES * 2 + j / LANES) * SUMS + i % LANES * LANES);
}

/* Adds the products of panel a of a and panel b of b to their sums, and stores the results after the last step. */
VEC_INLINE void V(tiles_meet)(const struct tiles *t, int64_t a, int64_t b, const struct panel_block *o, float *acc)
{
	if (t->how == CPU_TILES_AMX)
		multiply_amx_panels(o, acc);
	else
		multiply_plain_panels(o, acc);
	if (o->last)
		V(tiles_put)(t, a, b, acc);
}

/* Multiplies the steps of panel w of the packed side from `first` on, as many as stay cached, with the group's
 * panels. */
VEC_INLINE void V(tiles_meet_group)(const struct tiles *t, int64_t w, int64_t first, const struct tiles_group *g)
{
	const int64_t elements = panel_elements(t), at = first * step_elements(t);
	const uint16_t *whole = t->whole + w * elements + at;
	struct panel_block o = { .steps = t->steps - first < t->near ? t->steps - first : t->near,
				 .split = !t->s->bf16,
				 .more = t->first > 0 || first > 0,
				 .streams_a = !t->whole_is_a,
				 .next = (const char *)(whole + elements),
				 .lines = divide_up(step_elements(t) * (int64_t)sizeof(uint16_t) / LINE, g->n) };

	o.last = t->first + t->terms >= t->s->k && first + o.steps == t->steps;
	for (int64_t i = 0; i < g->n; i++, o.next += o.steps * o.lines * LINE) {
		const uint16_t *shared = g->panels + i * elements + at;
		int64_t a = t->whole_is_a ? w : g->first + i, b = t->whole_is_a ? g->first + i : w;

		o.a = t->whole_is_a ? whole : shared;
		o.b = t->whole_is_a ? shared : whole;
		V(tiles_meet)(t, a, b, &o, has_slices(t) ? t->sums + (a * t->panels_b + b) * ACC : g->sums + i * ACC);
	}
}

static void V(tiles_multiply)(void *arg, int part, int parts)
{
	const struct tiles *t = arg;
	struct cpu_range r = cpu_split(shared_panels(t), 1, part, parts);
	struct tiles_group g = { .panels = t->shared + part * t->group * panel_elements(t),
				 .sums = t->sums + part * t->group * ACC };

	amx_begin(t->how);
	for (g.first = r.begin; g.first < r.end; g.first += g.n) {
		g.n = r.end - g.first < t->group ? r.end - g.first : t->group;
		for (int64_t i = 0; i < g.n; i++)
			V(tiles_lay_panel)(t, !t->whole_is_a, g.first + i, g.panels + i * panel_elements(t));
		for (int64_t w = 0; w < whole_panels(t); w++)
			for (int64_t first = 0; first < t->steps; first += t->near)
				V(tiles_meet_group)(t, w, first, &g);
	}
	amx_end(t->how);
}

#endif
