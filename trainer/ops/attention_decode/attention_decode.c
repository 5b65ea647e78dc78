/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode.c: shape rule of attention with a KV cache. */
#include "trainer/ops/attention_decode/attention_decode.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"

static struct tensor *add_cache(struct graph *g, struct shape shape, const char *name)
{
	return name ? graph_tensor(g, &(struct tensor){ .name = name,
							.kind = TENSOR_MOMENT,
							.dtype = DTYPE_F32,
							.shape = shape,
							.life = LIFE_PERSISTENT })
		    : NULL;
}

struct tensor *attention_decode_add(struct graph *g, struct tensor *qkv, struct tensor *first,
				    const struct attention_decode_attr *attr, const char *name)
{
	struct tensor *keys, *values;
	struct shape shape;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	shape = SHAPE(attr->positions, qkv->shape.dim[1] / (3 * attr->heads) * attr->shared);
	keys = add_cache(g, shape, graph_printf(g, "%s.keys", name));
	values = add_cache(g, shape, graph_printf(g, "%s.values", name));
	n = graph_node(g, &(struct node_spec){ .op = &op_attention_decode,
					       .name = name,
					       NODE_IN(qkv, keys, values, first),
					       NODE_OUT(NULL, keys, values),
					       NODE_ATTR(*attr) });
	return n ? n->out[0] : NULL;
}

static int attend_shape(struct graph *g, struct node *n)
{
	const struct attention_decode_attr *a = n->attr;
	const struct tensor *qkv = n->in[0], *keys = n->in[1], *values = n->in[2], *first = n->in[3];
	bool fits = qkv->shape.ndim == 2 && a->heads > 0 && qkv->shape.dim[1] % (3 * a->heads) == 0 && a->shared > 0 &&
		    a->heads % a->shared == 0 && keys->shape.ndim == 2 && keys->shape.dim[0] == a->positions &&
		    a->positions >= qkv->shape.dim[0] &&
		    keys->shape.dim[1] == qkv->shape.dim[1] / (3 * a->heads) * a->shared;

	if (graph_expect(g, n,
			 fits && shape_equal(&keys->shape, &values->shape) && first->dtype == DTYPE_I32 &&
				 shape_count(&first->shape) == 1 && n->out[1] == keys && n->out[2] == values,
			 "expected qkv [R,3*H*D], keys and values [P,K*D] with P >= R, and first i32 [1]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], qkv->shape.dim[1] / 3)), "");
}

static enum dtype_class attend_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	(void)is_out;
	return index == 0 ? DTYPE_CLASS_LOW : DTYPE_CLASS_MASTER;
}

static void attend_dump(const struct node *n, struct buf *out)
{
	const struct attention_decode_attr *a = n->attr;

	buf_addf(out, " heads=%lld/%lld", (long long)a->heads, (long long)a->shared);
	if (a->window)
		buf_addf(out, " window=%lld", (long long)a->window);
	if (a->cap > 0)
		buf_addf(out, " cap=%g", a->cap);
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

static void store_keys_and_values(const struct attention_decode_sizes *z, const double *qkv, double *keys,
				  double *values)
{
	for (int64_t r = 0; r < z->rows; r++)
		for (int64_t i = 0; i < z->kept; i++) {
			int64_t from = r * 3 * z->c + i / z->d * z->group * z->d + i % z->d;

			keys[r * z->kept + i] = qkv[from + z->c];
			values[r * z->kept + i] = qkv[from + 2 * z->c];
		}
}

/* One query of one head: visible positions; keys and values point at this head's channels. */
struct attend_query {
	const double *q, *keys, *values;
	int64_t begin, end, pitch, d;
	double cap;
};

static double score_key(const struct attend_query *a, int64_t j)
{
	const double s = ref_dot(a->q, a->keys + j * a->pitch, a->d) / sqrt((double)a->d);

	return a->cap > 0 ? a->cap * tanh(s / a->cap) : s;
}

static void attend_one_query(const struct attend_query *a, double *y)
{
	double max = -INFINITY, sum = 0;

	for (int64_t j = a->begin; j < a->end; j++)
		max = fmax(max, score_key(a, j));
	memset(y, 0, (size_t)a->d * sizeof(*y));
	for (int64_t j = a->begin; j < a->end; j++) {
		double p = exp(score_key(a, j) - max);

		sum += p;
		ref_axpy(y, p, a->values + j * a->pitch, a->d);
	}
	for (int64_t i = 0; i < a->d; i++)
		y[i] /= sum;
}

/* Stores the new keys and values, then answers each head of each new position. */
static void run_attend_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct attention_decode_sizes z = attention_decode_sizes(n);
	const int64_t first = *(const int32_t *)args->in[3];
	double *keys = args->out[1], *values = args->out[2], *y = args->out[0];
	const double *qkv = args->in[0];

	store_keys_and_values(&z, qkv, keys + first * z.kept, values + first * z.kept);
	for (int64_t r = 0; r < z.rows; r++)
		for (int64_t h = 0; h < z.heads; h++) {
			const int64_t shared = h / z.group * z.d;
			struct attend_query q = { qkv + r * 3 * z.c + h * z.d,
						  keys + shared,
						  values + shared,
						  attention_decode_begin(n->attr, first + r),
						  first + r + 1,
						  z.kept,
						  z.d,
						  ((const struct attention_decode_attr *)n->attr)->cap };

			attend_one_query(&q, y + r * z.c + h * z.d);
		}
}

const struct kernel attention_decode_ref = REF_KERNEL(run_attend_ref);
