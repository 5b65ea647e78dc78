/* SPDX-License-Identifier: Apache-2.0 */
/* glu_cpu.c: the gated unit, row by row: one exponential an element. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/glu/glu.h"

struct glu_state {
	cpu_part_fn *loop;
	int64_t rows, f, step; /* step: between rows of gate and up */
	float slope, cubic;
	int parts;
	bool bf16, joined; /* joined: gate holds both */
	/* set per run */
	const void *dy, *gate, *up;
	void *y, *dup; /* y: of the gradient dgate */
	int64_t up_at; /* element where up begins, in gate if joined */
};

#define CPU_BODY "trainer/ops/glu/glu_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Creates the state of both ops. first: the input that is gate. */
static int new_glu_state(const struct kernel_env *env, const struct node *n, int first, struct glu_state **ret,
			 struct err *err)
{
	const struct tensor *gate = n->in[first], *up = n->in[first + 1];
	const struct glu_attr *a = n->attr;
	struct glu_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ n->n_in, n->n_out }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->rows = gate->shape.dim[0];
	s->f = glu_width(gate, up);
	s->step = gate->shape.dim[1];
	s->slope = (float)a->slope;
	s->cubic = (float)a->cubic;
	s->bf16 = bf16;
	s->joined = !up;
	s->up_at = up ? 0 : s->f;
	s->parts = cpu_parts(env, s->rows * s->f * 4);
	*ret = s;
	return 0;
}

static int prepare_glu_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct glu_state *s;
	int rc = new_glu_state(env, n, 0, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, glu_loop);
	*ret_state = s;
	return 0;
}

static int prepare_glu_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct glu_state *s;
	int rc = new_glu_state(env, n, 1, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, glu_grad_loop);
	*ret_state = s;
	return 0;
}

static void run_glu_cpu(void *state, const struct kernel_args *args)
{
	struct glu_state s = *(const struct glu_state *)state;

	s.gate = args->in[0];
	s.up = s.joined ? s.gate : args->in[1];
	s.y = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
}

static void run_glu_grad_cpu(void *state, const struct kernel_args *args)
{
	struct glu_state s = *(const struct glu_state *)state;

	s.dy = args->in[0];
	s.gate = args->in[1];
	s.up = s.joined ? s.gate : args->in[2];
	s.y = args->out[0];
	s.dup = s.joined ? s.y : args->out[1];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel glu_cpu, glu_grad_cpu;
const struct kernel glu_cpu = { .prepare = prepare_glu_cpu, .run = run_glu_cpu, .release = cpu_state_release };
const struct kernel glu_grad_cpu = { .prepare = prepare_glu_grad_cpu,
				     .run = run_glu_grad_cpu,
				     .release = cpu_state_release };

#else

/* e^(-u), limited to a finite value; vmin with the constant first propagates NaN. */
VEC_INLINE vf V(glu_exp)(const struct glu_state *s, vf x)
{
	return vexp(vmin(vset(88), -(s->slope * x * (1 + s->cubic * x * x))));
}

VEC_INLINE void V(glu_row)(const struct glu_state *s, int64_t row, const bool bf)
{
	for (int64_t i = 0; i < s->f; i += LANES) {
		int64_t left = s->f - i, at = row * s->step + i;
		vf x = vload_any(s->gate, at, left, bf), up = vload_any(s->up, s->up_at + at, left, bf);

		vstore_any(s->y, row * s->f + i, x / (1 + V(glu_exp)(s, x)) * up, left, bf);
	}
}

static void V(glu_loop)(void *arg, int part, int parts)
{
	const struct glu_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	for (int64_t row = r.begin; row < r.end; row++)
		s->bf16 ? V(glu_row)(s, row, true) : V(glu_row)(s, row, false);
}

/* 1 - sigmoid is computed as e sigmoid, since the difference cancels where it is near 1. For large |x| it is zero;
 * clamping x keeps its polynomial factor finite, so that the product is not NaN. */
VEC_INLINE void V(glu_grad_row)(const struct glu_state *s, int64_t row, const bool bf)
{
	for (int64_t i = 0; i < s->f; i += LANES) {
		int64_t left = s->f - i, at = row * s->step + i;
		vf dy = vload_any(s->dy, row * s->f + i, left, bf);
		vf x = vload_any(s->gate, at, left, bf), up = vload_any(s->up, s->up_at + at, left, bf);
		vf e = V(glu_exp)(s, x), sigmoid = 1 / (1 + e), t = vmin(vmax(x, vset(-64)), vset(64));
		vf du = s->slope * (1 + 3 * s->cubic * t * t);

		vstore_any(s->y, at, dy * up * (sigmoid + t * sigmoid * (e * sigmoid) * du), left, bf);
		vstore_any(s->dup, s->up_at + at, dy * x * sigmoid, left, bf);
	}
}

static void V(glu_grad_loop)(void *arg, int part, int parts)
{
	const struct glu_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	for (int64_t row = r.begin; row < r.end; row++)
		s->bf16 ? V(glu_grad_row)(s, row, true) : V(glu_grad_row)(s, row, false);
}

#endif
