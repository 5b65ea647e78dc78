/* layout_pass.c: where a backend's kernel wants an input in a layout of its own, a pack node makes it just before its use,
 * so that a packed weight costs memory only while it is needed. Knows layouts only by their size. */
#include "trainer/graph/pass.h"

static size_t packed_bytes(const struct layout_backend *b, const struct node *n, int index)
{
	const struct kernel *k = b->kernels[n->op->id];

	if (!n->in[index] || n->in[index]->opaque_bytes || !k || !k->pack_bytes)
		return 0;
	if (b->plain_f16 && node_has_dtype(n, DTYPE_F16))
		return 0;
	return k->pack_bytes(b->env, n, index);
}

/* A pack converts types by itself, so it reads what a cast in front of it would read. */
static struct tensor *pack_source(const struct layout_backend *b, struct tensor *t)
{
	const struct node *n = t->producer;

	return n && n->op == b->cast ? n->in[0] : t;
}

/* Packs read the types that parameters are kept in; what was gathered in 16 bits is widened for them, for a moment. */
static struct tensor *widened(struct graph *g, const struct op *cast, struct tensor *t, const struct node *user)
{
	return dtype_bytes(t->dtype) == 2 ? pass_cast_before(g, cast, t, DTYPE_F32, user) : t;
}

static int pack_input(struct graph *g, const struct layout_backend *b, struct node *n, int index, size_t bytes)
{
	struct pack_attr attr = { .consumer = n, .index = index };
	struct tensor *t = n->in[index], *from = widened(g, b->cast, pack_source(b, t), n);
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
			size_t bytes = packed_bytes(b, n, k);

			if (bytes && pack_input(g, b, n, k, bytes) != 0)
				break;
		}
		i = n->id;
	}
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	return pass_dead(g, err);
}
