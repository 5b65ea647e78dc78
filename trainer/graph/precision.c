/* SPDX-License-Identifier: Apache-2.0 */
/* precision.c: maps the type classes that ops request (low, master) to the types of this run. A tensor that is needed
 * in another type is cast once, before its first use in that type, and later uses share the cast. */
#include "trainer/graph/pass.h"

#define DTYPES (DTYPE_U8 + 1)

/* The casts inserted so far: [tensor id][type]. Outputs of casts are never cast again. */
struct casts {
	const struct op *op;
	struct tensor *(*of)[DTYPES];
	int n;
};

static enum dtype pick_operand_dtype(const struct precision *p, const struct node *n, bool is_out, int index,
				     enum dtype now)
{
	enum dtype_class class = n->op->dtype ? n->op->dtype(n, is_out, index) : DTYPE_CLASS_LOW;

	if (!dtype_is_float(now) || class == DTYPE_CLASS_KEEP)
		return now;
	return class == DTYPE_CLASS_LOW ? p->low : p->master;
}

static bool is_master_kind(const struct tensor *t)
{
	return t->kind == TENSOR_INPUT || t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT ||
	       t->kind == TENSOR_MOMENT || t->kind == TENSOR_GRAD;
}

/* Parameters that never change can be stored without loss in the type in which they are read. */
static void lower_params(struct graph *g, const struct precision *p)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];

		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] && n->in[k]->kind == TENSOR_PARAM && n->in[k]->frozen &&
			    pick_operand_dtype(p, n, false, k, n->in[k]->dtype) == p->low &&
			    n->in[k]->dtype == p->master)
				n->in[k]->dtype = p->low;
	}
}

static void set_types(struct graph *g, const struct precision *p)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (is_master_kind(g->tensors[i]) && dtype_is_float(g->tensors[i]->dtype))
			g->tensors[i]->dtype = p->master;
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];

		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] && n->out[k]->producer == n && !is_master_kind(n->out[k]))
				n->out[k]->dtype = pick_operand_dtype(p, n, true, k, n->out[k]->dtype);
	}
}

struct tensor *pass_cast_before(struct graph *g, const struct op *cast, struct tensor *t, enum dtype to,
				const struct node *user)
{
	struct tensor *out = graph_act(g, to, t->shape, "%s.%s", t->name, dtype_name(to));
	struct node *n;

	if (!out)
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = cast, .name = out->name, NODE_IN(t), NODE_OUT(out) });
	if (!n)
		return NULL;
	n->phase = user->phase;
	n->block = user->block;
	n->part = user->part;
	graph_move(g, n->id, user->id);
	return out;
}

static void cast_operands(struct graph *g, const struct precision *p, struct casts *casts, struct node *n)
{
	for (int k = 0; k < n->n_in && !graph_failed(g); k++) {
		struct tensor *t = n->in[k];
		enum dtype want = t ? pick_operand_dtype(p, n, false, k, t->dtype) : DTYPE_F64;

		if (!t || t->dtype == want || t->id >= casts->n)
			continue;
		if (!casts->of[t->id][want])
			casts->of[t->id][want] = pass_cast_before(g, casts->op, t, want, n);
		n->in[k] = casts->of[t->id][want];
	}
}

int pass_precision(struct graph *g, const struct precision *p, const struct op *cast, struct err *err)
{
	struct casts casts = { .op = cast, .n = g->n_tensors };

	casts.of = graph_array(g, casts.n, sizeof(*casts.of));
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	set_types(g, p);
	if (g->low_frozen)
		lower_params(g, p);
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];

		cast_operands(g, p, &casts, n);
		i = n->id; /* casts were inserted before n */
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
