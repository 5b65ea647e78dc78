/* recompute.c: which activations are computed again in the backward pass instead of being kept. Nothing asks for it
 * yet: every activation is kept. */
#include "trainer/graph/pass.h"

int pass_recompute(struct graph *g, struct err *err)
{
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
