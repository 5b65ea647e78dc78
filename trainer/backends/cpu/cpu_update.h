/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_update.h: one optimiser step of one parameter in f32: parameter, gradient and moments are each read once and
 * written once. Operands are those of struct update_spec (trainer/ops/ops.h). For files compiled by
 * each.h, which have, for an op:
 *   struct <op>_state { struct cpu_update u; … }: what follows u are the factors of a step
 *   run_<op>_cpu: calls cpu_update_begin, sets the factors, and runs the loop
 *   CPU_UPDATE_KERNEL(op, moments), after each.h
 *   V(<op>_rule)(s, p, d, m): returns the value of output 0 and updates the moments; d: the scaled gradient
 *   CPU_UPDATE_LOOP(op, moments), after the rule */
#ifndef DPT_BACKENDS_CPU_UPDATE_H
#define DPT_BACKENDS_CPU_UPDATE_H

#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/step_guard/step_guard.h"

struct cpu_update {
	cpu_part_fn *loop;
	const struct node *node;
	int64_t count;
	int parts;
	const float *p, *g;
	float *out, *m[2]; /* m: NULL if absent */
	float scale;	   /* factor for the gradient */
};

struct cpu_update_opts {
	cpu_part_fn *loop;
	int n_in;     /* the first n_in inputs must be f32 or absent */
	size_t bytes; /* bytes of the whole state, which starts with struct cpu_update */
};

int cpu_update_new(const struct kernel_env *env, const struct node *n, const struct cpu_update_opts *o,
		   void **ret_state, struct err *err);

/* Sets the operands of one step; returns the output of guard. */
static inline const double *cpu_update_begin(struct cpu_update *u, const struct kernel_args *a)
{
	const double *step = a->in[u->node->n_out + 1];

	u->p = a->in[0];
	u->g = a->in[1];
	u->out = a->out[0];
	for (int k = 1; k < u->node->n_out; k++)
		u->m[k - 1] = u->node->out[k] ? a->out[k] : NULL;
	u->scale = (float)step[STEP_GUARD_FACTOR];
	return step;
}

#define CPU_UPDATE_KERNEL(op, moments)                                                                                 \
	static int prepare_##op##_cpu(const struct kernel_env *env, struct node *n, void **ret, struct err *err)       \
	{                                                                                                              \
		const size_t bytes = sizeof(struct op##_state);                                                        \
		const struct cpu_update_opts o = { CPU_PICK(env, op##_loop), 2 + (moments), bytes };                   \
                                                                                                                       \
		return cpu_update_new(env, n, &o, ret, err);                                                           \
	}                                                                                                              \
	extern const struct kernel op##_cpu;                                                                           \
	const struct kernel op##_cpu = { .prepare = prepare_##op##_cpu,                                                \
					 .run = run_##op##_cpu,                                                        \
					 .release = cpu_state_release }

/* The gradient is scaled after all loads, which branch, so that the compiler may fuse its product with the rule. */
#define CPU_UPDATE_LOOP(op, moments)                                                                                   \
	static void V(op##_loop)(void *arg, int part, int parts)                                                       \
	{                                                                                                              \
		const struct op##_state *s = arg;                                                                      \
		const struct cpu_update *u = &s->u;                                                                    \
		const struct cpu_range r = cpu_split(u->count, LANES, part, parts);                                    \
                                                                                                                       \
		for (int64_t i = r.begin; i < r.end; i += LANES) {                                                     \
			const int64_t n = r.end - i;                                                                   \
			vf m[moments], p, d;                                                                           \
                                                                                                                       \
			for (int k = 0; k < (moments); k++)                                                            \
				m[k] = u->m[k] ? vload_any(u->m[k], i, n, false) : vset(0);                            \
			p = vload_any(u->p, i, n, false);                                                              \
			d = vload_any(u->g, i, n, false) * u->scale;                                                   \
			p = V(op##_rule)(s, p, d, m);                                                                  \
			for (int k = 0; k < (moments); k++)                                                            \
				if (u->m[k])                                                                           \
					vstore_any(u->m[k], i, m[k], n, false);                                        \
			vstore_any(u->out, i, p, n, false);                                                            \
		}                                                                                                      \
	}

#endif
