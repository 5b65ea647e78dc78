/* SPDX-License-Identifier: Apache-2.0 */
/* lamb_cpu.c: LAMB in f32: Adam's step of one parameter as a rule for cpu_update.h, then its addition once its norm is
 * known. */
#ifndef CPU_PASS
#include <math.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_update.h"
#include "trainer/ops/lamb/lamb.h"

struct lamb_update_state {
	struct cpu_update u;
	float mean_scale, root_scale; /* 1 / (1 - b1^t), 1 / sqrt(1 - b2^t) */
	float beta1, share1, beta2, share2, eps, decay;
};

struct lamb_state {
	struct cpu_update u; /* g: the step */
	float rate;	     /* lr times the trust ratio */
};

#define CPU_BODY "trainer/ops/lamb/lamb_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Adam's step into a buffer of its own; zero for a skipped step. */
static int run_lamb_update_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct lamb_update_state s = *(const struct lamb_update_state *)state;
	const struct lamb_attr *a = s.u.node->attr;
	const double *step = cpu_update_begin(&s.u, args);
	double t = step[STEP_GUARD_UPDATES];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0) {
		memset(s.u.out, 0, (size_t)s.u.count * sizeof(*s.u.out));
		return 0;
	}
	s.mean_scale = (float)(1 / (1 - pow(a->beta1, t)));
	s.root_scale = (float)(1 / sqrt(1 - pow(a->beta2, t)));
	s.beta1 = (float)a->beta1;
	s.share1 = (float)(1 - a->beta1);
	s.beta2 = (float)a->beta2;
	s.share2 = (float)(1 - a->beta2);
	s.eps = (float)a->eps;
	s.decay = (float)a->weight_decay;
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

static int run_lamb_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct lamb_state s = *(const struct lamb_state *)state;

	(void)err;
	if (cpu_update_begin(&s.u, args)[STEP_GUARD_SKIP] != 0)
		return 0;
	s.rate = (float)(args->page->lr * lamb_ratio(args->in[3], args->in[4]));
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

CPU_UPDATE_KERNEL(lamb_update, 2);
CPU_UPDATE_KERNEL(lamb, 0);

#else

VEC_INLINE vf V(lamb_update_rule)(const struct lamb_update_state *s, vf p, vf d, vf m[2])
{
	m[0] = s->beta1 * m[0] + s->share1 * d;
	m[1] = s->beta2 * m[1] + s->share2 * d * d;
	return m[0] * s->mean_scale / (vsqrt(m[1]) * s->root_scale + s->eps) + s->decay * p;
}

CPU_UPDATE_LOOP(lamb_update, 2)

static void V(lamb_loop)(void *arg, int part, int parts)
{
	const struct lamb_state *s = arg;
	struct cpu_range r = cpu_split(s->u.count, LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf step = vload_any(s->u.g, i, r.end - i, false);

		vstore_any(s->u.out, i, vload_any(s->u.p, i, r.end - i, false) - s->rate * step, r.end - i, false);
	}
}

#endif
