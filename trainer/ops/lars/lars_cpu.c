/* SPDX-License-Identifier: Apache-2.0 */
/* lars_cpu.c: LARS's rule for cpu_update.h. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/cpu_update.h"
#include "trainer/ops/lars/lars.h"

struct lars_state {
	struct cpu_update u;
	float rate, decay, momentum; /* rate: lr times the trust ratio */
};

#define CPU_BODY "trainer/ops/lars/lars_cpu.c"
#include "trainer/backends/cpu/each.h"

static int run_lars_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct lars_state s = *(const struct lars_state *)state;
	const struct lars_attr *a = s.u.node->attr;
	const double *step = cpu_update_begin(&s.u, args);

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	s.rate = (float)(args->page->lr * lars_ratio(a, args->in[4], args->in[5], step[STEP_GUARD_FACTOR]));
	s.decay = (float)a->weight_decay;
	s.momentum = (float)a->momentum;
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

CPU_UPDATE_KERNEL(lars, 1);

#else

VEC_INLINE vf V(lars_rule)(const struct lars_state *s, vf p, vf d, vf m[1])
{
	d = (d + s->decay * p) * s->rate;
	if (s->u.m[0])
		d = m[0] = s->momentum * m[0] + d;
	return p - d;
}

CPU_UPDATE_LOOP(lars, 1)

#endif
