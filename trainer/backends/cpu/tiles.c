/* tiles.c: out = a b, 32 x 32 results at a time: four tiles of sums, each 16 x 16 floats, to which one instruction adds
 * the products of a tile of a (16 rows) and a tile of b (16 columns), 32 terms of either. A panel is 32 rows of a, or
 * 32 columns of b, over the terms of a slice, laid out tile by tile in the order of use; a tile of a holds rows of 16
 * pairs of terms, a tile of b rows of 16 columns, each a pair of terms.
 *
 * f32 operands are split: x = high + low, each in bf16, which leaves some 2^-17 of x; a b is then
 * high high + high low + low high, and what is left out (low low) is of that size too. Their panels hold the tiles of
 * the low parts behind those of the high ones, step by step.
 *
 * For each slice of terms, the side that has fewer panels is laid out whole; the threads share the other one, a few
 * panels at a time, which stay in the second-level cache while each panel of the whole side meets them all. So each
 * element is laid out once. Sums of several slices are kept in the workspace in between. */
#ifndef CPU_PASS
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "trainer/backends/cpu/tiles.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/cast/float16.h"

#define SIDE 32			 /* rows or columns of a panel */
#define TERMS 32		 /* of one tile */
#define TILE 512		 /* elements */
#define STEP (2 * TILE)		 /* of a panel: TERMS terms of its 32 rows; twice that where they are split */
#define SLICE 1024		 /* terms, at most */
#define GROUP 8			 /* panels of the shared side that are laid out at a time */
#define SUMS (LANES * LANES)	 /* of a tile */
#define ACC (SIDE * SIDE)	 /* sums of 32 x 32 results, tile by tile */
#define LINE 64
#define AHEAD (STEP * 2 / LINE / GROUP) /* lines of a panel a step, so that all of a group together ask for all of it */

struct tiles {
	const struct dnn_matmul_spec *s;
	const struct dnn_matmul_args *args;
	enum cpu_tiles how;
	bool whole_is_a;	  /* the side that is laid out whole; the other is shared */
	int64_t panels_a, panels_b;
	int64_t first, terms;	  /* of the slice */
	int64_t steps;		  /* of a panel in it */
	uint16_t *whole, *shared; /* panels; GROUP of them for each part */
	float *sums;		  /* [panels_a][panels_b][ACC]; NULL with one slice */
};

/* One operand: element (row x, term k) of a, or (column x, term k) of b. */
struct side {
	const void *data;
	bool split;	    /* f32, else bf16 */
	int64_t n, k;	    /* rows or columns, terms */
	int64_t step;	    /* elements from one stored row to the next */
	bool by_term;	    /* what is stored as a row is a term, else a row or column */
	bool pairs_in_rows; /* of its tiles: pairs of terms lie along a row */
};

static int64_t divide_up(int64_t n, int64_t by)
{
	return (n + by - 1) / by;
}

/* Terms of a slice: as few slices as there must be, all alike. */
static int64_t slice_terms(const struct dnn_matmul_spec *s)
{
	int64_t slices = divide_up(s->k, SLICE);

	return divide_up(divide_up(s->k, slices), TERMS) * TERMS;
}

static void plan(struct tiles *t, const struct dnn_matmul_spec *s)
{
	memset(t, 0, sizeof(*t));
	t->s = s;
	t->panels_a = divide_up(s->m, SIDE);
	t->panels_b = divide_up(s->n, SIDE);
	t->whole_is_a = t->panels_a <= t->panels_b;
	t->terms = slice_terms(s);
	t->steps = t->terms / TERMS;
}

static int64_t whole_panels(const struct tiles *t)
{
	return t->whole_is_a ? t->panels_a : t->panels_b;
}

static int64_t shared_panels(const struct tiles *t)
{
	return t->whole_is_a ? t->panels_b : t->panels_a;
}

/* Bytes of the whole side, of the shared one, of sums, one after the other in the workspace. */
struct tiles_room {
	size_t whole, shared, sums;
};

