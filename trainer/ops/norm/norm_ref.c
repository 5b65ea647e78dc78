/* SPDX-License-Identifier: Apache-2.0 */
/* norm_ref.c: sums of squares and their square root. */
#include "trainer/ops/norm/norm_host.h"
#include "trainer/ops/ref_kernel.h"

static int run_sumsq_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	*(double *)args->out[0] = ref_dot(args->in[0], args->in[0], shape_count(&n->in[0]->shape));
	return 0;
}

static int run_squares_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const int64_t count = shape_count(&n->in[0]->shape);
	const double *g = args->in[0];
	double *out = args->out[0];

	(void)err;
	for (int64_t i = 0; i < count; i += SQUARES_BLOCK)
		out[i / SQUARES_BLOCK] = ref_dot(g + i, g + i, count - i < SQUARES_BLOCK ? count - i : SQUARES_BLOCK);
	return 0;
}

const struct kernel sumsq_ref = REF_KERNEL(run_sumsq_ref);
const struct kernel squares_ref = REF_KERNEL(run_squares_ref);
const struct kernel exact_ref = EXACT_KERNEL;
const struct kernel norm_ref = NORM_KERNEL;
