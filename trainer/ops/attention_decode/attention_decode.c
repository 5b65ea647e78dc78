/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode.c: shape rule of attention with a KV cache. */
#include "trainer/ops/attention_decode/attention_decode.h"

#include "trainer/ops/ops.h"

struct tensor *attention_decode_add(struct graph *g, struct tensor *qkv, const struct attention_decode_tensors *t,
				    int64_t heads, const char *name)
{
	struct attention_decode_attr attr = { .heads = heads };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_attention_decode,
					       .name = name,
					       NODE_IN(qkv, t->keys, t->values, t->first),
					       NODE_OUT(NULL, t->keys, t->values),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

static int attend_shape(struct graph *g, struct node *n)
{
	const struct attention_decode_attr *a = n->attr;
	const struct tensor *qkv = n->in[0], *keys = n->in[1], *values = n->in[2], *first = n->in[3];
	bool fits = qkv->shape.ndim == 2 && a->heads > 0 && qkv->shape.dim[1] % (3 * a->heads) == 0 &&
		    keys->shape.ndim == 2 && keys->shape.dim[1] * 3 == qkv->shape.dim[1] &&
		    keys->shape.dim[0] >= qkv->shape.dim[0];

	if (graph_expect(g, n,
			 fits && shape_equal(&keys->shape, &values->shape) && first->dtype == DTYPE_I32 &&
				 shape_count(&first->shape) == 1 && n->out[1] == keys && n->out[2] == values,
			 "expected qkv [R,3C], keys and values [P,C] with P >= R, and first i32 [1]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], keys->shape.dim[1])), "");
}

static enum dtype_class attend_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	(void)is_out;
	return index == 0 ? DTYPE_CLASS_LOW : DTYPE_CLASS_MASTER;
}

static void attend_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " heads=%lld", (long long)((const struct attention_decode_attr *)n->attr)->heads);
}

const struct op op_attention_decode = {
	.name = "attention_decode",
	.id = OP_attention_decode,
	.shape = attend_shape,
	.dtype = attend_dtype,
	.dump = attend_dump,
};
