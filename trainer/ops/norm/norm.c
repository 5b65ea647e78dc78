/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: shape rules of sums of squares and of their norm. */
#include "trainer/ops/norm/norm.h"

#include "trainer/ops/norm/norm_host.h"
#include "trainer/ops/ops.h"

static int sumsq_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(1)), "");
}

static int norm_shape(struct graph *g, struct node *n)
{
	const bool exact = n->n_in > 0 && n->in[0]->dtype == DTYPE_I64;
	const struct norm_attr *a = n->attr;

	for (int i = 0; i < n->n_in; i++)
		if (graph_expect(g, n, (n->in[i]->dtype == DTYPE_I64) == exact &&
				 shape_count(&n->in[i]->shape) == (exact ? EXACT_WORDS : 1),
				 "sums of squares must be all f64 [1] or all exact"))
			return g->err.code;
	if (exact && a && a->sum)
		return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_I64, SHAPE(EXACT_WORDS)), "");
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(1)), "");
}

static int squares_shape(struct graph *g, struct node *n)
{
	const int64_t count = shape_count(&n->in[0]->shape);

	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE((count + SQUARES_BLOCK - 1) / SQUARES_BLOCK)), "");
}

static int exact_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, n->in[0]->dtype == DTYPE_F64, "terms must be f64"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_I64, SHAPE(EXACT_WORDS)), "");
}

const struct op op_squares = {
	.name = "squares",
	.id = OP_squares,
	.shape = squares_shape,
	.dtype = op_dtype_keep,
};

const struct op op_exact = {
	.name = "exact",
	.id = OP_exact,
	.shape = exact_shape,
	.dtype = op_dtype_keep,
};

const struct op op_sumsq = {
	.name = "sumsq",
	.id = OP_sumsq,
	.shape = sumsq_shape,
	.dtype = op_dtype_keep,
};

const struct op op_norm = {
	.name = "norm",
	.id = OP_norm,
	.shape = norm_shape,
	.dtype = op_dtype_keep,
};

/* ---- ref ----
 * Sums of squares and their square root. */

static void run_sumsq_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;

	*(double *)args->out[0] = ref_dot(args->in[0], args->in[0], shape_count(&n->in[0]->shape));
}

static void run_squares_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const int64_t count = shape_count(&n->in[0]->shape);
	const double *g = args->in[0];
	double *out = args->out[0];

	for (int64_t i = 0; i < count; i += SQUARES_BLOCK)
		out[i / SQUARES_BLOCK] = ref_dot(g + i, g + i, count - i < SQUARES_BLOCK ? count - i : SQUARES_BLOCK);
}

const struct kernel sumsq_ref = REF_KERNEL(run_sumsq_ref);
const struct kernel squares_ref = REF_KERNEL(run_squares_ref);
const struct kernel exact_ref = EXACT_KERNEL;
const struct kernel norm_ref = NORM_KERNEL;
