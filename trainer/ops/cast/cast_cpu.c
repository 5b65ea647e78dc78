/* SPDX-License-Identifier: Apache-2.0 */
/* cast_cpu.c: conversions between f32, bf16 and f64, rounded to nearest even. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"

struct cast_state {
	cpu_part_fn *loop;
	enum dtype from, to;
	int64_t count;
	int parts;
	const void *x;
	void *y;
};

#define CPU_BODY "trainer/ops/cast/cast_cpu.c"
#include "trainer/backends/cpu/each.h"

static bool is_castable(enum dtype t)
{
	return t == DTYPE_F32 || t == DTYPE_BF16 || t == DTYPE_F64;
}

/* Accepts f32, bf16 and f64 on both sides. */
static int prepare_cast_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct cast_state *s;
	int rc = 0;

	if (!is_castable(n->in[0]->dtype))
		rc = cpu_want(n, n->in[0], DTYPE_F32, err);
	if (!rc && !is_castable(n->out[0]->dtype))
		rc = cpu_want(n, n->out[0], DTYPE_F32, err);
	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = CPU_PICK(env, cast_loop);
	s->from = n->in[0]->dtype;
	s->to = n->out[0]->dtype;
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	*ret_state = s;
	return 0;
}

static void run_cast_cpu(void *state, const struct kernel_args *args)
{
	struct cast_state s = *(const struct cast_state *)state;

	s.x = args->in[0];
	s.y = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel cast_cpu;
const struct kernel cast_cpu = { .prepare = prepare_cast_cpu, .run = run_cast_cpu, .release = cpu_state_release };

#else

VEC_INLINE void V(cast_narrow)(const struct cast_state *s, struct cpu_range r, bool from_bf, bool to_bf)
{
	for (int64_t i = r.begin; i < r.end; i += LANES)
		vstore_any(s->y, i, vload_any(s->x, i, r.end - i, from_bf), r.end - i, to_bf);
}

/* To or from f64, in blocks, through f32. */
static void V(cast_f64)(const struct cast_state *s, struct cpu_range r)
{
	for (int64_t i = r.begin; i < r.end; i += LANES) {
		int64_t n = r.end - i < LANES ? r.end - i : LANES;
		double d[LANES];

		if (s->from == DTYPE_F64) {
			memcpy(d, (const double *)s->x + i, (size_t)n * sizeof(*d));
		} else {
			vf v = vload_any(s->x, i, n, s->from == DTYPE_BF16);
			float f[LANES];

			memcpy(f, &v, sizeof(f));
			for (int j = 0; j < LANES; j++)
				d[j] = (double)f[j];
		}
		if (s->to == DTYPE_F64) {
			memcpy((double *)s->y + i, d, (size_t)n * sizeof(*d));
		} else {
			vf v = { 0 };

			for (int64_t j = 0; j < n; j++)
				v[j] = (float)d[j];
			vstore_any(s->y, i, v, n, s->to == DTYPE_BF16);
		}
	}
}

static void V(cast_loop)(void *arg, int part, int parts)
{
	const struct cast_state *s = arg;
	struct cpu_range r = cpu_split(s->count, 2 * LANES, part, parts);

	if (s->from == DTYPE_F64 || s->to == DTYPE_F64)
		V(cast_f64)(s, r);
	else if (s->from == DTYPE_BF16)
		s->to == DTYPE_BF16 ? V(cast_narrow)(s, r, true, true) : V(cast_narrow)(s, r, true, false);
	else
		s->to == DTYPE_BF16 ? V(cast_narrow)(s, r, false, true) : V(cast_narrow)(s, r, false, false);
}

#endif
