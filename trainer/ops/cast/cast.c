/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c: conversion between float types. No gradient is defined, since casts are inserted after the backward pass is
 * built. */
#include "trainer/ops/cast/cast.h"

#include "trainer/ops/cast/float16.h"
#include "trainer/ops/ops.h"

struct tensor *cast_add(struct graph *g, struct tensor *x, enum dtype to)
{
	struct tensor *y;

	if (graph_failed(g))
		return NULL;
	y = graph_act(g, to, x->shape, "%s.%s", x->name, dtype_name(to));
	return y && graph_node(g, &(struct node_spec){ .op = &op_cast, .name = y->name, NODE_IN(x), NODE_OUT(y) })
		       ? y
		       : NULL;
}

static int cast_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, n->out[0] && dtype_is_float(n->in[0]->dtype) && dtype_is_float(n->out[0]->dtype),
			 "casts need float types"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->out[0]->dtype, n->in[0]->shape), "");
}

const struct op op_cast = {
	.name = "cast",
	.id = OP_cast,
	.recompute = RECOMPUTE_CHEAP,
	.shape = cast_shape,
	.dtype = op_dtype_keep,
};

/* ---- ref ----
 * Conversion between any two float types. */

static int prepare_cast_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env;
	(void)err;
	*ret_state = n;
	return 0;
}

static void run_cast_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		float_put(args->out[0], n->out[0]->dtype, i, float_get(args->in[0], n->in[0]->dtype, i));
}

const struct kernel cast_ref = { .prepare = prepare_cast_ref, .run = run_cast_ref };

/* ---- casts.def as one table for each level ---- */

enum { STORED_F32 = DTYPE_F32, STORED_F16 = DTYPE_F16, STORED_NONE = CAST_STORES_NONE };

#define STORED(...)
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o1,
static const enum cast_rule rules_o1[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o2,
static const enum cast_rule rules_o2[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o3,
static const enum cast_rule rules_o3[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#undef STORED

#define CAST(...)
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o1,
static const struct cast_table table_o1 = {
#include "trainer/ops/casts.def"
	.rule = rules_o1
};
#undef STORED
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o2,
static const struct cast_table table_o2 = {
#include "trainer/ops/casts.def"
	.rule = rules_o2
};
#undef STORED
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o3,
static const struct cast_table table_o3 = {
#include "trainer/ops/casts.def"
	.rule = rules_o3
};
#undef STORED
#undef CAST

const struct cast_table *casts_of_level(int level)
{
	static const struct cast_table *const tables[] = { NULL, &table_o1, &table_o2, &table_o3 };

	return level > 0 && level < 4 ? tables[level] : NULL;
}
