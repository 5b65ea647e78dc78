/* SPDX-License-Identifier: Apache-2.0 */
/* xent.c: the classification loss, where the gradient starts. It stores each row's log-sum-exp; probabilities are never
 * stored. */
#include "trainer/ops/xent/xent.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *xent_add(struct graph *g, struct tensor *logits, struct tensor *labels, double label_smoothing)
{
	struct xent_attr attr = { .label_smoothing = label_smoothing };
	struct tensor *result = graph_tensor(g, &(struct tensor){ .name = "result",
								  .kind = TENSOR_RESULT,
								  .dtype = DTYPE_F64,
								  .shape = SHAPE(XENT_RESULTS),
								  .life = LIFE_STEP });

	if (!graph_node(g, &(struct node_spec){ .op = &op_xent,
						.name = "loss",
						NODE_IN(logits, labels),
						NODE_OUT(result, NULL, NULL),
						NODE_ATTR(attr) }))
		return NULL;
	g->loss = result;
	return result;
}

static int check_xent_operands(struct graph *g, const struct node *n)
{
	const struct tensor *logits = n->in[0], *labels = n->in[1];
	const bool pairs = labels->shape.ndim == 2 && labels->shape.dim[1] == 2;

	return graph_expect(g, n,
			    logits->shape.ndim == 2 && logits->shape.dim[1] >= 1 &&
				    (labels->shape.ndim == 1 || pairs) && labels->dtype == DTYPE_I32 &&
				    labels->shape.dim[0] == logits->shape.dim[0],
			    "expected logits [N,K] and labels i32 [N] or [N,2]");
}

static int xent_shape(struct graph *g, struct node *n)
{
	if (check_xent_operands(g, n) ||
	    graph_out(g, n, XENT_OUT_RESULT, TENSOR_TYPE(DTYPE_F64, SHAPE(XENT_RESULTS)), ".result"))
		return g->err.code;
	if (graph_out(g, n, XENT_OUT_LSE, TENSOR_TYPE(n->in[0]->dtype, SHAPE(n->in[0]->shape.dim[0])), ".lse"))
		return g->err.code;
	if (n->out[XENT_OUT_LOSSES])
		graph_out(g, n, XENT_OUT_LOSSES, TENSOR_TYPE(DTYPE_F64, SHAPE(n->in[0]->shape.dim[0])), "");
	return g->err.code;
}

static int xent_grad_shape(struct graph *g, struct node *n)
{
	if (check_xent_operands(g, n))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int xent_backward(struct graph *g, struct node *n)
{
	struct tensor *logits = n->in[0];
	struct xent_attr attr = *(const struct xent_attr *)n->attr;
	struct node *back;

	if (n->out[0] != g->loss || !logits->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_xent_grad,
						  .name = graph_printf(g, "%s.dx", logits->name),
						  NODE_IN(logits, n->in[1], n->out[1]),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, logits, back ? back->out[0] : NULL);
	return g->err.code;
}

static enum dtype_class xent_dtype(const struct node *n, bool is_out, int index)
{
	return n->op == &op_xent && is_out && index != XENT_OUT_LSE ? DTYPE_CLASS_KEEP : DTYPE_CLASS_MASTER;
}

static void xent_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " label_smoothing=%g", ((const struct xent_attr *)n->attr)->label_smoothing);
}

const struct op op_xent = {
	.name = "xent",
	.id = OP_xent,
	.shape = xent_shape,
	.grad = xent_backward,
	.dtype = xent_dtype,
	.dump = xent_dump,
};

const struct op op_xent_grad = {
	.name = "xent_grad",
	.id = OP_xent_grad,
	.shape = xent_grad_shape,
	.dtype = xent_dtype,
	.inplace = op_inplace_same,
	.dump = xent_dump,
};

/* ---- ref ----
 * Softmax cross-entropy and its gradient, row by row. */

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
static void run_xent_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	const struct xent_attr *a = node->attr;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1];
	const double *logits = args->in[0];
	const int per_row = node->in[1]->shape.ndim;
	double *result = args->out[XENT_OUT_RESULT], *lse = args->out[XENT_OUT_LSE];
	double *losses = args->out[XENT_OUT_LOSSES];

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
}

static void run_xent_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	const struct xent_attr *a = node->attr;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1];
	const double *logits = args->in[0], *lse = args->in[2];
	const int per_row = node->in[1]->shape.ndim;
	double *dlogits = args->out[0], scale = args->page->inv_count * args->page->loss_scale;

	for (int64_t i = 0; i < n * k; i++) {
		const struct xent_labels l = xent_labels_of(args->in[1], i / k, per_row, args->page->label_weight);
		double target = a->label_smoothing / (double)k + (1 - a->label_smoothing) * xent_share(l, i % k);

		dlogits[i] = l.first < 0 ? 0 : (exp(logits[i] - lse[i / k]) - target) * scale;
	}
}

const struct kernel xent_ref = REF_KERNEL(run_xent_ref);
const struct kernel xent_grad_ref = REF_KERNEL(run_xent_grad_ref);
