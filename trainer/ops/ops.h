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

double ref_dot(const double *a, const double *b, int64_t n);
void ref_axpy(double *y, double factor, const double *x, int64_t n); /* y += factor * x */

#define REF_KERNEL(run_function) { .prepare = ref_prepare, .run = (run_function) }

#endif
