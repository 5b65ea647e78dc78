/* SPDX-License-Identifier: Apache-2.0 */
/* cast_ref.c: conversion between any two float types. */
#include "trainer/ops/cast/cast.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/ref_kernel.h"

static int prepare_cast_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env;
	(void)err;
	*ret_state = n;
	return 0;
}

static int run_cast_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		float_put(args->out[0], n->out[0]->dtype, i, float_get(args->in[0], n->in[0]->dtype, i));
	return 0;
}

const struct kernel cast_ref = { .prepare = prepare_cast_ref, .run = run_cast_ref, .release = ref_release };
