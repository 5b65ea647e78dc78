/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_ref.c: tanh GELU, elementwise. */
#include <math.h>

#include "trainer/ops/gelu/gelu.h"
#include "trainer/ops/ref_kernel.h"

#define SQRT_2_OVER_PI 0.79788456080286535588
#define CUBIC 0.044715

static int run_gelu_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *y = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = 0.5 * x[i] * (1 + tanh(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i])));
	return 0;
}

static int run_gelu_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *dy = args->in[0], *x = args->in[1];
	double *dx = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++) {
		double t = tanh(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i]));
		double inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x[i] * x[i]);

		dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * inner);
	}
	return 0;
}

const struct kernel gelu_ref = REF_KERNEL(run_gelu_ref);
const struct kernel gelu_grad_ref = REF_KERNEL(run_gelu_grad_ref);
