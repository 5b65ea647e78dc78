/* SPDX-License-Identifier: Apache-2.0 */
/* conv_plan.h: convolutions by cuDNN. */
#ifndef DPT_BACKENDS_CUDA_CONV_PLAN_H
#define DPT_BACKENDS_CUDA_CONV_PLAN_H

#include "trainer/graph/kernel.h"

enum conv_pass { CONV_FORWARD, CONV_BY_DATA, CONV_BY_WEIGHTS };

/* Images [n,h,w,c] and [n,p,q,k], weights [k,kernel,kernel,c], all of one type. */
struct conv_spec {
	enum conv_pass pass;
	enum dtype type;
	int64_t n, h, w, c, k, p, q;
	int64_t kernel, stride, pad;
};

struct dnn_plan;

/* Creates a plan. ERR_UNSUPPORTED: the library is not open or has no engine for it. */
int conv_plan_new(struct dnn_plan **ret, const struct kernel_env *env, const struct conv_spec *spec, struct err *err);
void conv_plan_free(struct dnn_plan *p); /* NULL is fine */
size_t conv_plan_workspace(const struct dnn_plan *p);
bool conv_plan_uses_tensor_cores(const struct dnn_plan *p);

/* x, w, y: the one that the pass computes is the output (for a gradient, that of x or w). Addresses are aligned to 16
 * bytes. */
struct conv_operands {
	const void *x, *w, *y;
	void *workspace;
	struct stream_handle *stream;
};

void conv_plan_run(struct dnn_plan *p, const struct node *n, const struct conv_operands *o);

#endif
