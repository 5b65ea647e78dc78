/* SPDX-License-Identifier: Apache-2.0 */
/* cast_table.c: gives operands the types of a table of casts. Nodes are visited in program order, so the types of a
 * node's inputs are known before its own. */
#include "trainer/graph/pass.h"

#define DTYPES (DTYPE_U8 + 1)

struct table_casting {
	struct graph *g;
	const struct cast_table *table;
	const struct op *cast;
	int n_tensors;			   /* before any cast was inserted */
	const struct tensor **gradient_of; /* by tensor id: the tensor whose gradient, or part of it, this is */
	struct tensor *(*casts)[DTYPES];   /* by tensor id and type */
	bool *typed;			   /* by tensor id: a node's output that has its type. Those that an op
					    * absorbed never get one */
};

/* The terms of a sum of gradients are gradients of the same tensor. Of tensors that share a gradient, as those that an
 * addition joins, the last one counts. */
static void find_gradients(struct table_casting *c)
{
	struct graph *g = c->g;

	for (int i = 0; i < c->n_tensors; i++)
		if (g->tensors[i]->grad)
			c->gradient_of[g->tensors[i]->grad->id] = g->tensors[i];
	for (int i = g->n_nodes - 1; i >= 0; i--) {
		const struct node *n = g->nodes[i];

		for (int k = 0; n->op == g->sum && n->phase == PHASE_BACKWARD && k < n->n_in; k++)
			if (!c->gradient_of[n->in[k]->id])
				c->gradient_of[n->in[k]->id] = c->gradient_of[n->out[0]->id];
	}
}

static bool is_model_weight(const struct tensor *t)
{
	return t->kind == TENSOR_PARAM && !t->of_norm;
}

static bool has_wide_type(const struct tensor *t)
{
	return t && dtype_is_float(t->dtype) && t->dtype != DTYPE_F64;
}

static enum dtype_class class_of_operand(const struct node *n, bool is_out, int index)
{
	return n->op->dtype ? n->op->dtype(n, is_out, index) : DTYPE_CLASS_LOW;
}

/* The widest type of a node's activations and weights. */
static enum dtype widest_input(const struct table_casting *c, const struct node *n)
{
	enum dtype widest = DTYPE_F16;
	bool any = false;

	for (int k = 0; k < n->n_in; k++) {
		const struct tensor *t = n->in[k];
		enum dtype_class class = has_wide_type(t) ? class_of_operand(n, false, k) : DTYPE_CLASS_MASTER;

		if (t && is_model_weight(t) && class != DTYPE_CLASS_MASTER)
			widest = c->table->weight == DTYPE_F32 ? DTYPE_F32 : widest;
		else if (class != DTYPE_CLASS_LOW)
			continue;
		else if (t->dtype == DTYPE_F32)
			widest = DTYPE_F32;
		any = true;
	}
	return any ? widest : DTYPE_F32;
}

/* The type of the node's activations, by its line of the table. */
static enum dtype pick_node_dtype(const struct table_casting *c, const struct node *n)
{
	const enum cast_rule rule = c->table->rule[n->op->id];

	if (rule != CAST_WIDEST)
		return rule == CAST_F32 ? DTYPE_F32 : DTYPE_F16;
	for (int k = 0; k < n->n_out; k++) {
		const struct tensor *t = n->out[k];
		const struct tensor *of =
			t && t->kind == TENSOR_ACT && t->id < c->n_tensors ? c->gradient_of[t->id] : NULL;

		if (of && c->typed[of->id] && has_wide_type(of))
			return of->dtype;
	}
	return widest_input(c, n);
}

static enum dtype pick_stored_dtype(const struct table_casting *c, const struct tensor *t)
{
	const bool of_norm = t->kind == TENSOR_STAT || t->of_norm;

	return (enum dtype)(of_norm ? c->table->norm :
			    c->table->master != CAST_STORES_NONE ? c->table->master : c->table->weight);
}

static bool is_norm_gradient(const struct table_casting *c, const struct tensor *t)
{
	const struct tensor *of = t->id < c->n_tensors ? c->gradient_of[t->id] : NULL;

	return of && of->of_norm;
}

static enum dtype pick_grad_dtype(const struct table_casting *c, const struct tensor *t)
{
	return (enum dtype)(is_norm_gradient(c, t) ? c->table->norm_grad : c->table->weight_grad);
}

