/* SPDX-License-Identifier: Apache-2.0 */
/* ema_ref.c: one update of an average, elementwise. */
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/ref_kernel.h"

static int run_ema_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *ema = args->out[0], keep = ema_keep(n->attr, args->in[2], args->page->epoch_step);

	(void)err;
	for (int64_t i = 0; keep < 1 && i < shape_count(&n->in[0]->shape); i++)
		ema[i] = keep > 0 ? keep * ema[i] + (1 - keep) * x[i] : x[i];
	return 0;
}

const struct kernel ema_ref = REF_KERNEL(run_ema_ref);
