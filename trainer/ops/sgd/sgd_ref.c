/* SPDX-License-Identifier: Apache-2.0 */
/* sgd_ref.c: one SGD step, elementwise. */
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/sgd/sgd.h"

static int run_sgd_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct sgd_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[3];
	double *p = args->out[0], *m = args->out[1];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR] + a->weight_decay * p[i];

		if (m) {
			m[i] = a->momentum * m[i] + d;
			d = a->nesterov ? d + a->momentum * m[i] : m[i];
		}
		p[i] -= args->page->lr * d;
	}
	return 0;
}

const struct kernel sgd_ref = REF_KERNEL(run_sgd_ref);
