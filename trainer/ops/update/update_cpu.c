/* SPDX-License-Identifier: Apache-2.0 */
/* update_cpu.c: the formulas of update.h in f32. Parameter, gradient and moments are each read once and written
 * once. */
#ifndef CPU_PASS
#include <math.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/update/update.h"

struct update_state {
	const struct node *node;
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	const float *p, *g;
	float *out, *m[UPDATE_MOMENTS_MAX]; /* m: NULL if absent */

	/* factors of a step */
	float scale;		      /* of the gradient */
	float rate, mean_rate;	      /* lr times the ratio; lr / (1 - b1^t) */
	float keep, decay;	      /* of the parameter by decoupled decay; coupled decay */
	float mean_scale, root_scale; /* 1 / (1 - b1^t), 1 / sqrt(1 - b2^t) */
	float momentum, beta1, share1, beta2, share2, eps;
	bool nesterov;
};

#define CPU_BODY "trainer/ops/update/update_cpu.c"
#include "trainer/backends/cpu/each.h"

static cpu_part_fn *const loops[UPDATE_RULES][CPU_ISA_COUNT] = {
#define RULE(name, ...) CPU_TABLE(name##_loop),
	UPDATE_RULE_LIST(RULE)
#undef RULE
};

static int prepare_update_cpu(const struct kernel_env *env, struct node *n, void **ret, struct err *err)
{
	struct update_state *s;
	int rc = 0;

	for (int i = 0; !rc && i < update_step_index(n); i++)
		rc = n->in[i] ? cpu_want(n, n->in[i], DTYPE_F32, err) : 0;
	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->node = n;
	s->loop = loops[((const struct update_attr *)n->attr)->rule][((const struct cpu_module *)env->module)->isa];
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	*ret = s;
	return 0;
}

/* Sets what the formulas share in one step. */
static void set_update_factors(struct update_state *s, const struct kernel_args *args, const double *step)
{
	const struct update_attr *a = s->node->attr;
	const int at = update_step_index(s->node);
	const bool has_sums = at + 1 < s->node->n_in;
	const double *const sums[2] = { has_sums ? args->in[at + 1] : NULL, has_sums ? args->in[at + 2] : NULL };
	const double lr = args->page->lr, factor = step[STEP_GUARD_FACTOR], t = step[STEP_GUARD_UPDATES];
	const double c1 = 1 - pow(a->o.beta1, t), c2 = 1 - pow(a->o.beta2, t);

	s->scale = a->rule == UPDATE_lamb ? 1 : (float)factor;
	s->rate = (float)(lr * update_ratio(a, sums, factor));
	s->mean_rate = (float)(lr / c1);
	s->keep = (float)(1 - lr * a->o.weight_decay);
	s->decay = (float)a->o.weight_decay;
	s->mean_scale = (float)(1 / c1);
	s->root_scale = (float)(1 / sqrt(c2));
	s->momentum = (float)a->o.momentum;
	s->beta1 = (float)a->o.beta1;
	s->share1 = (float)(1 - a->o.beta1);
	s->beta2 = (float)a->o.beta2;
	s->share2 = (float)(1 - a->o.beta2);
	s->eps = (float)a->o.eps;
	s->nesterov = a->o.nesterov;
}

static void run_update_cpu(void *state, const struct kernel_args *args)
{
	struct update_state s = *(const struct update_state *)state;
	const double *step = args->in[update_step_index(s.node)];

	s.p = args->in[0];
	s.g = args->in[1];
	s.out = args->out[0];
	for (int k = 1; k < s.node->n_out; k++)
		s.m[k - 1] = s.node->out[k] ? args->out[k] : NULL;
	if (step[STEP_GUARD_SKIP] == 0) {
		set_update_factors(&s, args, step);
		cpu_parallel(s.parts, s.loop, &s);
	} else if (((const struct update_attr *)s.node->attr)->rule == UPDATE_lamb_step) {
		memset(s.out, 0, (size_t)s.count * sizeof(*s.out));
	}
}

extern const struct kernel update_cpu;
const struct kernel update_cpu = { .prepare = prepare_update_cpu,
				   .run = run_update_cpu,
				   .release = cpu_state_release };

#else

/* Takes the elements of p and d, and updates those of the moments; returns those of output 0. */
typedef vf V(formula)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX]);

VEC_INLINE vf V(compute_sgd)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	d += s->decay * p;
	if (s->m[0]) {
		m[0] = s->momentum * m[0] + d;
		d = s->nesterov ? d + s->momentum * m[0] : m[0];
	}
	return p - s->rate * d;
}

VEC_INLINE vf V(compute_adam_step)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	m[0] += s->share1 * (d - m[0]);
	m[1] = s->beta2 * m[1] + s->share2 * d * d;
	return p - s->mean_rate * m[0] / (vsqrt(m[1]) * s->root_scale + s->eps);
}

VEC_INLINE vf V(compute_adamw)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	return V(compute_adam_step)(s, p * s->keep, d, m);
}

VEC_INLINE vf V(compute_adam)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	return V(compute_adam_step)(s, p, d + s->decay * p, m);
}

VEC_INLINE vf V(compute_lars)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	d = (d + s->decay * p) * s->rate;
	if (s->m[0])
		d = m[0] = s->momentum * m[0] + d;
	return p - d;
}

VEC_INLINE vf V(compute_lamb_step)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	m[0] = s->beta1 * m[0] + s->share1 * d;
	m[1] = s->beta2 * m[1] + s->share2 * d * d;
	return m[0] * s->mean_scale / (vsqrt(m[1]) * s->root_scale + s->eps) + s->decay * p;
}

VEC_INLINE vf V(compute_lamb)(const struct update_state *s, vf p, vf d, vf m[UPDATE_MOMENTS_MAX])
{
	(void)m;
	return p - s->rate * d;
}

/* The gradient is scaled after all loads, which branch, so that the compiler may fuse its product with the formula. */
VEC_INLINE void V(update_range)(const struct update_state *s, struct cpu_range r, int moments, V(formula) *compute)
{
	for (int64_t i = r.begin; i < r.end; i += LANES) {
		const int64_t n = r.end - i;
		vf m[UPDATE_MOMENTS_MAX], p, d;

		for (int k = 0; k < moments; k++)
			m[k] = s->m[k] ? vload_any(s->m[k], i, n, false) : vset(0);
		p = vload_any(s->p, i, n, false);
		d = vload_any(s->g, i, n, false) * s->scale;
		p = compute(s, p, d, m);
		for (int k = 0; k < moments; k++)
			if (s->m[k])
				vstore_any(s->m[k], i, m[k], n, false);
		vstore_any(s->out, i, p, n, false);
	}
}

#define UPDATE_LOOP(rule, moments, ...)                                                                                \
	static void V(rule##_loop)(void *arg, int part, int parts)                                                     \
	{                                                                                                              \
		const struct update_state *s = arg;                                                                    \
                                                                                                                       \
		V(update_range)(s, cpu_split(s->count, LANES, part, parts), moments, V(compute_##rule));               \
	}

UPDATE_RULE_LIST(UPDATE_LOOP)
#undef UPDATE_LOOP

#endif
