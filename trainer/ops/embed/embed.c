/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c: shape rules and gradients of the embedding. */
#include "trainer/ops/embed/embed.h"

#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *embed_add(struct graph *g, struct tensor *tokens, struct tensor *wte, struct tensor *wpe, double scale)
{
	struct embed_attr attr;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	attr = (struct embed_attr){ wte->shape.dim[0], wpe ? wpe->shape.dim[0] : 0, scale };
	n = graph_node(g, &(struct node_spec){ .op = &op_embed,
					       .name = graph_stem(g, wte->name),
					       NODE_IN(tokens, wte, wpe),
					       NODE_OUT(NULL),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

static bool is_2d_table(const struct tensor *t)
{
	return t->shape.ndim == 2;
}

static int embed_shape(struct graph *g, struct node *n)
{
	const struct tensor *tokens = n->in[0], *wte = n->in[1], *wpe = n->in[2];

	if (graph_expect(g, n,
			 is_2d_table(tokens) && tokens->dtype == DTYPE_I32 && is_2d_table(wte) &&
				 (!wpe || (is_2d_table(wpe) && wte->shape.dim[1] == wpe->shape.dim[1] &&
					   wpe->shape.dim[0] >= tokens->shape.dim[1])),
			 "expected tokens i32 [N,T], wte [V,C] and wpe [P,C] with P >= T"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(wte->dtype, SHAPE(shape_count(&tokens->shape), wte->shape.dim[1])), "");
}

static int embed_grad_shape(struct graph *g, struct node *n)
{
	const struct tensor *dx = n->in[0], *tokens = n->in[1], *more = n->in[2];
	const struct embed_attr *a = n->attr;
	struct shape wte;

	if (graph_expect(g, n,
			 is_2d_table(dx) && is_2d_table(tokens) && tokens->dtype == DTYPE_I32 &&
				 dx->shape.dim[0] == shape_count(&tokens->shape) &&
				 (!a->positions || a->positions >= tokens->shape.dim[1]),
			 "expected dx [N*T,C] and tokens i32 [N,T] with T <= positions"))
		return g->err.code;
	wte = SHAPE(a->vocab, dx->shape.dim[1]);
	if (graph_expect(g, n, !more || shape_equal(&more->shape, &wte), "`more` does not have the shape of wte") ||
	    graph_out(g, n, 0, TENSOR_TYPE(dx->dtype, wte), ".wte"))
		return g->err.code;
	if (!a->positions)
		return 0;
	return graph_out(g, n, 1, TENSOR_TYPE(dx->dtype, SHAPE(a->positions, dx->shape.dim[1])), ".wpe");
}

/* Adds to the gradient that a tied classifier already contributed, which saves a pass over the table. */
static int embed_backward(struct graph *g, struct node *n)
{
	struct tensor *wte = n->in[1], *wpe = n->in[2], *dx = graph_grad_get(g, n->out[0]), *more = wte->grad;
	struct embed_attr attr = *(const struct embed_attr *)n->attr;
	struct tensor *dwte, *dwpe;

	if (!dx || !(wte->wants_grad || (wpe && wpe->wants_grad)))
		return 0;
	if (more && graph_rename(g, more, graph_printf(g, "%s.grad.tied", wte->name)) != 0)
		return g->err.code;
	dwte = graph_param_grad(g, wte);
	dwpe = wpe ? graph_param_grad(g, wpe) : NULL;
	graph_node(g, &(struct node_spec){ .op = &op_embed_grad,
					   .name = graph_printf(g, "%s.dw", n->name),
					   NODE_IN(dx, n->in[0], more),
					   NODE_OUT(dwte, dwpe),
					   NODE_ATTR(attr) });
	if (graph_failed(g))
		return g->err.code;
	wte->grad = NULL;
	graph_grad_add(g, wte, dwte);
	if (wpe)
		graph_grad_add(g, wpe, dwpe);
	return g->err.code;
}

/* Rows are read from the tables in their stored type, so no 16-bit copy of a table is needed. */
static enum dtype_class embed_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	(void)index;
	return is_out ? DTYPE_CLASS_LOW : DTYPE_CLASS_KEEP;
}

static enum dtype_class embed_grad_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	return is_out || index == 2 ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

static int embed_grad_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 2 : -1;
}

static double count_operand_bytes(const struct tensor *t)
{
	return t ? (double)tensor_bytes(t) : 0;
}

/* Only the rows of the tokens are read from wte. */
static double embed_touched(const struct node *n)
{
	const double rows = count_operand_bytes(n->out[0]) / (double)dtype_bytes(n->out[0]->dtype);

	return count_operand_bytes(n->in[0]) + rows * (double)dtype_bytes(n->in[1]->dtype) +
	       count_operand_bytes(n->in[2]) + count_operand_bytes(n->out[0]);
}

/* With a tied classifier, rows are updated in place; else the whole table is written. */
static double embed_grad_touched(const struct node *n)
{
	const double rows = count_operand_bytes(n->in[0]) / (double)dtype_bytes(n->in[0]->dtype);
	const double table =
		n->in[2] ? 2 * rows * (double)dtype_bytes(n->in[2]->dtype) : count_operand_bytes(n->out[0]);

	return count_operand_bytes(n->in[0]) + count_operand_bytes(n->in[1]) + table + count_operand_bytes(n->out[1]);
}

static void embed_grad_dump(const struct node *n, struct buf *out)
{
	const struct embed_attr *a = n->attr;

	buf_addf(out, " vocab=%lld positions=%lld", (long long)a->vocab, (long long)a->positions);
	if (a->scale != 1)
		buf_addf(out, " scale=%g", a->scale);
}

const struct op op_embed = {
	.name = "embed",
	.id = OP_embed,
	.shape = embed_shape,
	.grad = embed_backward,
	.dtype = embed_dtype,
	.touched = embed_touched,
};

const struct op op_embed_grad = {
	.name = "embed_grad",
	.id = OP_embed_grad,
	.shape = embed_grad_shape,
	.dtype = embed_grad_dtype,
	.inplace = embed_grad_inplace,
	.dump = embed_grad_dump,
	.touched = embed_grad_touched,
};

/* ---- ref ----
 * The embedding, row by row. */

static void run_embed_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	int64_t rows = n->out[0]->shape.dim[0], c = n->out[0]->shape.dim[1], t = n->in[0]->shape.dim[1];
	const int32_t *tokens = args->in[0];
	const struct embed_attr *a = n->attr;
	const double *wte = args->in[1], *wpe = args->in[2];
	double *x = args->out[0];

	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < c; i++)
			x[r * c + i] = a->scale * wte[tokens[r] * c + i] + (wpe ? wpe[r % t * c + i] : 0);
}

static void run_embed_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], t = n->in[1]->shape.dim[1];
	const double *dx = args->in[0];
	const int32_t *tokens = args->in[1];
	const struct embed_attr *a = n->attr;
	double *dwte = args->out[0], *dwpe = args->out[1];

	if (!args->in[2])
		memset(dwte, 0, tensor_bytes(n->out[0]));
	else if (args->in[2] != args->out[0])
		memcpy(dwte, args->in[2], tensor_bytes(n->out[0]));
	if (dwpe)
		memset(dwpe, 0, tensor_bytes(n->out[1]));
	for (int64_t r = 0; r < rows; r++) {
		ref_axpy(dwte + tokens[r] * c, a->scale, dx + r * c, c);
		if (dwpe)
			ref_axpy(dwpe + r % t * c, 1, dx + r * c, c);
	}
}

const struct kernel embed_ref = REF_KERNEL(run_embed_ref);
const struct kernel embed_grad_ref = REF_KERNEL(run_embed_grad_ref);
