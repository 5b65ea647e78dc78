/* tiles.c: out = a b, 32 x 32 results at a time: four tiles of sums, each 16 x 16 floats, to which one instruction adds
 * the products of a tile of a (16 rows) and a tile of b (16 columns), 32 terms of either. A panel is 32 rows of a, or
 * 32 columns of b, over the terms of a slice, laid out tile by tile in the order of use; a tile of a holds rows of 16
 * pairs of terms, a tile of b rows of 16 columns, each a pair of terms.
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

#define SIDE 32			 /* rows or columns of a panel */
#define TERMS 32		 /* of one tile */
#define TILE 512		 /* elements */
#define STEP (2 * TILE)		 /* of a panel: TERMS terms of its 32 rows */
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
	const uint16_t *data;
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

static struct tiles_room room(const struct tiles *t, int threads)
{
	size_t panel = (size_t)(t->steps * STEP) * sizeof(uint16_t);

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
	bool more;	  /* adds to the sums that are there */
	const char *next; /* what is to be asked for meanwhile: AHEAD lines a step */
};

static float widen(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* One tile of sums, as the instruction adds to it. */
static void multiply_tile(const uint16_t *a, const uint16_t *b, float *sums)
{
	for (int i = 0; i < LANES; i++)
		for (int p = 0; p < LANES; p++)
			for (int j = 0; j < LANES; j++) {
				const uint16_t *x = a + i * TERMS + 2 * p, *y = b + p * TERMS + 2 * j;

				sums[i * LANES + j] += widen(x[0]) * widen(y[0]);
				sums[i * LANES + j] += widen(x[1]) * widen(y[1]);
			}
}

static void multiply_plainly(const struct block *o, float *acc)
{
	if (!o->more)
		memset(acc, 0, ACC * sizeof(*acc));
	for (int64_t i = 0; i < o->steps; i++)
		for (int tile = 0; tile < 4; tile++)
			multiply_tile(o->a + i * STEP + tile / 2 * TILE, o->b + i * STEP + tile % 2 * TILE,
				      acc + tile * SUMS);
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

/* Registers 0 to 3: sums; 4, 5: a; 6, 7: b. */
static void multiply_in_tiles(const struct block *o, float *acc)
{
	const uint16_t *a = o->a, *b = o->b;
	const char *next = o->next;

	if (o->more) {
		_tile_loadd(0, acc, LINE);
		_tile_loadd(1, acc + SUMS, LINE);
		_tile_loadd(2, acc + 2 * SUMS, LINE);
		_tile_loadd(3, acc + 3 * SUMS, LINE);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
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
	_tile_stored(0, acc, LINE);
	_tile_stored(1, acc + SUMS, LINE);
	_tile_stored(2, acc + 2 * SUMS, LINE);
	_tile_stored(3, acc + 3 * SUMS, LINE);
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
				      .n = s->m,
				      .k = s->k,
				      .step = s->a_step ? s->a_step : s->a_turned ? s->m : s->k,
				      .by_term = s->a_turned,
				      .pairs_in_rows = true };
	return (struct side){ .data = t->args->b,
			      .n = s->n,
			      .k = s->k,
			      .step = s->b_turned ? s->k : s->n,
			      .by_term = !s->b_turned };
}

static int64_t panel_elements(const struct tiles *t)
{
	return t->steps * STEP;
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
	return m->tiles != CPU_TILES_NONE && s->bf16;
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

/* The 16 pairs of terms from k on, of each of 16 rows or columns from x on. */
VEC_INLINE void V(tiles_read_rows)(const struct side *s, int64_t x, int64_t k, v16 *v)
{
	const int64_t left = s->k - k;

	for (int i = 0; i < LANES; i++) {
		const uint16_t *row = s->data + (x + i) * s->step + k;

		v[i] = (v16){ 0 };
		if (x + i < s->n && left >= TERMS)
			v[i] = *(const v16_u *)row;
		else if (x + i < s->n && left > 0)
			memcpy(&v[i], row, (size_t)left * sizeof(*row));
	}
}

/* Term k of 16 rows or columns from x on. */
VEC_INLINE v16u V(tiles_read_term)(const struct side *s, int64_t x, int64_t k)
{
	const uint16_t *row = s->data + k * s->step + x;
	v16h h = { 0 };

	if (k < s->k && s->n - x >= LANES)
		h = *(const v16h_u *)row;
	else if (k < s->k && s->n > x)
		memcpy(&h, row, (size_t)(s->n - x) * sizeof(*row));
	return __builtin_convertvector(h, v16u);
}

/* Lane j of vector i: terms k + 2 i and k + 2 i + 1 of row or column x + j. */
VEC_INLINE void V(tiles_read_terms)(const struct side *s, int64_t x, int64_t k, v16 *v)
{
	for (int i = 0; i < LANES; i++)
		v[i] = (v16)(V(tiles_read_term)(s, x, k + 2 * i) | V(tiles_read_term)(s, x, k + 2 * i + 1) << 16);
}

VEC_INLINE void V(tiles_lay_tile)(const struct side *s, int64_t x, int64_t k, uint16_t *tile)
{
	v16 v[LANES];

	if (s->by_term)
		V(tiles_read_terms)(s, x, k, v);
	else
		V(tiles_read_rows)(s, x, k, v);
	if (s->by_term == s->pairs_in_rows)
		vturn(v);
	memcpy(tile, v, sizeof(v));
}

static void V(tiles_lay_panel)(const struct tiles *t, bool a, int64_t panel, uint16_t *to)
{
	const struct side s = side_of(t, a);

	for (int64_t i = 0; i < t->steps; i++, to += STEP) {
		V(tiles_lay_tile)(&s, panel * SIDE, t->first + i * TERMS, to);
		V(tiles_lay_tile)(&s, panel * SIDE + LANES, t->first + i * TERMS, to + TILE);
	}
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
	const int64_t elements = panel_elements(t), part = t->steps * AHEAD * LINE;

	for (int64_t w = 0; w < whole_panels(t); w++)
		for (int64_t i = r.begin; i < r.end; i++) {
			const uint16_t *whole = t->whole + w * elements, *shared = group + (i - r.begin) * elements;
			const struct block o = { .a = t->whole_is_a ? whole : shared,
						 .b = t->whole_is_a ? shared : whole,
						 .steps = t->steps,
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
