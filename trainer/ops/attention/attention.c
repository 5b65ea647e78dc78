/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: shape rules and gradient of causal attention. */
#include "trainer/ops/attention/attention.h"

#include "trainer/ops/ops.h"

struct tensor *attention_add(struct graph *g, struct tensor *qkv, const struct attention_attr *attr, const char *name)
{
	struct attention_attr a = *attr;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	if (!g->training)
		a.dropout.p = 0;
	a.dropout.stream = rng_stream(name);
	a.dropout.per_sample = a.heads * a.seq * a.seq;
	n = graph_node(g,
		       &(struct node_spec){
			       .op = &op_attention, .name = name, NODE_IN(qkv), NODE_OUT(NULL, NULL), NODE_ATTR(a) });
	return n ? n->out[0] : NULL;
}

/* Channels per position; 0 if qkv does not divide as the attributes require. */
static int64_t count_qkv_channels(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;

	if (qkv->shape.ndim != 2 || a->heads < 1 || a->seq < 1 || qkv->shape.dim[1] % (3 * a->heads) ||
	    qkv->shape.dim[0] % a->seq)
		return 0;
	return qkv->shape.dim[1] / 3;
}

static int attention_shape(struct graph *g, struct node *n)
{
	const struct attention_attr *a = n->attr;
	const struct tensor *qkv = n->in[0];
	int64_t c = count_qkv_channels(n, qkv);

	if (graph_expect(g, n, c > 0, "qkv [R,3C] does not divide into heads and sequences") ||
	    graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], c)), ""))
		return g->err.code;
	return graph_out(g, n, 1, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], a->heads)), ".lse");
}

static int attention_grad_shape(struct graph *g, struct node *n)
{
	const struct attention_attr *a = n->attr;
	const struct tensor *dy = n->in[0], *qkv = n->in[1], *y = n->in[2], *lse = n->in[3];
	struct shape out = SHAPE(qkv->shape.dim[0], count_qkv_channels(n, qkv)),
		     rows = SHAPE(qkv->shape.dim[0], a->heads);

	if (graph_expect(g, n,
			 out.dim[1] > 0 && shape_equal(&dy->shape, &out) && shape_equal(&y->shape, &out) &&
				 shape_equal(&lse->shape, &rows),
			 "expected dy [R,C], qkv [R,3C], y [R,C] and lse [R,heads]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, qkv->shape), "");
}

static int attention_backward(struct graph *g, struct node *n)
{
	struct tensor *qkv = n->in[0], *dy = graph_grad_get(g, n->out[0]);
	struct attention_attr attr = *(const struct attention_attr *)n->attr;
	struct node *back;

	if (!dy || !qkv->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_attention_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, qkv, n->out[0], n->out[1]),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, qkv, back ? back->out[0] : NULL);
	return g->err.code;
}

static enum dtype_class attention_dtype(const struct node *n, bool is_out, int index)
{
	bool lse = n->op == &op_attention ? is_out && index == 1 : !is_out && index == 3;

	return lse ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

static void attention_dump(const struct node *n, struct buf *out)
{
	const struct attention_attr *a = n->attr;

	buf_addf(out, " heads=%lld seq=%lld", (long long)a->heads, (long long)a->seq);
	if (a->dropout.p > 0)
		buf_addf(out, " dropout=%g", a->dropout.p);
}

/* FLOPs of one product of each position with every other. */
static double count_full_product(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;

	return 2 * (double)qkv->shape.dim[0] * (double)qkv->shape.dim[1] / 3 * (double)a->seq;
}

static double attention_counted(const struct node *n)
{
	return 2 * count_full_product(n, n->in[0]);
}

static double attention_grad_counted(const struct node *n)
{
	return 4 * count_full_product(n, n->in[1]);
}

/* FLOPs of its lower triangle. */
static double count_causal_product(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;

	return count_full_product(n, qkv) * ((double)a->seq + 1) / (2 * (double)a->seq);
}

/* Two products: scores, and their product with the values. */
static double attention_flops(const struct node *n)
{
	return 2 * count_causal_product(n, n->in[0]);
}

/* Five products: scores (recomputed), dp, dq, dk and dv. */
static double attention_grad_flops(const struct node *n)
{
	return 5 * count_causal_product(n, n->in[1]);
}

const struct op op_attention = {
	.name = "attention",
	.id = OP_attention,
	.recompute = RECOMPUTE_CHEAP,
	.shape = attention_shape,
	.grad = attention_backward,
	.dtype = attention_dtype,
	.dump = attention_dump,
	.flops = attention_flops,
	.counted = attention_counted,
};

const struct op op_attention_grad = {
	.name = "attention_grad",
	.id = OP_attention_grad,
	.shape = attention_grad_shape,
	.dtype = attention_dtype,
	.dump = attention_dump,
	.flops = attention_grad_flops,
	.counted = attention_grad_counted,
};
