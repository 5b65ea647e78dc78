/* SPDX-License-Identifier: Apache-2.0 */
/* layout_pass.c: inserts pack nodes for inputs that a backend's kernel wants in its own layout. A pack node runs just
 * before the use, so a packed weight occupies memory only while it is needed. Layouts are known only by their size. */
#include "trainer/graph/pass.h"

static size_t count_packed_bytes(const struct layout_backend *b, const struct node *n, int index)
{
	const struct kernel *k = b->kernels[n->op->id];

	if (!n->in[index] || n->in[index]->opaque_bytes || !k || !k->pack_bytes)
		return 0;
	if (b->plain_f16 && node_has_dtype(n, DTYPE_F16))
		return 0;
	return k->pack_bytes(b->env, n, index);
}

/* A pack node converts types itself, so it reads the source of a cast. */
static struct tensor *find_pack_source(const struct layout_backend *b, struct tensor *t)
{
	const struct node *n = t->producer;

	return n && n->op == b->cast ? n->in[0] : t;
}

/* Pack nodes read the type that parameters are stored in. A tensor that was gathered in 16 bits is widened for them,
 * just before the use. */
static struct tensor *widen_gathered(struct graph *g, const struct op *cast, struct tensor *t, const struct node *user)
{
	return dtype_bytes(t->dtype) == 2 ? pass_cast_before(g, cast, t, DTYPE_F32, user) : t;
}

static int add_pack_node(struct graph *g, const struct layout_backend *b, struct node *n, int index, size_t bytes)
{
	struct pack_attr attr = { .consumer = n, .index = index };
	struct tensor *t = n->in[index], *from = widen_gathered(g, b->cast, find_pack_source(b, t), n);
	struct tensor *out = from ? graph_act(g, t->dtype, t->shape, "%s.pack.%s", from->name, n->op->name) : NULL;
	struct node *pack;

	if (!out)
		return g->err.code;
	out->opaque_bytes = bytes;
	pack = graph_node(g, &(struct node_spec){
				     .op = b->pack, .name = out->name, NODE_IN(from), NODE_OUT(out), NODE_ATTR(attr) });
	if (!pack)
		return g->err.code;
	pack->phase = n->phase;
	pack->part = n->part;
	n->in[index] = out;
	graph_move(g, pack->id, n->id);
	return 0;
}

int pass_layout(struct graph *g, const struct layout_backend *b, struct err *err)
{
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];

		for (int k = 0; k < n->n_in && n->op != b->pack; k++) {
			size_t bytes = count_packed_bytes(b, n, k);

			if (bytes && add_pack_node(g, b, n, k, bytes) != 0)
				break;
		}
		i = n->id;
	}
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	pass_dead(g);
	return 0;
}