/* Parameters and statistics of norms are read as they are stored. */
static enum dtype pick_table_dtype(const struct table_casting *c, const struct node *n, bool is_out, int index)
{
	const struct tensor *t = is_out ? n->out[index] : n->in[index];
	const enum cast_rule rule = c->table->rule[n->op->id];
	const enum dtype_class class = class_of_operand(n, is_out, index);

	if (!has_wide_type(t) || rule == CAST_KEEPS || t->kind == TENSOR_STAT || t->kind == TENSOR_GRAD ||
	    (t->kind == TENSOR_PARAM && t->of_norm))
		return t->dtype;
	if (is_model_weight(t) || class == DTYPE_CLASS_LOW || rule == CAST_ALL16)
		return pick_node_dtype(c, n);
	return class == DTYPE_CLASS_MASTER ? DTYPE_F32 : t->dtype;
}

static void set_stored_types(struct table_casting *c)
{
	for (int i = 0; i < c->n_tensors; i++) {
		struct tensor *t = c->g->tensors[i];

		if (!dtype_is_float(t->dtype) || t->dtype == DTYPE_F64)
			continue;
		if (t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT)
			t->dtype = pick_stored_dtype(c, t);
		else if (t->kind == TENSOR_GRAD)
			t->dtype = pick_grad_dtype(c, t);
		else if (t->kind == TENSOR_INPUT || t->kind == TENSOR_MOMENT)
			t->dtype = DTYPE_F32;
	}
}

/* Copies of masters keep their memory between steps: they are the weights that the model reads. */
static void mark_copy(const struct table_casting *c, struct tensor *t, struct tensor *copy)
{
	if (!copy || !is_model_weight(t) || c->table->master == CAST_STORES_NONE)
		return;
	t->master = true;
	copy->copy = true;
	copy->life = LIFE_ACROSS;
}

static void cast_table_inputs(struct table_casting *c, struct node *n)
{
	for (int k = 0; k < n->n_in && !graph_failed(c->g); k++) {
		struct tensor *t = n->in[k];
		enum dtype want = t ? pick_table_dtype(c, n, false, k) : DTYPE_F64;

		if (!t || t->dtype == want || t->id >= c->n_tensors)
			continue;
		if (!c->casts[t->id][want]) {
			c->casts[t->id][want] = pass_cast_before(c->g, c->cast, t, want, n);
			mark_copy(c, t, c->casts[t->id][want]);
		}
		n->in[k] = c->casts[t->id][want];
	}
}

/* Makes n write f16, and inserts a cast that makes the gradient of it. */
static void widen_gradient(struct table_casting *c, struct node *n, int k)
{
	struct tensor *grad = n->out[k], *narrow = graph_act(c->g, DTYPE_F16, grad->shape, "%s.f16", grad->name);
	struct node *cast;

	if (!narrow)
		return;
	n->out[k] = narrow;
	narrow->producer = n;
	grad->producer = NULL;
	cast = graph_node(c->g, &(struct node_spec){ .op = c->cast,
						     .name = grad->name,
						     NODE_IN(narrow),
						     NODE_OUT(grad) });
	if (!cast)
		return;
	cast->phase = n->phase;
	cast->block = n->block;
	cast->part = n->part;
	graph_move(c->g, cast->id, n->id + 1);
}

static void set_table_outputs(struct table_casting *c, struct node *n)
{
	const enum cast_rule rule = c->table->rule[n->op->id];

	for (int k = 0; k < n->n_out && !graph_failed(c->g); k++) {
		struct tensor *t = n->out[k];

		if (!t || t->producer != n)
			continue;
		if (t->id < c->n_tensors)
			c->typed[t->id] = true;
		if (t->kind != TENSOR_GRAD)
			t->dtype = pick_table_dtype(c, n, true, k);
		else if ((rule == CAST_F16 || rule == CAST_ALL16) && t->dtype == DTYPE_F32 && !is_norm_gradient(c, t))
			widen_gradient(c, n, k);
	}
}

int pass_cast_table(struct graph *g, const struct cast_table *table, const struct op *cast, struct err *err)
{
	struct table_casting c = { .g = g, .table = table, .cast = cast, .n_tensors = g->n_tensors };

	c.gradient_of = graph_array(g, g->n_tensors, sizeof(*c.gradient_of));
	c.casts = graph_array(g, g->n_tensors, sizeof(*c.casts));
	c.typed = graph_array(g, g->n_tensors, sizeof(*c.typed));
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	find_gradients(&c);
	set_stored_types(&c);
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];

		cast_table_inputs(&c, n);
		if (n->op != cast)
			set_table_outputs(&c, n);
		i = n->id; /* casts were inserted before n */
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