/* From one step of a panel to the next. */
static int64_t step_elements(const struct tiles *t)
{
	return t->s->bf16 ? STEP : 2 * STEP;
}

static int64_t panel_elements(const struct tiles *t)
{
	return t->steps * step_elements(t);
}

static struct tiles_room room(const struct tiles *t, int threads)
{
	size_t panel = (size_t)panel_elements(t) * sizeof(uint16_t);

	return (struct tiles_room){
		.whole = (size_t)whole_panels(t) * panel,
		.shared = (size_t)threads * GROUP * panel,
		.sums = t->terms < t->s->k ? (size_t)(t->panels_a * t->panels_b) * ACC * sizeof(float) : 0,
	};
}

size_t tiles_workspace_bytes(const struct dnn_matmul_spec *s, int threads)
{
	struct tiles_room r;
	struct tiles t;

	plan(&t, s);
	r = room(&t, threads);
	return r.whole + r.shared + r.sums + LINE;
}

/* ---- the instruction, and what stands in for it ---- */

/* A panel of a meets one of b. */
struct block {
	const uint16_t *a, *b;
	int64_t steps;
	bool split;
	bool more;	  /* adds to the sums that are there */
	const char *next; /* what is to be asked for meanwhile: AHEAD lines a step */
};

/* One tile of sums, as the instruction adds to it. */
static void multiply_tile(const uint16_t *a, const uint16_t *b, float *sums)
{
	for (int i = 0; i < LANES; i++)
		for (int p = 0; p < LANES; p++)
			for (int j = 0; j < LANES; j++) {
				const uint16_t *x = a + i * TERMS + 2 * p, *y = b + p * TERMS + 2 * j;

				sums[i * LANES + j] += bf16_to_float(x[0]) * bf16_to_float(y[0]);
				sums[i * LANES + j] += bf16_to_float(x[1]) * bf16_to_float(y[1]);
			}
}

/* A step's four tiles of sums. */
static void multiply_step(const uint16_t *a, const uint16_t *b, float *acc)
{
	for (int tile = 0; tile < 4; tile++)
		multiply_tile(a + tile / 2 * TILE, b + tile % 2 * TILE, acc + tile * SUMS);
}

static void multiply_plainly(const struct block *o, float *acc)
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
#define ARCH_REQ_XCOMP_PERM 0x1023 /* asm/prctl.h */
#define XFEATURE_TILE_DATA 18

/* Linux hands out the registers, 8 KiB a thread, to processes that ask. */
static bool has_tiles(void)
{
	unsigned r[4];

	if (!__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[3] >> 22 & 1) || !(r[3] >> 24 & 1))
		return false;
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

