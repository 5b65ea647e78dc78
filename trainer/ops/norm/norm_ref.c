/* norm_ref.c: sums of squares and their root. */
#include <math.h>

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ref.h"

static int sumsq_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	*(double *)args->out[0] = ref_dot(args->in[0], args->in[0], shape_count(&n->in[0]->shape));
	return 0;
}

static int norm_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	double sum = 0;

	(void)err;
	for (int i = 0; i < n->n_in; i++)
		sum += *(const double *)args->in[i];
	*(double *)args->out[0] = n->attr ? sum : sqrt(sum) / args->page->loss_scale;
	return 0;
}

const struct kernel sumsq_ref = REF_KERNEL(sumsq_run);
const struct kernel norm_ref = REF_KERNEL(norm_run);
