/* SPDX-License-Identifier: Apache-2.0 */
/* xent_ref.c: softmax cross-entropy and its gradient, row by row. */
#include <math.h>
#include <string.h>

#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/xent/xent.h"

static double compute_log_sum_exp(const double *row, int64_t k)
{
	double max = row[0], sum = 0;

	for (int64_t j = 1; j < k; j++)
		if (row[j] > max)
			max = row[j];
	for (int64_t j = 0; j < k; j++)
		sum += exp(row[j] - max);
	return max + log(sum);
}

static double compute_row_loss(const double *row, int64_t k, struct xent_labels l, double lse, double smoothing)
{
	double sum = 0;

	for (int64_t j = 0; smoothing > 0 && j < k; j++)
		sum += lse - row[j];
	return (1 - smoothing) * (lse - xent_label_logit(row[l.first], row[l.second], l.weight)) +
	       smoothing / (double)k * sum;
}

static int64_t count_label_rank(const double *row, int64_t k, int label)
{
	int64_t before = 0;

	for (int64_t j = 0; j < k; j++)
		before += j != label && xent_before(row[j], row[label], j < label);
	return before;
}

/* Per row: lse and loss, then the rank of the label for the counts. */
static int run_xent_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	const struct xent_attr *a = node->attr;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1];
	const double *logits = args->in[0];
	const int per_row = node->in[1]->shape.ndim;
	double *result = args->out[XENT_OUT_RESULT], *lse = args->out[XENT_OUT_LSE];
	double *losses = args->out[XENT_OUT_LOSSES];

	(void)err;
	memset(result, 0, XENT_RESULTS * sizeof(*result));
	for (int64_t i = 0; i < n; i++) {
		const double *row = logits + i * k;
		const struct xent_labels l = xent_labels_of(args->in[1], i, per_row, args->page->label_weight);
		const int32_t label = xent_main_label(l);
		double loss;
		int64_t rank;

		lse[i] = compute_log_sum_exp(row, k);
		loss = label < 0 ? 0 : compute_row_loss(row, k, l, lse[i], a->label_smoothing);
		if (losses)
			losses[i] = loss;
		if (label < 0)
			continue;
		rank = count_label_rank(row, k, label);
		result[XENT_LOSS_SUM] += loss;
		result[XENT_TOP1] += xent_hits(row[label], rank, 1);
		result[XENT_TOP5] += xent_hits(row[label], rank, 5);
		result[XENT_COUNT] += 1;
	}
	return 0;
}

static int run_xent_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	const struct xent_attr *a = node->attr;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1];
	const double *logits = args->in[0], *lse = args->in[2];
	const int per_row = node->in[1]->shape.ndim;
	double *dlogits = args->out[0], scale = args->page->inv_count * args->page->loss_scale;

	(void)err;
	for (int64_t i = 0; i < n * k; i++) {
		const struct xent_labels l = xent_labels_of(args->in[1], i / k, per_row, args->page->label_weight);
		double target = a->label_smoothing / (double)k + (1 - a->label_smoothing) * xent_share(l, i % k);

		dlogits[i] = l.first < 0 ? 0 : (exp(logits[i] - lse[i / k]) - target) * scale;
	}
	return 0;
}

const struct kernel xent_ref = REF_KERNEL(run_xent_ref);
const struct kernel xent_grad_ref = REF_KERNEL(run_xent_grad_ref);
