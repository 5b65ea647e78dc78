/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c: lets ops absorb their neighbours, then removes nodes whose results are unused. Also the last check
 * of shapes. */
#include "trainer/graph/pass.h"

static bool is_effect(const struct tensor *t)
{
	return lifetime_spans(t->life) || t->keep || t->kind == TENSOR_GRAD || t->kind == TENSOR_RESULT;
}

static bool is_dead(const struct node *n, const int *uses)
{
	for (int i = 0; i < n->n_out; i++)
		if (n->out[i] && (uses[n->out[i]->id] > 0 || n->out[i]->base || is_effect(n->out[i])))
			return false;
	return n->n_out > 0;
}

void pass_dead(struct graph *g)
{
	int *uses = graph_use_counts(g);

	for (int i = g->n_nodes - 1; i >= 0; i--) {
		struct node *n = g->nodes[i];

		if (!is_dead(n, uses))
			continue;
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k])
				uses[n->in[k]->id]--;
		graph_remove(g, i);
	}
}

int pass_fuse(struct graph *g, struct err *err)
{
	bool changed = !graph_failed(g);

	while (changed) {
		changed = false;
		for (int i = 0; i < g->n_nodes && !graph_failed(g); i++)
			if (g->nodes[i]->op->fuse && g->nodes[i]->op->fuse(g, g->nodes[i]))
				changed = true;
	}
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	pass_dead(g);
	return 0;
}

/* Runs the shape rules again over a finished graph, so that an edit that broke a shape is found before planning. */

int pass_shape(struct graph *g, struct err *err)
{
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];
		int rc = n->op->shape ? n->op->shape(g, n) : 0;

		if (rc)
			graph_expect(g, n, false, "shapes do not match");
	}
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	return 0;
}
