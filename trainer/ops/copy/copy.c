/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c: see copy.h. */
#include "trainer/ops/copy/copy.h"

#include "trainer/ops/copy/copy_host.h"
#include "trainer/ops/ops.h"

struct node *copy_add(struct graph *g, struct tensor *x, struct tensor *y, const struct copy_attr *attr)
{
	if (!graph_failed(g) && !y)
		y = graph_act(g, x->dtype, x->shape, "%s.copy", x->name);
	if (graph_failed(g))
		return NULL;
	return graph_node(g, &(struct node_spec){ .op = &op_copy,
						  .name = graph_printf(g, "%s.copy", x->name),
						  NODE_IN(x),
						  NODE_OUT(y),
						  .attr = attr,
						  .attr_bytes = sizeof(*attr) });
}

static int copy_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];

	return graph_expect(g, n, y && x->dtype == y->dtype && shape_equal(&x->shape, &y->shape),
			    "source and copy differ in type or shape");
}

const struct op op_copy = {
	.name = "copy",
	.id = OP_copy,
	.recompute = RECOMPUTE_NEVER,
	.shape = copy_shape,
	.dtype = op_dtype_keep,
};

/* ---- ref ----
 * The copy of copy_host.h. */

const struct kernel copy_ref = COPY_KERNEL;
