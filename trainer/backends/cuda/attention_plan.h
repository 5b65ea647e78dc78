/* SPDX-License-Identifier: Apache-2.0 */
/* attention_plan.h: causal attention in 16 bits by cuDNN. */
#ifndef DPT_BACKENDS_CUDA_ATTENTION_PLAN_H
#define DPT_BACKENDS_CUDA_ATTENTION_PLAN_H

#include "trainer/graph/kernel.h"

/* Operands have the layout of ops/attention. */
struct attention_spec {
	bool backward;
	enum dtype type;
	int64_t n, heads, seq, d; /* n: sequences; d: head size */
};

struct attention_plan;

/* Creates a plan. ERR_UNSUPPORTED: the library is not open or has no engine for it. */
int attention_plan_new(struct attention_plan **ret, const struct kernel_env *env, const struct attention_spec *spec,
		       struct err *err);
void attention_plan_free(struct attention_plan *p); /* NULL is fine */
size_t attention_plan_workspace(const struct attention_plan *p);

/* dy, dqkv: backward only. Addresses are aligned to 16 bytes. */
struct attention_operands {
	const void *qkv, *y, *lse, *dy;
	void *dqkv;
	void *workspace;
	struct stream_handle *stream;
};

void attention_plan_run(struct attention_plan *p, const struct node *n, const struct attention_operands *o);

#endif
