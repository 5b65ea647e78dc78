/* SPDX-License-Identifier: Apache-2.0 */
/* types.c: element types and shapes. */
#include "trainer/graph/graph.h"

static const struct {
	const char *name;
	size_t bytes;
	bool is_float;
} types[] = {
	[DTYPE_F64] = { "f64", 8, true }, [DTYPE_F32] = { "f32", 4, true },  [DTYPE_BF16] = { "bf16", 2, true },
	[DTYPE_F16] = { "f16", 2, true }, [DTYPE_I64] = { "i64", 8, false }, [DTYPE_I32] = { "i32", 4, false },
	[DTYPE_U8] = { "u8", 1, false },
};

size_t dtype_bytes(enum dtype t)
{
	return types[t].bytes;
}

const char *dtype_name(enum dtype t)
{
	return types[t].name;
}

bool dtype_is_float(enum dtype t)
{
	return types[t].is_float;
}

int64_t shape_count(const struct shape *s)
{
	int64_t n = 1;

	for (int i = 0; i < s->ndim; i++)
		n *= s->dim[i];
	return n;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
	if (a->ndim != b->ndim)
		return false;
	for (int i = 0; i < a->ndim; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

bool lifetime_spans(enum lifetime l)
{
	return l == LIFE_PERSISTENT || l == LIFE_ACROSS;
}

size_t tensor_bytes(const struct tensor *t)
{
	return t->opaque_bytes ? t->opaque_bytes : (size_t)shape_count(&t->shape) * dtype_bytes(t->dtype);
}

bool node_has_dtype(const struct node *n, enum dtype t)
{
	for (int i = 0; i < n->n_in; i++)
		if (n->in[i] && n->in[i]->dtype == t)
			return true;
	for (int i = 0; i < n->n_out; i++)
		if (n->out[i] && n->out[i]->dtype == t)
			return true;
	return false;
}
