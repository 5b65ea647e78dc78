/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_ref.c: dropout, elementwise. */
#include "trainer/ops/dropout/dropout.h"
#include "trainer/ops/ref_kernel.h"

static int run_dropout_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	struct dropout_draw d = dropout_draw(n->attr, args->page);
	const double *x = args->in[0];
	double *y = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = dropout_keeps(&d, (uint64_t)i) ? x[i] * d.scale : 0;
	return 0;
}

const struct kernel dropout_ref = REF_KERNEL(run_dropout_ref);
