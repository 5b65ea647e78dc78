/* SPDX-License-Identifier: Apache-2.0 */
/* ops_shared.c: helpers of the ref kernels. */
#include "trainer/ops/ops.h"

static int check_ref_dtype(const struct node *n, const struct tensor *t, struct err *err)
{
	if (!t || !dtype_is_float(t->dtype) || t->dtype == DTYPE_F64)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "%s (%s): the ref backend computes in f64, not %s: use --precision fp64",
		       n->name, n->op->name, dtype_name(t->dtype));
}

int ref_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = 0;

	(void)env;
	for (int i = 0; i < n->n_in && !rc; i++)
		rc = check_ref_dtype(n, n->in[i], err);
	for (int i = 0; i < n->n_out && !rc; i++)
		rc = check_ref_dtype(n, n->out[i], err);
	if (!rc)
		*ret_state = n;
	return rc;
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias)); /* a vector size that every processor
									      * supports */

/* Eight partial sums: the compiler may not reorder a floating-point sum, and a single dependency chain would be eight
 * times slower. */
double ref_dot(const double *a, const double *b, int64_t n)
{
	pair sum[4] = { { 0 } };
	double rest = 0;
	int64_t i = 0;

	for (; i + 8 <= n; i += 8)
#pragma GCC unroll 4
		for (int k = 0; k < 4; k++)
			sum[k] += *(const pair *)(a + i + 2 * k) * *(const pair *)(b + i + 2 * k);
	for (; i < n; i++)
		rest += a[i] * b[i];
	for (int k = 0; k < 8; k++)
		rest += sum[k / 2][k % 2];
	return rest;
}

void ref_axpy(double *y, double factor, const double *x, int64_t n)
{
	int64_t i = 0;

	for (; i + 2 <= n; i += 2)
		*(pair *)(y + i) += factor * *(const pair *)(x + i);
	for (; i < n; i++)
		y[i] += factor * x[i];
}
