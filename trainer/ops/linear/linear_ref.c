/* SPDX-License-Identifier: Apache-2.0 */
/* linear_ref.c: the fully connected layer, row by row. */
#include <string.h>

#include "trainer/ops/linear/linear.h"
#include "trainer/ops/ref_kernel.h"

static int run_linear_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	int64_t n = node->out[0]->shape.dim[0], k = node->out[0]->shape.dim[1], c = node->in[0]->shape.dim[1];
	const double *x = args->in[0], *w = args->in[1], *b = args->in[2];
	double *y = args->out[0];

	(void)err;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			y[i * k + j] = ref_dot(x + i * c, w + j * c, c) + (b ? b[j] : 0);
	return 0;
}

static int run_linear_dgrad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1], c = node->out[0]->shape.dim[1];
	const double *dy = args->in[0], *w = args->in[1];
	double *dx = args->out[0];

	(void)err;
	memset(dx, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			ref_axpy(dx + i * c, dy[i * k + j], w + j * c, c);
	return 0;
}

static int run_linear_wgrad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	int64_t n = node->in[0]->shape.dim[0], c = node->in[0]->shape.dim[1], k = node->in[1]->shape.dim[1];
	const double *x = args->in[0], *dy = args->in[1];
	double *dw = args->out[0], *db = args->out[1];

	(void)err;
	memset(dw, 0, tensor_bytes(node->out[0]));
	if (db)
		memset(db, 0, tensor_bytes(node->out[1]));
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++) {
			ref_axpy(dw + j * c, dy[i * k + j], x + i * c, c);
			if (db)
				db[j] += dy[i * k + j];
		}
	return 0;
}

const struct kernel linear_ref = REF_KERNEL(run_linear_ref);
const struct kernel linear_dgrad_ref = REF_KERNEL(run_linear_dgrad_ref);
const struct kernel linear_wgrad_ref = REF_KERNEL(run_linear_wgrad_ref);
