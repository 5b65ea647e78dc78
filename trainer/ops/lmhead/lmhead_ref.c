/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead_ref.c: the classifier with its loss, one row at a time. */
#include <math.h>
#include <string.h>

#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/xent/xent.h"

static int prepare_lmhead_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	n->workspace_bytes = (size_t)n->in[1]->shape.dim[0] * sizeof(double);
	return ref_prepare(env, n, ret_state, err);
}

/* Computes the logits of one row; returns log sum exp. */
static double compute_row_logits(const double *x, const double *w, int64_t c, int64_t v, double *logits)
{
	double max = -INFINITY, sum = 0;

	for (int64_t j = 0; j < v; j++) {
		logits[j] = ref_dot(x, w + j * c, c);
		if (!(logits[j] <= max))
			max = logits[j];
	}
	for (int64_t j = 0; j < v; j++)
		sum += exp(logits[j] - max);
	return max + log(sum);
}

struct lmhead_ref_row {
	const double *x, *w;
	double *dx, *dw;
	int64_t c, v;
	int32_t target;
};

/* Adds dlogits = scale (softmax - onehot) to dx and dw at once. */
static void apply_logit_grads(const struct lmhead_ref_row *r, const double *logits, double lse, double scale)
{
	if (r->dx)
		memset(r->dx, 0, (size_t)r->c * sizeof(double));
	for (int64_t j = 0; r->target >= 0 && j < r->v; j++) {
		double d = scale * (exp(logits[j] - lse) - (j == r->target));

		if (r->dx)
			ref_axpy(r->dx, d, r->w + j * r->c, r->c);
		if (r->dw)
			ref_axpy(r->dw + j * r->c, d, r->x, r->c);
	}
}

/* Per row: logits, gradients, then loss and count. */
static int run_lmhead_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t rows = n->in[0]->shape.dim[0];
	struct lmhead_ref_row r = { .w = args->in[1], .dw = args->out[LMHEAD_DW], .c = n->in[0]->shape.dim[1] };
	double *result = args->out[LMHEAD_RESULT], *kept = args->out[LMHEAD_LOGITS], *dx = args->out[LMHEAD_DX];
	double *losses = args->out[LMHEAD_LOSSES];
	double scale = args->page->inv_count * args->page->loss_scale;

	(void)err;
	r.v = n->in[1]->shape.dim[0];
	memset(result, 0, XENT_RESULTS * sizeof(*result));
	if (r.dw)
		memset(r.dw, 0, tensor_bytes(n->out[LMHEAD_DW]));
	for (int64_t i = 0; i < rows; i++) {
		double *logits = kept ? kept + i * r.v : args->workspace, lse;

		r.x = (const double *)args->in[0] + i * r.c;
		r.dx = dx ? dx + i * r.c : NULL;
		r.target = ((const int32_t *)args->in[2])[i];
		lse = compute_row_logits(r.x, r.w, r.c, r.v, logits);
		apply_logit_grads(&r, logits, lse, scale);
		if (losses)
			losses[i] = r.target < 0 ? 0 : lse - logits[r.target];
		if (r.target < 0)
			continue;
		result[XENT_LOSS_SUM] += lse - logits[r.target];
		result[XENT_COUNT] += 1;
	}
	return 0;
}

const struct kernel lmhead_ref = { .prepare = prepare_lmhead_ref, .run = run_lmhead_ref, .release = ref_release };
