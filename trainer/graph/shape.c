/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c: runs the shape rules again over a finished graph, so that an edit that broke a shape is found before
 * planning. */
#include "trainer/graph/pass.h"

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
