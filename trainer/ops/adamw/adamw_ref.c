/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_ref.c: one AdamW step, elementwise. */
#include <math.h>

#include "trainer/ops/adamw/adamw.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/ref_kernel.h"

/* The formula of adamw.h. */
static int run_adamw_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct adamw_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[4];
	double *p = args->out[0], *m = args->out[1], *v = args->out[2];
	double lr = args->page->lr, t = step[STEP_GUARD_UPDATES];
	double c1 = 1 - pow(a->beta1, t), c2 = sqrt(1 - pow(a->beta2, t));

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR];

		if (a->coupled)
			d += a->weight_decay * p[i];
		else
			p[i] -= lr * a->weight_decay * p[i];
		m[i] += (1 - a->beta1) * (d - m[i]);
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * d * d;
		p[i] -= lr / c1 * m[i] / (sqrt(v[i]) / c2 + a->eps);
	}
	return 0;
}

const struct kernel adamw_ref = REF_KERNEL(run_adamw_ref);
