/* SPDX-License-Identifier: Apache-2.0 */
/* widen.c: divides rows among threads; rows without gaps on either side are treated as one. Conversions of f16 use
 * the processor's instructions (F16C, AVX-512), which neither flush nor ignore its small numbers. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/widen.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/graph/plan.h"

enum widen_way { WIDEN, NARROW, ROUND, WIDEN_F16, NARROW_F16 };

struct widening {
	const void *from;
	void *to;
	int64_t rows, columns, from_step, to_step;
};

#define CPU_BODY "trainer/backends/cpu/widen.c"
#include "trainer/backends/cpu/each.h"

static size_t count_copy_bytes(const struct widen_rows *r)
{
	return round_up_bytes((size_t)(r->rows * r->columns) * sizeof(float), PLAN_ALIGN_BYTES);
}

size_t widen_bytes(const struct widen_copies *c)
{
	return count_copy_bytes(&c->a) + count_copy_bytes(&c->b) + count_copy_bytes(&c->out);
}

static void run_widening(const struct cpu_module *m, int threads, cpu_part_fn *const *loops, struct widening w)
{
	const struct kernel_env env = { .threads = threads };

	if (w.from_step == w.columns && w.to_step == w.columns) {
		w.columns *= w.rows;
		w.rows = 1;
	}
	cpu_parallel(cpu_parts(&env, w.rows * w.columns), loops[m->isa], &w);
}

static int64_t find_row_step(const struct widen_rows *r)
{
	return r->step ? r->step : r->columns;
}

static void *widen_rows_to_f32(const struct widen_copies *c, const struct widen_rows *r, const void *from, void *to)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(widen_loop);

	run_widening(c->module, c->threads, loops,
		     (struct widening){ from, to, r->rows, r->columns, find_row_step(r), r->columns });
	return to;
}

void widen_in(const struct widen_copies *c, void *memory, struct widen_operands *o)
{
	char *out = memory, *a = out + count_copy_bytes(&c->out), *b = a + count_copy_bytes(&c->a);

	if (c->a.rows)
		o->a = widen_rows_to_f32(c, &c->a, o->a, a);
	if (c->b.rows)
		o->b = widen_rows_to_f32(c, &c->b, o->b, b);
	if (c->out.rows)
		o->out = c->add ? widen_rows_to_f32(c, &c->out, o->out, out) : out;
}

void widen_out(const struct widen_copies *c, const struct widen_operands *o, void *out)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(narrow_loop);
	const struct widen_rows *r = &c->out;

	if (r->rows)
		run_widening(c->module, c->threads, loops,
			     (struct widening){ o->out, out, r->rows, r->columns, r->columns, find_row_step(r) });
}

void widen_round(const struct widen_copies *c, void *f32, int64_t n)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(round_loop);

	run_widening(c->module, c->threads, loops, (struct widening){ f32, f32, 1, n, n, n });
}

void widen_f16(const struct cpu_module *m, int threads, const void *f16, float *f32, int64_t n)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(widen_f16_loop);

	run_widening(m, threads, loops, (struct widening){ f16, f32, 1, n, n, n });
}

void widen_to_f16(const struct cpu_module *m, int threads, const float *f32, void *f16, int64_t n)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(narrow_f16_loop);

	run_widening(m, threads, loops, (struct widening){ f32, f16, 1, n, n, n });
}

#else

VEC_INLINE vf V(f16_to_f32)(vh h)
{
#if defined(CPU_HAS_AVX512)
	return (vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(CPU_HAS_AVX2)
	return (vf)_mm256_cvtph_ps((__m128i)h);
#else
	const vu u = __builtin_convertvector(h, vu), a = u & 0x7fff;
	const vf tiny = __builtin_convertvector((vi)a, vf) * 0x1p-24f; /* multiples of 2^-24 */
	const vf normal = (vf)((a << 13) + (112u << 23)), special = (vf)(a << 13 | 0x7f800000u);

	return (vf)((vu)vblend(a < 0x400, tiny, vblend(a < 0x7c00, normal, special)) | (u & 0x8000) << 16);
#endif
}

VEC_INLINE vh V(f32_to_f16)(vf v)
{
#if defined(CPU_HAS_AVX512)
	return (vh)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(CPU_HAS_AVX2)
	return (vh)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
	const vu u = (vu)v, a = u & 0x7fffffff, none = { 0 };
	const vu tiny = (vu)((vf)a + 0.5f) - 0x3f000000u; /* below 2^-14: 0.5 shifts the bits into place */
	const vu normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000u) >> 13;
	const vf large = vblend(a <= 0x7f800000u, (vf)(none + 0x7c00), (vf)(none + 0x7e00)); /* infinity, NaN */
	const vf small = vblend(a < 0x38800000u, (vf)tiny, (vf)normal);

	return __builtin_convertvector((vu)vblend(a < 0x477ff000u, small, large) | (u >> 16 & 0x8000), vh);
#endif
}

/* The first n lanes; the others are zero. */
VEC_INLINE vf V(load_f16)(const void *p, int64_t i, int64_t n)
{
	uint16_t h[LANES] = { 0 };

	if (n >= LANES)
		return V(f16_to_f32)(*(const vh_u *)((const uint16_t *)p + i));
	memcpy(h, (const uint16_t *)p + i, (size_t)n * sizeof(*h));
	return V(f16_to_f32)(*(const vh_u *)h);
}

VEC_INLINE void V(store_f16)(void *p, int64_t i, vf v, int64_t n)
{
	const vh h = V(f32_to_f16)(v);

	memcpy((uint16_t *)p + i, &h, n >= LANES ? sizeof(h) : (size_t)n * sizeof(uint16_t));
}

VEC_INLINE void V(widen_row)(const struct widening *w, int64_t row, struct cpu_range r, const enum widen_way way)
{
	const int64_t from = row * w->from_step, to = row * w->to_step;

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf v = way == WIDEN_F16 ? V(load_f16)(w->from, from + i, r.end - i)
					: vload_any(w->from, from + i, r.end - i, way == WIDEN);

		if (way == ROUND)
			v = (vf)(__builtin_convertvector(vto_bf16(v), vu) << 16);
		if (way == NARROW_F16)
			V(store_f16)(w->to, to + i, v, r.end - i);
		else
			vstore_any(w->to, to + i, v, r.end - i, way == NARROW);
	}
}

VEC_INLINE void V(widen_part)(const struct widening *w, int part, int parts, const enum widen_way way)
{
	struct cpu_range rows = { 0, 1 }, columns = { 0, w->columns };

	if (w->rows > 1)
		rows = cpu_split(w->rows, 1, part, parts);
	else
		columns = cpu_split(w->columns, LANES, part, parts);
	for (int64_t row = rows.begin; row < rows.end; row++)
		V(widen_row)(w, row, columns, way);
}

static void V(widen_loop)(void *arg, int part, int parts)
{
	V(widen_part)(arg, part, parts, WIDEN);
}

static void V(narrow_loop)(void *arg, int part, int parts)
{
	V(widen_part)(arg, part, parts, NARROW);
}

static void V(round_loop)(void *arg, int part, int parts)
{
	V(widen_part)(arg, part, parts, ROUND);
}

static void V(widen_f16_loop)(void *arg, int part, int parts)
{
	V(widen_part)(arg, part, parts, WIDEN_F16);
}

static void V(narrow_f16_loop)(void *arg, int part, int parts)
{
	V(widen_part)(arg, part, parts, NARROW_F16);
}

#endif
