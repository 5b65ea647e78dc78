/* SPDX-License-Identifier: Apache-2.0 */
/* ref_kernel.h: helpers of the ref kernels. These compute in f64 with plain loops and define every op by execution.
 * Their state is the node itself. */
#ifndef DPT_OPS_REF_KERNEL_H
#define DPT_OPS_REF_KERNEL_H

#include "trainer/graph/kernel.h"

/* prepare for ops without a workspace: every float operand must be f64. */
int ref_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err);

void ref_release(void *state);

double ref_dot(const double *a, const double *b, int64_t n);
void ref_axpy(double *y, double factor, const double *x, int64_t n); /* y += factor * x */

#define REF_KERNEL(run_function) { .prepare = ref_prepare, .run = (run_function), .release = ref_release }

#endif