/* Constant: to the compiler the intrinsic reads no more than its first bytes. */
static const struct tile_config config = { .palette = 1,
					   .row_bytes = { LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE },
					   .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

static void tiles_begin(void)
{
	_tile_loadconfig(&config);
}

static void tiles_end(void)
{
	_tile_release();
}

/* In all that follows registers 0 to 3 hold sums, 4 and 5 tiles of a, 6 and 7 of b. */
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

static void add_steps(const struct block *o)
{
	const uint16_t *a = o->a, *b = o->b;
	const char *next = o->next;

	for (int64_t i = 0; i < o->steps; i++, a += STEP, b += STEP) {
		_tile_loadd(4, a, LINE);
		_tile_loadd(6, b, LINE);
		_tile_loadd(7, b + TILE, LINE);
		_tile_dpbf16ps(0, 4, 6);
		_tile_loadd(5, a + TILE, LINE);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
		for (int line = 0; line < AHEAD; line++, next += LINE)
			__builtin_prefetch(next, 0, 2);
	}
}

static void add_loaded(void)
{
	_tile_dpbf16ps(0, 4, 6);
	_tile_dpbf16ps(1, 4, 7);
	_tile_dpbf16ps(2, 5, 6);
	_tile_dpbf16ps(3, 5, 7);
}

/* a's high part with b's high and low ones, then a's low part with b's high one. */
static void add_split_steps(const struct block *o)
{
	const uint16_t *a = o->a, *b = o->b;
	const char *next = o->next;

	for (int64_t i = 0; i < o->steps; i++, a += 2 * STEP, b += 2 * STEP) {
		_tile_loadd(4, a, LINE);
		_tile_loadd(5, a + TILE, LINE);
		_tile_loadd(6, b + STEP, LINE);
		_tile_loadd(7, b + STEP + TILE, LINE);
		add_loaded();
		_tile_loadd(6, b, LINE);
		_tile_loadd(7, b + TILE, LINE);
		add_loaded();
		_tile_loadd(4, a + STEP, LINE);
		_tile_loadd(5, a + STEP + TILE, LINE);
		add_loaded();
		for (int line = 0; line < 2 * AHEAD; line++, next += LINE)
			__builtin_prefetch(next, 0, 2);
	}
}

static void multiply_in_tiles(const struct block *o, float *acc)
{
	if (o->more)
		load_sums(acc);
	else
		zero_sums();
	if (o->split)
		add_split_steps(o);
	else
		add_steps(o);
	store_sums(acc);
}

#pragma GCC pop_options
#else
static bool has_tiles(void)
{
	return false;
}

static void tiles_begin(void)
{
}

static void tiles_end(void)
{
}

static void multiply_in_tiles(const struct block *o, float *acc)
{
	multiply_plainly(o, acc);
}
#endif

/* ---- the whole ---- */

static struct side side_of(const struct tiles *t, bool a)
{
	const struct dnn_matmul_spec *s = t->s;

	if (a)
		return (struct side){ .data = t->args->a,
				      .split = !s->bf16,
				      .n = s->m,
				      .k = s->k,
				      .step = s->a_step ? s->a_step : s->a_turned ? s->m : s->k,
				      .by_term = s->a_turned,
				      .pairs_in_rows = true };
	return (struct side){ .data = t->args->b,
			      .split = !s->bf16,
			      .n = s->n,
			      .k = s->k,
			      .step = s->b_turned ? s->k : s->n,
			      .by_term = !s->b_turned };
}

#define CPU_BODY "trainer/backends/cpu/tiles.c"
#include "trainer/backends/cpu/each.h"

enum cpu_tiles cpu_tiles_detect(enum cpu_isa isa)
{
	const char *told = getenv("DPTRAIN_CPU_TILES");

	if (told && strcmp(told, "no") == 0)
		return CPU_TILES_NONE;
	if (told && strcmp(told, "emulate") == 0)
		return CPU_TILES_EMULATED;
	return isa == CPU_AVX512_BF16 && has_tiles() ? CPU_TILES_AMX : CPU_TILES_NONE;
}

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

	plan(&t, s);
	r = room(&t, threads);
	t.args = args;
	t.how = m->tiles;
	t.whole = (uint16_t *)at;
	t.shared = (uint16_t *)(at + r.whole);
	t.sums = r.sums ? (float *)(at + r.whole + r.shared) : NULL;
	for (; t.first < s->k; t.first += t.terms) {
		cpu_parallel(threads, lay_whole[m->isa], &t);
		cpu_parallel(threads, multiply[m->isa], &t);
	}
}

#else

/* ---- laying out ---- */

/* Tiles before they are turned: of bf16 operands one, of f32 ones that of the high and that of the low parts. */
struct V(laid) {
	v16 tile[2][LANES];
};

/* Two parts of the same lanes in bf16; the second is what the first leaves. */
VEC_INLINE void V(tiles_split)(v16 x, v16h *high, v16h *low)
{
	*high = vto_bf16(x);
	*low = vto_bf16(x - (v16)(__builtin_convertvector(*high, v16u) << 16));
}

/* Elements i..i + 15 of a stored row of `n`; zeros behind its end. */
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

