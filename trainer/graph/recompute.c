/* recompute.c: which activations are computed again in the backward pass instead of being kept. Models say where their
 * blocks begin (node->block); what crosses from block to block is kept, and what a block's backward nodes read is made
 * again from it, by clones in front of the first node that needs them. A clone has the kernel, the attributes (so the
 * random draws) and the operands of its original: it gives the same bits. What an op marks RECOMPUTE_NEVER is kept, so
 * running statistics move once and sums over ranks travel once. */
#include <stdlib.h>

#include "trainer/graph/pass.h"

struct remaker {
	struct graph *g;
	enum recompute mode;
	int last_block;	      /* its activations would be made again right after they were dropped: they stay */
	int n_tensors;	      /* of the original graph */
	bool *crosses;	      /* [id]: a forward node of another block reads it */
	struct tensor **again; /* [id]: the clone's output; NULL none yet */
	int at;		      /* position of the node that is served: clones go in front of it */
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

static bool may_repeat(const struct remaker *r, const struct node *n)
{
	if (n->phase != PHASE_FORWARD || n->block == 0 || n->block == r->last_block ||
	    n->op->recompute == RECOMPUTE_NEVER || has_lasting_output(n))
		return false;
	return r->mode == RECOMPUTE_FULL || n->op->recompute == RECOMPUTE_CHEAP;
}

static bool is_dropped(const struct remaker *r, const struct tensor *t)
{
	return t->id < r->n_tensors && t->producer && !r->crosses[t->id] && may_repeat(r, t->producer);
}

/* Whatever is read outside of its block, or in no block, stays. */
static void find_crossing(struct remaker *r)
{
	for (int i = 0; i < r->g->n_nodes; i++) {
		const struct node *n = r->g->nodes[i];

		for (int k = 0; n->phase == PHASE_FORWARD && k < n->n_in; k++)
			if (n->in[k] && n->in[k]->producer && n->in[k]->producer->block != n->block)
				r->crosses[n->in[k]->id] = true;
		r->last_block = n->block > r->last_block ? n->block : r->last_block;
	}
}

static void repeat(struct remaker *r, struct node *n);

static struct tensor *made_again(struct remaker *r, struct tensor *t)
{
	if (!t || !is_dropped(r, t))
		return t;
	if (!r->again[t->id])
		repeat(r, t->producer);
	return r->again[t->id];
}

static void repeat(struct remaker *r, struct node *n)
{
	struct tensor **in = arena_array(r->g->arena, (size_t)n->n_in + 1, sizeof(*in));
	struct node *clone;

	if (!in) {
		graph_fail(r->g, ERR_NOMEM, "out of memory while building the graph");
		return;
	}
	for (int k = 0; k < n->n_in; k++)
		in[k] = made_again(r, n->in[k]);
	clone = graph_clone(r->g, n, in, "again");
	if (!clone)
		return;
	clone->phase = PHASE_BACKWARD;
	graph_move(r->g, clone->id, r->at++);
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			r->again[n->out[k]->id] = clone->out[k];
}

static void serve(struct remaker *r, struct node *n)
{
	for (int k = 0; k < n->n_in && !graph_failed(r->g); k++) {
		r->at = n->id;
		n->in[k] = made_again(r, n->in[k]);
	}
}

int pass_recompute(struct graph *g, enum recompute mode, struct err *err)
{
	struct remaker r = { .g = g, .mode = mode, .n_tensors = g->n_tensors };

	if (!graph_failed(g) && mode != RECOMPUTE_NONE) {
		r.crosses = arena_array(g->arena, (size_t)g->n_tensors + 1, sizeof(*r.crosses));
		r.again = arena_array(g->arena, (size_t)g->n_tensors + 1, sizeof(struct tensor *));
		if (!r.crosses || !r.again)
			return err_set(err, ERR_NOMEM, "out of memory for %d tensors", g->n_tensors);
		find_crossing(&r);
		for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
			struct node *n = g->nodes[i];

			if (n->phase == PHASE_BACKWARD)
				serve(&r, n);
			i = n->id; /* clones went in before n */
		}
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
