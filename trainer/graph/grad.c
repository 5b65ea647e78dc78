/* SPDX-License-Identifier: Apache-2.0 */
/* grad.c: appends the backward pass. Each op adds its own backward nodes; this file decides which tensors need a
 * gradient and in which order the ops run. */
#include "trainer/graph/pass.h"

static bool any_wants_grad(struct tensor *const *t, int n)
{
	for (int i = 0; i < n; i++)
		if (t[i] && t[i]->wants_grad)
			return true;
	return false;
}

/* A tensor needs a gradient if a trained parameter is upstream of it. Input images therefore get none. */
static void mark_grad_tensors(struct graph *g)
{
	for (int i = 0; i < g->n_tensors; i++)
		g->tensors[i]->wants_grad = g->tensors[i]->kind == TENSOR_PARAM && !g->tensors[i]->frozen;
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];

		if (!n->op->grad || !any_wants_grad(n->in, n->n_in))
			continue;
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] && n->out[k]->producer == n)
				n->out[k]->wants_grad = true;
	}
}

int pass_grad(struct graph *g, const struct op *sum, struct err *err)
{
	enum phase before = g->phase;

	if (!graph_failed(g) && (!g->loss || !g->loss->producer))
		graph_fail(g, ERR_USAGE, "the graph has no loss to differentiate");
	if (!graph_failed(g)) {
		mark_grad_tensors(g);
		g->sum = sum;
		g->phase = PHASE_BACKWARD;
		for (int i = g->loss->producer->id; i >= 0 && !graph_failed(g); i--) {
			struct node *n = g->nodes[i];

			g->block = n->block;
			if (n->op->grad && any_wants_grad(n->out, n->n_out) && n->op->grad(g, n) != 0)
				graph_expect(g, n, false, "its gradient cannot be built");
		}
		g->phase = before;
		g->block = 0;
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
