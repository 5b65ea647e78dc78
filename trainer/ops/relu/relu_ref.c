/* SPDX-License-Identifier: Apache-2.0 */
/* relu_ref.c: ReLU, elementwise; NaN stays NaN. */
#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/relu/relu.h"

static int run_relu_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *y = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = x[i] <= 0 ? 0 : x[i];
	return 0;
}

static int run_relu_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *dy = args->in[0], *y = args->in[1];
	double *dx = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		dx[i] = y[i] > 0 ? dy[i] : 0;
	return 0;
}

const struct kernel relu_ref = REF_KERNEL(run_relu_ref);
const struct kernel relu_grad_ref = REF_KERNEL(run_relu_grad_ref);
