/* SPDX-License-Identifier: Apache-2.0 */
/* embed_ref.c: the embedding, row by row. */
#include <string.h>

#include "trainer/ops/embed/embed.h"
#include "trainer/ops/ref_kernel.h"

static int run_embed_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t rows = n->out[0]->shape.dim[0], c = n->out[0]->shape.dim[1], t = n->in[0]->shape.dim[1];
	const int32_t *tokens = args->in[0];
	const double *wte = args->in[1], *wpe = args->in[2];
	double *x = args->out[0];

	(void)err;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < c; i++)
			x[r * c + i] = wte[tokens[r] * c + i] + wpe[r % t * c + i];
	return 0;
}

static int run_embed_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], t = n->in[1]->shape.dim[1];
	const double *dx = args->in[0];
	const int32_t *tokens = args->in[1];
	double *dwte = args->out[0], *dwpe = args->out[1];

	(void)err;
	if (!args->in[2])
		memset(dwte, 0, tensor_bytes(n->out[0]));
	else if (args->in[2] != args->out[0])
		memcpy(dwte, args->in[2], tensor_bytes(n->out[0]));
	memset(dwpe, 0, tensor_bytes(n->out[1]));
	for (int64_t r = 0; r < rows; r++) {
		ref_axpy(dwte + tokens[r] * c, 1, dx + r * c, c);
		ref_axpy(dwpe + r % t * c, 1, dx + r * c, c);
	}
	return 0;
}

const struct kernel embed_ref = REF_KERNEL(run_embed_ref);
const struct kernel embed_grad_ref = REF_KERNEL(run_embed_grad_ref);
