/* SPDX-License-Identifier: Apache-2.0 */
/* lamb_ref.c: one LAMB step, elementwise. */
#include <string.h>

#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lamb/lamb.h"
#include "trainer/ops/ref_kernel.h"

/* The formula of lamb_update in lamb.h. */
static int run_lamb_update_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct lamb_attr *a = n->attr;
	const double *p = args->in[0], *grad = args->in[1], *step = args->in[4];
	double *u = args->out[0], *m = args->out[1], *v = args->out[2], t = step[STEP_GUARD_UPDATES];
	double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t);
	int64_t count = shape_count(&n->in[0]->shape);

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0) {
		memset(u, 0, (size_t)count * sizeof(*u));
		return 0;
	}
	for (int64_t i = 0; i < count; i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR];

		m[i] = a->beta1 * m[i] + (1 - a->beta1) * d;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * d * d;
		u[i] = m[i] / c1 / (sqrt(v[i] / c2) + a->eps) + a->weight_decay * p[i];
	}
	return 0;
}

static int run_lamb_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *u = args->in[1], *step = args->in[2];

	(void)err;
	if (step[STEP_GUARD_SKIP] == 0)
		ref_axpy(args->out[0], -args->page->lr * lamb_ratio(args->in[3], args->in[4]), u,
			 shape_count(&n->in[0]->shape));
	return 0;
}

const struct kernel lamb_update_ref = REF_KERNEL(run_lamb_update_ref);
const struct kernel lamb_ref = REF_KERNEL(run_lamb_ref);
