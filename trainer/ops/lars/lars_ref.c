/* SPDX-License-Identifier: Apache-2.0 */
/* lars_ref.c: one LARS step, elementwise. */
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lars/lars.h"
#include "trainer/ops/ref_kernel.h"

static int run_lars_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct lars_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[3];
	double *p = args->out[0], *m = args->out[1], factor = step[STEP_GUARD_FACTOR];
	double rate = args->page->lr * lars_ratio(a, args->in[4], args->in[5], factor);

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = rate * (grad[i] * factor + a->weight_decay * p[i]);

		if (m)
			d = m[i] = a->momentum * m[i] + d;
		p[i] -= d;
	}
	return 0;
}

const struct kernel lars_ref = REF_KERNEL(run_lars_ref);
