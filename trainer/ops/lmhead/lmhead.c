/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead.c: shape rule and gradients of the classifier with its loss. */
#include "trainer/ops/lmhead/lmhead.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/xent/xent.h"

struct tensor *lmhead_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *targets, bool keep_logits)
{
	struct tensor *result, *logits = NULL;

	if (graph_failed(g))
		return NULL;
	result = graph_tensor(g, &(struct tensor){ .name = "result",
						   .kind = TENSOR_RESULT,
						   .dtype = DTYPE_F64,
						   .shape = SHAPE(XENT_RESULTS),
						   .life = LIFE_STEP });
	if (keep_logits) {
		logits = graph_act(g, x->dtype, SHAPE(x->shape.dim[0], w->shape.dim[0]), "logits");
		if (logits)
			logits->keep = true;
	}
	if (!graph_node(g, &(struct node_spec){ .op = &op_lmhead,
						.name = "loss",
						NODE_IN(x, w, targets),
						NODE_OUT(result, NULL, NULL, logits, NULL) }))
		return NULL;
	g->loss = result;
	return result;
}

static int lmhead_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *w = n->in[1], *targets = n->in[2];

	if (graph_expect(g, n,
			 x->shape.ndim == 2 && w->shape.ndim == 2 && x->shape.dim[1] == w->shape.dim[1] &&
				 w->shape.dim[0] >= 1 && targets->dtype == DTYPE_I32 &&
				 shape_count(&targets->shape) == x->shape.dim[0],
			 "expected x [R,C], w [V,C] and targets i32 [R]") ||
	    graph_out(g, n, LMHEAD_RESULT, TENSOR_TYPE(DTYPE_F64, SHAPE(XENT_RESULTS)), ".result") ||
	    (n->out[LMHEAD_DX] && graph_out(g, n, LMHEAD_DX, TENSOR_TYPE(x->dtype, x->shape), "")) ||
	    (n->out[LMHEAD_DW] && graph_out(g, n, LMHEAD_DW, TENSOR_TYPE(w->dtype, w->shape), "")))
		return g->err.code;
	if (n->out[LMHEAD_LOGITS] &&
	    graph_out(g, n, LMHEAD_LOGITS, TENSOR_TYPE(x->dtype, SHAPE(x->shape.dim[0], w->shape.dim[0])), ""))
		return g->err.code;
	if (n->out[LMHEAD_LOSSES])
		graph_out(g, n, LMHEAD_LOSSES, TENSOR_TYPE(DTYPE_F64, SHAPE(x->shape.dim[0])), "");
	return g->err.code;
}

/* Adds the gradient outputs to the node itself. */
static int lmhead_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *w = n->in[1];

	if (n->out[LMHEAD_RESULT] != g->loss)
		return 0;
	n->phase = PHASE_BACKWARD;
	if (x->wants_grad) {
		n->out[LMHEAD_DX] = graph_act(g, x->dtype, x->shape, "%s.dx", n->name);
		if (n->out[LMHEAD_DX])
			n->out[LMHEAD_DX]->producer = n;
		graph_grad_add(g, x, n->out[LMHEAD_DX]);
	}
	if (w->wants_grad) {
		n->out[LMHEAD_DW] = graph_param_grad(g, w);
		if (n->out[LMHEAD_DW])
			n->out[LMHEAD_DW]->producer = n;
		graph_grad_add(g, w, n->out[LMHEAD_DW]);
	}
	return g->err.code;
}

static enum dtype_class lmhead_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	if (!is_out || index == LMHEAD_DX)
		return DTYPE_CLASS_LOW;
	return index == LMHEAD_RESULT || index == LMHEAD_LOSSES ? DTYPE_CLASS_KEEP : DTYPE_CLASS_MASTER;
}

static double lmhead_flops(const struct node *n)
{
	double product = 2 * (double)n->in[0]->shape.dim[0] * (double)shape_count(&n->in[1]->shape);

	return product * (1 + !!n->out[LMHEAD_DX] + !!n->out[LMHEAD_DW]);
}

const struct op op_lmhead = {
	.name = "lmhead",
	.id = OP_lmhead,
	.shape = lmhead_shape,
	.grad = lmhead_backward,
	.dtype = lmhead_dtype,
	.flops = lmhead_flops,
};
