/* SPDX-License-Identifier: Apache-2.0 */
/* attention_ref.c: causal attention, one query at a time, with two passes over the keys up to it. */
#include <math.h>
#include <string.h>

#include "trainer/ops/attention/attention.h"
#include "trainer/ops/ref_kernel.h"

/* One head of one sequence. Strides between positions: 3C in qkv and dqkv, C in y and dy, heads in lse. */
struct attention_ref_head {
	int64_t c, d, seq, heads;
	const double *q, *k, *v, *lse, *y, *dy;
	double *out, *lse_out, *dq, *dk, *dv;
	struct dropout_draw draw;
	uint64_t first; /* dropout index of element (0, 0) within the micro-batch */
	bool drops;
};

static double compute_score(const struct attention_ref_head *h, int64_t i, int64_t j)
{
	return ref_dot(h->q + i * 3 * h->c, h->k + j * 3 * h->c, h->d) / sqrt((double)h->d);
}

static double dropout_factor(const struct attention_ref_head *h, int64_t i, int64_t j)
{
	if (!h->drops)
		return 1;
	return dropout_keeps(&h->draw, h->first + (uint64_t)(i * h->seq + j)) ? h->draw.scale : 0;
}

static void run_head_forward(const struct attention_ref_head *h)
{
	for (int64_t i = 0; i < h->seq; i++) {
		double max = -INFINITY, sum = 0, lse;

		for (int64_t j = 0; j <= i; j++)
			max = fmax(max, compute_score(h, i, j));
		for (int64_t j = 0; j <= i; j++)
			sum += exp(compute_score(h, i, j) - max);
		lse = max + log(sum);
		h->lse_out[i * h->heads] = lse;
		memset(h->out + i * h->c, 0, (size_t)h->d * sizeof(double));
		for (int64_t j = 0; j <= i; j++)
			ref_axpy(h->out + i * h->c, exp(compute_score(h, i, j) - lse) * dropout_factor(h, i, j),
				 h->v + j * 3 * h->c, h->d);
	}
}

/* dp(j) = dy.v(j) m; ds = p (dp - dy.y), since the sum over j of p dp is dy.y. */
static void run_head_backward(const struct attention_ref_head *h)
{
	for (int64_t i = 0; i < h->seq; i++) {
		const double *dy = h->dy + i * h->c;
		double inner = ref_dot(dy, h->y + i * h->c, h->d);

		for (int64_t j = 0; j <= i; j++) {
			double p = exp(compute_score(h, i, j) - h->lse[i * h->heads]), m = dropout_factor(h, i, j);
			double ds = p * (m * ref_dot(dy, h->v + j * 3 * h->c, h->d) - inner) / sqrt((double)h->d);

			ref_axpy(h->dv + j * 3 * h->c, p * m, dy, h->d);
			ref_axpy(h->dq + i * 3 * h->c, ds, h->k + j * 3 * h->c, h->d);
			ref_axpy(h->dk + j * 3 * h->c, ds, h->q + i * 3 * h->c, h->d);
		}
	}
}

static struct attention_ref_head make_head(const struct node *n, const struct tensor *qkv, const struct step_page *page)
{
	const struct attention_attr *a = n->attr;
	int64_t c = qkv->shape.dim[1] / 3;

	return (struct attention_ref_head){ .c = c,
					    .d = c / a->heads,
					    .seq = a->seq,
					    .heads = a->heads,
					    .draw = dropout_draw(&a->dropout, page),
					    .drops = a->dropout.p > 0 };
}

static int run_attention_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	struct attention_ref_head h = make_head(n, n->in[0], args->page);
	int64_t heads = n->in[0]->shape.dim[0] / h.seq * h.heads;

	(void)err;
	for (int64_t i = 0; i < heads; i++) {
		int64_t row = i / h.heads * h.seq, at = i % h.heads * h.d;

		h.q = (const double *)args->in[0] + row * 3 * h.c + at;
		h.k = h.q + h.c;
		h.v = h.k + h.c;
		h.out = (double *)args->out[0] + row * h.c + at;
		h.lse_out = (double *)args->out[1] + row * h.heads + i % h.heads;
		h.first = (uint64_t)(i * h.seq * h.seq);
		run_head_forward(&h);
	}
	return 0;
}

/* Runs the backward pass of every head. */
static int run_attention_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	struct attention_ref_head h = make_head(n, n->in[1], args->page);
	int64_t heads = n->in[1]->shape.dim[0] / h.seq * h.heads;

	(void)err;
	memset(args->out[0], 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < heads; i++) {
		int64_t row = i / h.heads * h.seq, at = i % h.heads * h.d;

		h.dy = (const double *)args->in[0] + row * h.c + at;
		h.q = (const double *)args->in[1] + row * 3 * h.c + at;
		h.k = h.q + h.c;
		h.v = h.k + h.c;
		h.y = (const double *)args->in[2] + row * h.c + at;
		h.lse = (const double *)args->in[3] + row * h.heads + i % h.heads;
		h.dq = (double *)args->out[0] + row * 3 * h.c + at;
		h.dk = h.dq + h.c;
		h.dv = h.dk + h.c;
		h.first = (uint64_t)(i * h.seq * h.seq);
		run_head_backward(&h);
	}
	return 0;
}

const struct kernel attention_ref = REF_KERNEL(run_attention_ref);
const struct kernel attention_grad_ref = REF_KERNEL(run_attention_grad_ref);
