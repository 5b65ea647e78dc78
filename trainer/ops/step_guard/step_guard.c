/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard.c: one node per training graph, between the gradients' norm and the optimiser. */
#include "trainer/ops/step_guard/step_guard.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard_math.h"

struct tensor *step_guard_add(struct graph *g, const struct step_guard_in *in, const struct step_guard_attr *attr)
{
	struct tensor like = { .name = STEP_GUARD_STATE_NAME,
			       .kind = TENSOR_MOMENT,
			       .dtype = DTYPE_F64,
			       .shape = SHAPE(STEP_GUARD_STATE_VALUES),
			       .life = LIFE_PERSISTENT };
	struct tensor *state = graph_tensor(g, &like);
	struct node *n = graph_node(g, &(struct node_spec){ .op = &op_step_guard,
							    .name = "optimizer.step",
							    NODE_IN(in->norm, in->losses, state, in->votes),
							    NODE_OUT(NULL, state),
							    .attr = attr,
							    .attr_bytes = sizeof(*attr) });

	return n ? n->out[0] : NULL;
}

static int guard_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n,
			 shape_count(&n->in[0]->shape) == 1 && n->out[1] == n->in[2] &&
				 shape_count(&n->in[2]->shape) == STEP_GUARD_STATE_VALUES,
			 "expected one norm and the optimiser state"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES)), "");
}

static int guard_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 1 ? 2 : -1;
}

static void guard_dump(const struct node *n, struct buf *out)
{
	const struct step_guard_attr *a = n->attr;

	if (a->max_norm > 0)
		buf_addf(out, " max_norm=%g", a->max_norm);
	if (a->scaling)
		buf_adds(out, " scaling");
}

const struct op op_step_guard = {
	.name = "step_guard",
	.id = OP_step_guard,
	.shape = guard_shape,
	.dtype = op_dtype_keep,
	.inplace = guard_inplace,
	.dump = guard_dump,
};

/* ---- ref ----
 * The decision of step_guard_math.h. */

static void run_guard_ref(void *state, const struct kernel_args *args)
{
	step_guard_decide(state, args);
}

const struct kernel step_guard_ref = REF_KERNEL(run_guard_ref);
