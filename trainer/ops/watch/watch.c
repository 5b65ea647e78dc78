/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c: see watch.h. The outputs are results: the host reads them after a watched step. */
#include "trainer/ops/watch/watch.h"

#include <math.h>

#include "trainer/ops/ops.h"

struct tensor *watch_add(struct graph *g, struct tensor *x, struct tensor *before, const char *name)
{
	const struct tensor like = { .name = name,
				     .kind = TENSOR_RESULT,
				     .dtype = DTYPE_F64,
				     .shape = SHAPE(WATCH_VALUES),
				     .life = LIFE_STEP };
	struct tensor *out = name ? graph_tensor(g, &like) : NULL;

	if (!out ||
	    !graph_node(g, &(struct node_spec){ .op = &op_watch, .name = name, NODE_IN(x, before), NODE_OUT(out) }))
		return NULL;
	return out;
}

struct tensor *watch_hold_add(struct graph *g, struct tensor *x)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_watch_hold,
					       .name = graph_printf(g, "%s.held", x->name),
					       NODE_IN(x),
					       NODE_OUT(NULL) });
	return n ? n->out[0] : NULL;
}

static int watch_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *before = n->in[1];

	if (graph_expect(g, n, !before || (shape_equal(&x->shape, &before->shape) && x->dtype == before->dtype),
			 "x and before differ in type or shape"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(WATCH_VALUES)), "");
}

static int watch_hold_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

const struct op op_watch = {
	.name = "watch",
	.id = OP_watch,
	.recompute = RECOMPUTE_NEVER,
	.watches = true,
	.shape = watch_shape,
	.dtype = op_dtype_keep,
};

const struct op op_watch_hold = {
	.name = "watch_hold",
	.id = OP_watch_hold,
	.recompute = RECOMPUTE_NEVER,
	.watches = true,
	.shape = watch_hold_shape,
	.dtype = op_dtype_keep,
};

/* ---- ref ----
 * Statistics of a tensor, value by value. */

static void count_value(double *out, double v)
{
	const double magnitude = fabs(v);

	if (!isfinite(v)) {
		out[WATCH_NONFINITE]++;
		return;
	}
	out[WATCH_SUMSQ] += v * v;
	out[WATCH_LARGEST] = fmax(out[WATCH_LARGEST], magnitude);
	if (v == 0)
		out[WATCH_ZEROS]++;
	else
		out[WATCH_BUCKET + watch_bucket(watch_exponent(v))]++;
}

static void run_watch_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[0], *before = args->in[1];
	double *out = args->out[0];

	if (!args->page->watch)
		return;
	memset(out, 0, WATCH_VALUES * sizeof(*out));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++)
		count_value(out, before ? x[i] - before[i] : x[i]);
}

static void run_watch_hold_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;

	if (args->page->watch)
		memcpy(args->out[0], args->in[0], tensor_bytes(n->in[0]));
}

const struct kernel watch_ref = REF_KERNEL(run_watch_ref);
const struct kernel watch_hold_ref = REF_KERNEL(run_watch_hold_ref);
