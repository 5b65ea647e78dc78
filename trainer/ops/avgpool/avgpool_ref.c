/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool_ref.c: the average over all pixels of each image and channel. */
#include <string.h>

#include "trainer/ops/avgpool/avgpool.h"
#include "trainer/ops/ref_kernel.h"

static int run_avgpool_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const int64_t *in = n->in[0]->shape.dim;
	int64_t pixels = in[1] * in[2];
	const double *x = args->in[0];
	double *y = args->out[0];

	(void)err;
	memset(y, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < in[0] * pixels; i++)
		ref_axpy(y + i / pixels * in[3], 1 / (double)pixels, x + i * in[3], in[3]);
	return 0;
}

static int run_avgpool_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const int64_t *in = n->out[0]->shape.dim;
	int64_t pixels = in[1] * in[2];
	const double *dy = args->in[0];
	double *dx = args->out[0];

	(void)err;
	memset(dx, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < in[0] * pixels; i++)
		ref_axpy(dx + i * in[3], 1 / (double)pixels, dy + i / pixels * in[3], in[3]);
	return 0;
}

const struct kernel avgpool_ref = REF_KERNEL(run_avgpool_ref);
const struct kernel avgpool_grad_ref = REF_KERNEL(run_avgpool_grad_ref);
