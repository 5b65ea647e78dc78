/* SPDX-License-Identifier: Apache-2.0 */
/* sgd_cpu.c: SGD's rule for cpu_update.h. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/cpu_update.h"
#include "trainer/ops/sgd/sgd.h"

struct sgd_state {
	struct cpu_update u;
	float lr, decay, momentum;
	bool nesterov;
};

#define CPU_BODY "trainer/ops/sgd/sgd_cpu.c"
#include "trainer/backends/cpu/each.h"

static int run_sgd_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct sgd_state s = *(const struct sgd_state *)state;
	const struct sgd_attr *a = s.u.node->attr;

	(void)err;
	if (cpu_update_begin(&s.u, args)[STEP_GUARD_SKIP] != 0)
		return 0;
	s.lr = (float)args->page->lr;
	s.decay = (float)a->weight_decay;
	s.momentum = (float)a->momentum;
	s.nesterov = a->nesterov;
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

CPU_UPDATE_KERNEL(sgd, 1);

#else

VEC_INLINE vf V(sgd_rule)(const struct sgd_state *s, vf p, vf d, vf m[1])
{
	d += s->decay * p;
	if (s->u.m[0]) {
		m[0] = s->momentum * m[0] + d;
		d = s->nesterov ? d + s->momentum * m[0] : m[0];
	}
	return p - s->lr * d;
}

CPU_UPDATE_LOOP(sgd, 1)

#endif
