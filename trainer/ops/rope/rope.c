/* SPDX-License-Identifier: Apache-2.0 */
/* rope.c: shape rules and gradient of the rotation of queries and keys. */
#include "trainer/ops/rope/rope.h"

#include <math.h>

#include "trainer/ops/ops.h"

struct tensor *rope_add(struct graph *g, struct tensor *const operands[4], const struct rope_attr *attr,
			const char *name)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_rope,
					       .name = name,
					       NODE_IN(operands[0], operands[1], operands[2], operands[3]),
					       NODE_OUT(NULL),
					       .attr = attr,
					       .attr_bytes = sizeof(*attr) });
	return n ? n->out[0] : NULL;
}

static bool heads_fit(const struct rope_attr *a, const struct tensor *const t[3])
{
	const int64_t first = t[1] ? a->heads : a->heads + 2 * a->shared;

	for (int i = 0; i < 3; i++)
		if (t[i] && (t[i]->shape.ndim != 2 || t[i]->shape.dim[0] != t[0]->shape.dim[0] ||
			     t[i]->shape.dim[1] != (i ? a->shared : first) * a->d))
			return false;
	return !t[1] == !t[2] && a->seq > 0 && t[0]->shape.dim[0] % a->seq == 0 && a->rotary >= 0 &&
	       a->rotary <= a->d && a->rotary % 2 == 0 && a->rotary / 2 <= ROPE_PAIRS_MAX && a->heads % a->shared == 0;
}

static int rope_shape(struct graph *g, struct node *n)
{
	const struct rope_attr *a = n->attr;
	const struct tensor *t[3] = { n->in[0], n->in[1], n->in[2] }, *first = n->in[3];

	if (graph_expect(g, n, !first || (first->dtype == DTYPE_I32 && shape_count(&first->shape) == 1),
			 "the first position is not i32 [1]") ||
	    graph_expect(g, n, heads_fit(a, t), "query, key and value do not divide into heads and sequences"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(t[0]->dtype, SHAPE(t[0]->shape.dim[0], 3 * a->heads * a->d)), "");
}

/* Output 0 alone holds all three if output 1 is absent, which rope_backward decides. */
static int rope_grad_shape(struct graph *g, struct node *n)
{
	const struct rope_attr *a = n->attr;
	const struct tensor *t[3] = { n->out[0], n->out[1], n->out[2] }, *dqkv = n->in[0];

	return graph_expect(g, n,
			    t[0] && heads_fit(a, t) && dqkv->shape.ndim == 2 &&
				    dqkv->shape.dim[0] == t[0]->shape.dim[0] &&
				    dqkv->shape.dim[1] == 3 * a->heads * a->d,
			    "the gradients do not divide into heads and sequences");
}

/* Adds rope_grad, with an output for each operand. */
static int rope_backward(struct graph *g, struct node *n)
{
	static const char *const suffix[3] = { "q", "k", "v" };
	struct tensor *dqkv = graph_grad_get(g, n->out[0]), *d[3] = { NULL };
	bool wanted = false;

	for (int i = 0; i < 3; i++)
		wanted |= n->in[i] && n->in[i]->wants_grad;
	if (!dqkv || !wanted)
		return 0;
	for (int i = 0; i < 3; i++)
		if (n->in[i])
			d[i] = graph_act(g, n->in[i]->dtype, n->in[i]->shape, "%s.d%s", n->name, suffix[i]);
	if (graph_failed(g) || !graph_node(g, &(struct node_spec){ .op = &op_rope_grad,
								   .name = graph_printf(g, "%s.dx", n->name),
								   NODE_IN(dqkv),
								   NODE_OUT(d[0], d[1], d[2]),
								   .attr = n->attr,
								   .attr_bytes = sizeof(struct rope_attr) }))
		return g->err.code;
	for (int i = 0; i < 3; i++)
		if (d[i])
			graph_grad_add(g, n->in[i], d[i]);
	return g->err.code;
}

static void rope_dump(const struct node *n, struct buf *out)
{
	const struct rope_attr *a = n->attr;

	buf_addf(out, " heads=%lld/%lld rotary=%lld/%lld", (long long)a->heads, (long long)a->shared,
		 (long long)a->rotary, (long long)a->d);
}

const struct op op_rope = {
	.name = "rope",
	.id = OP_rope,
	.recompute = RECOMPUTE_CHEAP,
	.shape = rope_shape,
	.grad = rope_backward,
	.dump = rope_dump,
};

const struct op op_rope_grad = {
	.name = "rope_grad",
	.id = OP_rope_grad,
	.shape = rope_grad_shape,
	.dump = rope_dump,
};

/* ---- ref ----
 * Head by head. */

struct rope_ref {
	const struct rope_attr *a;
	const struct rope_copy *copy;
	const double *from; /* [n][d] */
	double *to;	    /* [times][d] */
	double sign;	    /* -1: rotates back */
	int64_t position;
};

static double sum_of_heads(const struct rope_ref *r, int64_t i)
{
	double sum = 0;

	for (int64_t k = 0; k < r->copy->n; k++)
		sum += r->from[k * r->a->d + i];
	return sum * r->copy->scale;
}

static void turn_head(const struct rope_ref *r)
{
	const int64_t d = r->a->d, half = r->copy->turns ? r->a->rotary / 2 : 0;

	for (int64_t k = 0; k < r->copy->times; k++) {
		for (int64_t i = 0; i < half; i++) {
			double angle = (double)r->position * r->a->frequency[i], x = sum_of_heads(r, i);
			double c = cos(angle) * r->a->factor, s = r->sign * sin(angle) * r->a->factor;
			double y = sum_of_heads(r, i + half);

			r->to[k * d + i] = x * c - y * s;
			r->to[k * d + i + half] = y * c + x * s;
		}
		for (int64_t i = 2 * half; i < d; i++)
			r->to[k * d + i] = sum_of_heads(r, i);
	}
}

/* Both directions, which differ in the copies and the sign of the angle. */
static void run_rope_copies(const struct node *n, const struct kernel_args *args, bool back)
{
	const struct rope_attr *a = n->attr;
	const int64_t first = !back && n->in[3] ? *(const int32_t *)args->in[3] : 0;
	struct rope_copy copy[3];

	rope_copies(a, back, back ? !n->out[1] : !n->in[1], copy);
	for (int i = 0; i < 3; i++) {
		const struct rope_copy *c = &copy[i];
		int64_t from = n->in[c->source]->shape.dim[1], to = n->out[c->target]->shape.dim[1];

		for (int64_t r = 0; r < n->in[0]->shape.dim[0]; r++)
			for (int64_t h = 0; h < c->count; h++)
				turn_head(&(struct rope_ref){ .a = a,
							      .copy = c,
							      .from = (const double *)args->in[c->source] + r * from +
								      c->from + h * c->n * a->d,
							      .to = (double *)args->out[c->target] + r * to + c->to +
								    h * c->times * a->d,
							      .sign = back ? -1 : 1,
							      .position = first + r % a->seq });
	}
}

static void run_rope_ref(void *state, const struct kernel_args *args)
{
	run_rope_copies(state, args, false);
}

static void run_rope_grad_ref(void *state, const struct kernel_args *args)
{
	run_rope_copies(state, args, true);
}

const struct kernel rope_ref = REF_KERNEL(run_rope_ref);
const struct kernel rope_grad_ref = REF_KERNEL(run_rope_grad_ref);
