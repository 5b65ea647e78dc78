/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c: converts a tensor to the layout of one consumer's kernel. The layout pass inserts these nodes; the size comes
 * from the backend. */
#include "trainer/ops/pack/pack.h"

#include "trainer/ops/ops.h"

static int pack_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, n->out[0] && n->out[0]->opaque_bytes > 0 && n->attr, "pack needs a size and a consumer"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->out[0]->dtype, n->in[0]->shape), "");
}

static void pack_dump(const struct node *n, struct buf *out)
{
	const struct pack_attr *a = n->attr;

	buf_addf(out, " for=%s.%d", a->consumer->name, a->index);
}

const struct op op_pack = {
	.name = "pack",
	.id = OP_pack,
	.shape = pack_shape,
	.dtype = op_dtype_keep,
	.dump = pack_dump,
};

/* ---- ref ----
 * Ref uses plain layouts only, so it has no pack kernel. */

const struct kernel pack_ref = { .run = NULL };
