/* SPDX-License-Identifier: Apache-2.0 */
/* places.c: shape rule of the places of tokens, and its kernel on ref. */
#include "trainer/ops/places/places.h"

#include "trainer/ops/ops.h"

struct places_tensors places_add(struct graph *g, struct tensor *marked, const char *name)
{
	struct node *n = graph_failed(g) ? NULL
					 : graph_node(g, &(struct node_spec){ .op = &op_places,
									      .name = name,
									      NODE_IN(marked),
									      NODE_OUT(NULL, NULL) });

	return n ? (struct places_tensors){ n->out[0], n->out[1] } : (struct places_tensors){ NULL, NULL };
}

static int places_shape(struct graph *g, struct node *n)
{
	const struct tensor *marked = n->in[0];

	if (graph_expect(g, n, marked->shape.ndim == 2 && marked->dtype == DTYPE_I32, "expected marked i32 [N,T]") ||
	    graph_out(g, n, 0, TENSOR_TYPE(DTYPE_I32, marked->shape), ".tokens"))
		return g->err.code;
	return graph_out(g, n, 1, TENSOR_TYPE(DTYPE_I32, SHAPE(shape_count(&marked->shape))), "");
}

const struct op op_places = {
	.name = "places",
	.id = OP_places,
	.recompute = RECOMPUTE_CHEAP,
	.dtype = op_dtype_keep,
	.shape = places_shape,
};

/* ---- ref ---- */

static void run_places_ref(void *state, const struct kernel_args *args)
{
	places_run(state, args);
}

const struct kernel places_ref = REF_KERNEL(run_places_ref);
