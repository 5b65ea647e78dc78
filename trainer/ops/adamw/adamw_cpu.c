/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_cpu.c: the rule of AdamW and Adam for cpu_update.h. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/cpu_update.h"
#include "trainer/ops/adamw/adamw.h"

struct adamw_state {
	struct cpu_update u;
	float keep, decay;	/* of the parameter by decoupled decay; coupled decay */
	float rate, root_scale; /* lr / (1 - b1^t), 1 / sqrt(1 - b2^t) */
	float share1, beta2, share2, eps;
};

#define CPU_BODY "trainer/ops/adamw/adamw_cpu.c"
#include "trainer/backends/cpu/each.h"

static int run_adamw_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct adamw_state s = *(const struct adamw_state *)state;
	const struct adamw_attr *a = s.u.node->attr;
	const double *step = cpu_update_begin(&s.u, args);
	double lr = args->page->lr, t = step[STEP_GUARD_UPDATES];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	s.keep = a->coupled ? 1 : (float)(1 - lr * a->weight_decay);
	s.decay = a->coupled ? (float)a->weight_decay : 0;
	s.rate = (float)(lr / (1 - pow(a->beta1, t)));
	s.root_scale = (float)(1 / sqrt(1 - pow(a->beta2, t)));
	s.share1 = (float)(1 - a->beta1);
	s.beta2 = (float)a->beta2;
	s.share2 = (float)(1 - a->beta2);
	s.eps = (float)a->eps;
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

CPU_UPDATE_KERNEL(adamw, 2);

#else

VEC_INLINE vf V(adamw_rule)(const struct adamw_state *s, vf p, vf d, vf m[2])
{
	d += s->decay * p;
	m[0] += s->share1 * (d - m[0]);
	m[1] = s->beta2 * m[1] + s->share2 * d * d;
	return p * s->keep - s->rate * m[0] / (vsqrt(m[1]) * s->root_scale + s->eps);
}

CPU_UPDATE_LOOP(adamw, 2)

#endif
