/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm_ref.c: layer normalisation, row by row. */
#include <math.h>
#include <string.h>

#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/ref_kernel.h"

/* Mean and rstd of a row, in two passes. */
static void compute_row_mean_rstd(const double *s, int64_t c, double stats[2])
{
	double sum = 0, squares = 0;

	for (int64_t i = 0; i < c; i++)
		sum += s[i];
	stats[0] = sum / (double)c;
	for (int64_t i = 0; i < c; i++)
		squares += (s[i] - stats[0]) * (s[i] - stats[0]);
	stats[1] = 1 / sqrt(squares / (double)c + LAYERNORM_EPS);
}

static int run_layernorm_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1];
	const double *x = args->in[0], *delta = args->in[1], *gamma = args->in[2], *beta = args->in[3];
	double *y = args->out[0], *stats = args->out[1], *sum = args->out[2];

	(void)err;
	for (int64_t r = 0; r < rows; r++) {
		const double *s = delta ? sum + r * c : x + r * c;

		for (int64_t i = 0; delta && i < c; i++)
			sum[r * c + i] = x[r * c + i] + delta[r * c + i];
		compute_row_mean_rstd(s, c, stats + 2 * r);
		for (int64_t i = 0; i < c; i++)
			y[r * c + i] = (s[i] - stats[2 * r]) * stats[2 * r + 1] * gamma[i] + beta[i];
	}
	return 0;
}

/* With h the normalised row and d = dy gamma: ds = rstd (d - mean(d) - h mean(d h)). */
static int run_layernorm_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t rows = n->in[1]->shape.dim[0], c = n->in[1]->shape.dim[1];
	const double *dy = args->in[0], *s = args->in[1], *stats = args->in[2], *gamma = args->in[3];
	const double *skip = args->in[4];
	double *ds = args->out[0], *dgamma = args->out[1], *dbeta = args->out[2];

	(void)err;
	if (dgamma)
		memset(dgamma, 0, tensor_bytes(n->out[1]));
	if (dbeta)
		memset(dbeta, 0, tensor_bytes(n->out[2]));
	for (int64_t r = 0; r < rows; r++, dy += c, s += c, stats += 2, ds += c, skip += skip ? c : 0) {
		double mean_d = 0, mean_dh = 0;

		for (int64_t i = 0; i < c; i++) {
			double h = (s[i] - stats[0]) * stats[1], d = dy[i] * gamma[i];

			mean_d += d / (double)c;
			mean_dh += d * h / (double)c;
			if (dgamma) {
				dgamma[i] += dy[i] * h;
				dbeta[i] += dy[i];
			}
		}
		for (int64_t i = 0; i < c; i++) {
			double h = (s[i] - stats[0]) * stats[1];

			ds[i] = stats[1] * (dy[i] * gamma[i] - mean_d - h * mean_dh) + (skip ? skip[i] : 0);
		}
	}
	return 0;
}

const struct kernel layernorm_ref = REF_KERNEL(run_layernorm_ref);
const struct kernel layernorm_grad_ref = REF_KERNEL(run_layernorm_grad_ref);
