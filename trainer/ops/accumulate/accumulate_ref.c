/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate_ref.c: the sum over micro-batches, elementwise. */
#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/ref_kernel.h"

static int run_accumulate_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[1];
	double *s = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		s[i] = args->page->micro ? s[i] + x[i] : x[i];
	return 0;
}

const struct kernel accumulate_ref = REF_KERNEL(run_accumulate_ref);
