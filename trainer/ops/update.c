/* SPDX-License-Identifier: Apache-2.0 */
/* update.c: the nodes of an optimiser's steps, one per parameter. */
#include "trainer/ops/update.h"

#define UPDATE_INPUTS_MAX (UPDATE_MOMENTS_MAX + 5)

struct node *update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_spec *s)
{
	struct tensor *in[UPDATE_INPUTS_MAX] = { p, p->grad }, *out[1 + UPDATE_MOMENTS_MAX] = { p };
	int n = 2;

	for (int i = 0; i < s->moments; i++)
		out[1 + i] = in[n++] = s->moment[i];
	in[n++] = step;
	for (int i = 0; i < s->sums; i++)
		in[n++] = s->sum[i];
	return graph_node(g, &(struct node_spec){ .op = s->op,
						  .name = graph_printf(g, "%s.%s", p->name, s->op->name),
						  .in = in,
						  .out = out,
						  .n_in = n,
						  .n_out = 1 + s->moments,
						  .attr = s->attr,
						  .attr_bytes = s->attr_bytes });
}

int update_shape(struct graph *g, struct node *n)
{
	const struct shape *shape = &n->in[0]->shape;
	bool ok = shape_equal(shape, &n->in[1]->shape) && (!n->out[0] || n->out[0] == n->in[0]);

	for (int i = 1; i < n->n_out; i++)
		ok = ok && n->out[i] == n->in[i + 1] && (!n->out[i] || shape_equal(shape, &n->out[i]->shape));
	return graph_expect(g, n, ok, "parameter, gradient and moments differ in shape");
}

int update_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : out + 1;
}