/* 16 elements as parts in bf16: one of bf16, two of f32. */
VEC_INLINE void V(tiles_read)(const struct side *s, int64_t row, int64_t i, int64_t n, v16h part[2], const bool split)
{
	const char *at = (const char *)s->data + row * s->step * (split ? 4 : 2);

	if (split)
		V(tiles_split)(V(tiles_full16)(at, i, n), &part[0], &part[1]);
	else
		part[0] = V(tiles_low16)(at, i, n);
}

/* The 16 pairs of terms from k on, of each of 16 rows or columns from x on. */
VEC_INLINE void V(tiles_read_rows)(const struct side *s, int64_t x, int64_t k, struct V(laid) *to, const bool split)
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

/* Lane j of vector i: terms k + 2 i and k + 2 i + 1 of row or column x + j. */
VEC_INLINE void V(tiles_read_terms)(const struct side *s, int64_t x, int64_t k, struct V(laid) *to, const bool split)
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

VEC_INLINE void V(tiles_lay_tile)(const struct side *s, int64_t x, int64_t k, uint16_t *tile, const bool split)
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

VEC_INLINE void V(tiles_lay_steps)(const struct tiles *t, bool a, int64_t panel, uint16_t *to, const bool split)
{
	const struct side s = side_of(t, a);

	for (int64_t i = 0; i < t->steps; i++, to += step_elements(t)) {
		V(tiles_lay_tile)(&s, panel * SIDE, t->first + i * TERMS, to, split);
		V(tiles_lay_tile)(&s, panel * SIDE + LANES, t->first + i * TERMS, to + TILE, split);
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
			V(tiles_put_row)(t, a * SIDE + i, b * SIDE + j,
					 acc + (i / LANES * 2 + j / LANES) * SUMS + i % LANES * LANES);
}

/* What the slice gives to the results of panel a of a and panel b of b. */
VEC_INLINE void V(tiles_meet)(const struct tiles *t, int64_t a, int64_t b, const struct block *o)
{
	_Alignas(LINE) float own[ACC];
	float *acc = t->sums ? t->sums + (a * t->panels_b + b) * ACC : own;

	if (t->how == CPU_TILES_AMX)
		multiply_in_tiles(o, acc);
	else
		multiply_plainly(o, acc);
	if (t->first + t->terms >= t->s->k)
		V(tiles_put)(t, a, b, acc);
}

/* Panels begin..end of the shared side, which lie in `group`, with each panel of the whole one. */
VEC_INLINE void V(tiles_meet_all)(const struct tiles *t, struct cpu_range r, const uint16_t *group)
{
	const int64_t elements = panel_elements(t), part = elements * (int64_t)sizeof(uint16_t) / GROUP;

	for (int64_t w = 0; w < whole_panels(t); w++)
		for (int64_t i = r.begin; i < r.end; i++) {
			const uint16_t *whole = t->whole + w * elements, *shared = group + (i - r.begin) * elements;
			const struct block o = { .a = t->whole_is_a ? whole : shared,
						 .b = t->whole_is_a ? shared : whole,
						 .steps = t->steps,
						 .split = !t->s->bf16,
						 .more = t->first > 0,
						 .next = (const char *)(whole + elements) + (i - r.begin) * part };

			V(tiles_meet)(t, t->whole_is_a ? w : i, t->whole_is_a ? i : w, &o);
		}
}

static void V(tiles_multiply)(void *arg, int part, int parts)
{
	const struct tiles *t = arg;
	struct cpu_range r = cpu_split(shared_panels(t), 1, part, parts);
	uint16_t *group = t->shared + part * GROUP * panel_elements(t);

	if (t->how == CPU_TILES_AMX)
		tiles_begin();
	for (int64_t i = r.begin; i < r.end; i += GROUP) {
		struct cpu_range some = { i, r.end < i + GROUP ? r.end : i + GROUP };

		for (int64_t j = some.begin; j < some.end; j++)
			V(tiles_lay_panel)(t, !t->whole_is_a, j, group + (j - i) * panel_elements(t));
		V(tiles_meet_all)(t, some, group);
	}
	if (t->how == CPU_TILES_AMX)
		tiles_end();
}

#endif
