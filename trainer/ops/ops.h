/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: the op numbers and the table of op descriptions, from ops.def, and what several ops share. */
#ifndef DPT_OPS_OPS_H
#define DPT_OPS_OPS_H

#include "trainer/graph/kernel.h"
#include "trainer/graph/op.h"

enum op_id {
#define OP(name) OP_##name,
#include "trainer/ops/ops.def"
#undef OP
	OP_COUNT
};

#define OP(name) extern const struct op op_##name;
#include "trainer/ops/ops.def"
#undef OP

extern const struct op *const ops_table[OP_COUNT];

/* ---- ref kernels ----
 * They compute in f64 with plain loops and define every op by execution. Their state is the node itself. */

/* prepare for ops without a workspace: every float operand must be f64. */
int ref_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err);

void ref_release(void *state);

double ref_dot(const double *a, const double *b, int64_t n);
void ref_axpy(double *y, double factor, const double *x, int64_t n); /* y += factor * x */

#define REF_KERNEL(run_function) { .prepare = ref_prepare, .run = (run_function), .release = ref_release }

/* ---- ops of optimisers ----
 * The node that updates one parameter, its shape rule and aliasing. */

#define UPDATE_MOMENTS_MAX 2

/* The node that updates a parameter: in p, its gradient, moments, step, sums; out p and moments, the same tensors. */
struct update_spec {
	const struct op *op;
	int moments;
	struct tensor *moment[UPDATE_MOMENTS_MAX]; /* by op_moment; NULL: an absent operand */
	int sums;
	struct tensor *sum[2]; /* f64 [1]; NULL: an absent operand */
	const void *attr;      /* copied, attr_bytes of it */
	size_t attr_bytes;
};

/* Appends the node; NULL once the graph failed. */
struct node *update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_spec *s);

/* Shape rule and aliasing of these nodes, also for those whose output 0 is a new tensor in the memory of input 0:
 * inputs 0 and 1 and all moments have one shape; output i > 0 is input i + 1. */
int update_shape(struct graph *g, struct node *n);
int update_inplace(const struct node *n, int out);

#endif
