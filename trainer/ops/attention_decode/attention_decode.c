/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode.c: shape rule of attention with a KV cache. */
#include "trainer/ops/attention_decode/attention_decode.h"

#include <math.h>
#include <string.h>

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

/* ---- ref ----
 * Attention with a KV cache, one head of one new position at a time. */

static void store_keys_and_values(const double *qkv, int64_t rows, int64_t c, double *keys, double *values)
{
	for (int64_t r = 0; r < rows; r++) {
		memcpy(keys + r * c, qkv + r * 3 * c + c, (size_t)c * sizeof(double));
		memcpy(values + r * c, qkv + r * 3 * c + 2 * c, (size_t)c * sizeof(double));
	}
}

/* One query of one head: n visible positions; keys and values point at this head's channels. */
struct attend_query {
	const double *q, *keys, *values;
	int64_t n, c, d;
};

static void attend_one_query(const struct attend_query *a, double *y)
{
	double max = -INFINITY, sum = 0, scale = 1 / sqrt((double)a->d);

	for (int64_t j = 0; j < a->n; j++)
		max = fmax(max, ref_dot(a->q, a->keys + j * a->c, a->d) * scale);
	memset(y, 0, (size_t)a->d * sizeof(*y));
	for (int64_t j = 0; j < a->n; j++) {
		double p = exp(ref_dot(a->q, a->keys + j * a->c, a->d) * scale - max);

		sum += p;
		ref_axpy(y, p, a->values + j * a->c, a->d);
	}
	for (int64_t i = 0; i < a->d; i++)
		y[i] /= sum;
}

static void run_attend_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	int64_t heads = ((const struct attention_decode_attr *)n->attr)->heads, rows = n->in[0]->shape.dim[0];
	int64_t c = n->in[1]->shape.dim[1], d = c / heads, first = *(const int32_t *)args->in[3];
	double *keys = args->out[1], *values = args->out[2], *y = args->out[0];
	const double *qkv = args->in[0];

	store_keys_and_values(qkv, rows, c, keys + first * c, values + first * c);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t h = 0; h < heads; h++) {
			struct attend_query q = {
				qkv + r * 3 * c + h * d, keys + h * d, values + h * d, first + r + 1, c, d
			};

			attend_one_query(&q, y + r * c + h * d);
		}
}

const struct kernel attention_decode_ref = REF_KERNEL(run_attend_ref);
