/* SPDX-License-Identifier: Apache-2.0 */
/* recompute.c: selects the activations that the backward pass recomputes instead of keeping. Models mark their blocks
 * (node->block). Tensors that cross from block to block are kept. What a block's backward nodes read is recomputed from
 * these by clones, placed in front of the first node that needs them. A clone has the kernel, the attributes (so the
 * random draws) and the operands of its original, so it produces the same bits. Ops marked RECOMPUTE_NEVER are kept, so
 * running statistics update once and sums over ranks are communicated once. */

#include "trainer/graph/pass.h"

struct recomputer {
	struct graph *g;
	enum recompute mode;
	int last_block;	       /* kept: its activations would be recomputed right after being dropped */
	int n_tensors;	       /* tensors of the original graph */
	bool *crosses;	       /* [id]: true if a forward node of another block reads it */
	struct tensor **again; /* [id]: output of its clone; NULL: not cloned yet */
	int at; /* position of the node whose inputs are recomputed: clones are inserted in front of it */
};

static bool has_lasting_output(const struct node *n)
{
	for (int k = 0; k < n->n_out; k++) {
		const struct tensor *t = n->out[k];

		if (t && (t->producer != n || t->base || t->keep || t->kind != TENSOR_ACT || t->life != LIFE_MICRO))
			return true;
	}
	return false;
}

static bool may_repeat(const struct recomputer *r, const struct node *n)
{
	if (n->phase != PHASE_FORWARD || n->block == 0 || n->block == r->last_block ||
	    n->op->recompute == RECOMPUTE_NEVER || has_lasting_output(n))
		return false;
	return r->mode == RECOMPUTE_FULL || n->op->recompute == RECOMPUTE_CHEAP;
}

static bool is_dropped(const struct recomputer *r, const struct tensor *t)
{
	return t->id < r->n_tensors && t->producer && !r->crosses[t->id] && may_repeat(r, t->producer);
}

/* Tensors that are read outside of their block, or in no block, are kept. */
static void find_block_crossings(struct recomputer *r)
{
	for (int i = 0; i < r->g->n_nodes; i++) {
		const struct node *n = r->g->nodes[i];

		for (int k = 0; n->phase == PHASE_FORWARD && k < n->n_in; k++)
			if (n->in[k] && n->in[k]->producer && n->in[k]->producer->block != n->block)
				r->crosses[n->in[k]->id] = true;
		r->last_block = n->block > r->last_block ? n->block : r->last_block;
	}
}

static void clone_forward_node(struct recomputer *r, struct node *n);

static struct tensor *get_recomputed(struct recomputer *r, struct tensor *t)
{
	if (!t || !is_dropped(r, t))
		return t;
	if (!r->again[t->id])
		clone_forward_node(r, t->producer);
	return r->again[t->id];
}

static void clone_forward_node(struct recomputer *r, struct node *n)
{
	struct tensor **in = graph_array(r->g, n->n_in, sizeof(*in));
	struct node *clone;

	for (int k = 0; k < n->n_in; k++)
		in[k] = get_recomputed(r, n->in[k]);
	clone = graph_clone(r->g, n, in, "again");
	if (!clone)
		return;
	clone->phase = PHASE_BACKWARD;
	graph_move(r->g, clone->id, r->at++);
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			r->again[n->out[k]->id] = clone->out[k];
}

static void recompute_inputs(struct recomputer *r, struct node *n)
{
	for (int k = 0; k < n->n_in && !graph_failed(r->g); k++) {
		r->at = n->id;
		n->in[k] = get_recomputed(r, n->in[k]);
	}
}

int pass_recompute(struct graph *g, enum recompute mode, struct err *err)
{
	struct recomputer r = { .g = g, .mode = mode, .n_tensors = g->n_tensors };

	if (!graph_failed(g) && mode != RECOMPUTE_NONE) {
		r.crosses = graph_array(g, g->n_tensors, sizeof(*r.crosses));
		r.again = graph_array(g, g->n_tensors, sizeof(struct tensor *));
		find_block_crossings(&r);
		for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
			struct node *n = g->nodes[i];

			if (n->phase == PHASE_BACKWARD)
				recompute_inputs(&r, n);
			i = n->id; /* clones were inserted before n */
		}
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
