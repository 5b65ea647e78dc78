/* SPDX-License-Identifier: Apache-2.0 */
/* widen.c: divides rows among threads; rows without gaps on either side are treated as one. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/widen.h"
#include "trainer/backends/cpu/vec.h"

enum widen_way { WIDEN, NARROW, ROUND };

struct widening {
	const void *from;
	void *to;
	int64_t rows, columns, from_step, to_step;
};

#define CPU_BODY "trainer/backends/cpu/widen.c"
#include "trainer/backends/cpu/each.h"

static size_t count_copy_bytes(const struct widen_rows *r)
{
	return ((size_t)(r->rows * r->columns) * sizeof(float) + 63) / 64 * 64;
}

size_t widen_bytes(const struct widen_copies *c)
{
	return count_copy_bytes(&c->a) + count_copy_bytes(&c->b) + count_copy_bytes(&c->out);
}

static void run_widening(const struct widen_copies *c, cpu_part_fn *const *loops, struct widening w)
{
	const struct kernel_env env = { .threads = c->threads };

	if (w.from_step == w.columns && w.to_step == w.columns) {
		w.columns *= w.rows;
		w.rows = 1;
	}
	cpu_parallel(cpu_parts(&env, w.rows * w.columns), loops[c->module->isa], &w);
}

static int64_t find_row_step(const struct widen_rows *r)
{
	return r->step ? r->step : r->columns;
}

static void *widen_rows_to_f32(const struct widen_copies *c, const struct widen_rows *r, const void *from, void *to)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(widen_loop);

	run_widening(c, loops, (struct widening){ from, to, r->rows, r->columns, find_row_step(r), r->columns });
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
		run_widening(c, loops,
			     (struct widening){ o->out, out, r->rows, r->columns, r->columns, find_row_step(r) });
}

void widen_round(const struct widen_copies *c, void *f32, int64_t n)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(round_loop);

	run_widening(c, loops, (struct widening){ f32, f32, 1, n, n, n });
}

#else

VEC_INLINE void V(widen_row)(const struct widening *w, int64_t row, struct cpu_range r, const enum widen_way way)
{
	const int64_t from = row * w->from_step, to = row * w->to_step;

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf v = vload_any(w->from, from + i, r.end - i, way == WIDEN);

		if (way == ROUND)
			v = (vf)(__builtin_convertvector(vto_bf16(v), vu) << 16);
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

#endif
