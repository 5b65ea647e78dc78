/* SPDX-License-Identifier: Apache-2.0 */
/* ema.c: see ema.h. */
#include "trainer/ops/ema/ema.h"

#include "trainer/ops/ops.h"

struct node *ema_add(struct graph *g, struct tensor *x, struct tensor *step, const struct ema_attr *attr)
{
	struct tensor *ema = op_moment(g, x, "ema");

	return graph_node(g, &(struct node_spec){ .op = &op_ema,
						  .name = ema ? ema->name : NULL,
						  NODE_IN(x, ema, step),
						  NODE_OUT(ema),
						  .attr = attr,
						  .attr_bytes = sizeof(*attr) });
}

static int ema_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, shape_equal(&n->in[0]->shape, &n->in[1]->shape) && n->out[0] == n->in[1],
			    "value and average differ in shape");
}

static int ema_inplace(const struct node *n, int out)
{
	(void)n;
	(void)out;
	return 1;
}

static void ema_dump(const struct node *n, struct buf *out)
{
	const struct ema_attr *a = n->attr;

	buf_addf(out, " decay=%g", a->decay);
	if (a->every > 1)
		buf_addf(out, " every=%lld", (long long)a->every);
}

const struct op op_ema = {
	.name = "ema",
	.id = OP_ema,
	.shape = ema_shape,
	.dtype = op_dtype_keep,
	.inplace = ema_inplace,
	.dump = ema_dump,
};

/* ---- ref ----
 * One update of an average, elementwise. */

static void run_ema_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *ema = args->out[0], keep = ema_keep(n->attr, args->in[2], args->page->epoch_step);

	for (int64_t i = 0; keep < 1 && i < shape_count(&n->in[0]->shape); i++)
		ema[i] = keep > 0 ? keep * ema[i] + (1 - keep) * x[i] : x[i];
}

const struct kernel ema_ref = REF_KERNEL(run_ema_ref);
