/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: shape rules and gradient of causal attention. */
#include "trainer/ops/attention/attention.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *attention_add(struct graph *g, struct tensor *qkv, struct tensor *places,
			     const struct attention_attr *attr, const char *name)
{
	struct attention_attr a = *attr;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	if (!g->training)
		a.dropout.p = 0;
	a.dropout.stream = rng_stream(name);
	a.dropout.per_sample = a.heads * a.seq * a.seq;
	n = graph_node(
		g,
		&(struct node_spec){
			.op = &op_attention, .name = name, NODE_IN(qkv, places), NODE_OUT(NULL, NULL), NODE_ATTR(a) });
	return n ? n->out[0] : NULL;
}

/* Channels per position; 0 if qkv does not divide as the attributes require. */
static int64_t count_qkv_channels(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;

	if (qkv->shape.ndim != 2 || a->heads < 1 || a->seq < 1 || qkv->shape.dim[1] % (3 * a->heads) ||
	    qkv->shape.dim[0] % a->seq)
		return 0;
	return qkv->shape.dim[1] / 3;
}

static bool places_fit(const struct tensor *places, const struct tensor *qkv)
{
	return !places || (places->dtype == DTYPE_I32 && shape_count(&places->shape) == qkv->shape.dim[0]);
}

static int attention_shape(struct graph *g, struct node *n)
{
	const struct attention_attr *a = n->attr;
	const struct tensor *qkv = n->in[0];
	int64_t c = count_qkv_channels(n, qkv);

	if (graph_expect(g, n, c > 0, "qkv [R,3C] does not divide into heads and sequences") ||
	    graph_expect(g, n, places_fit(n->in[1], qkv), "expected places i32 [R]") ||
	    graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], c)), ""))
		return g->err.code;
	return graph_out(g, n, 1, TENSOR_TYPE(qkv->dtype, SHAPE(qkv->shape.dim[0], a->heads)), ".lse");
}

static int attention_grad_shape(struct graph *g, struct node *n)
{
	const struct attention_attr *a = n->attr;
	const struct tensor *dy = n->in[0], *qkv = n->in[1], *y = n->in[2], *lse = n->in[3];
	struct shape out = SHAPE(qkv->shape.dim[0], count_qkv_channels(n, qkv)),
		     rows = SHAPE(qkv->shape.dim[0], a->heads);

	if (graph_expect(g, n,
			 out.dim[1] > 0 && shape_equal(&dy->shape, &out) && shape_equal(&y->shape, &out) &&
				 shape_equal(&lse->shape, &rows) && places_fit(n->in[4], qkv),
			 "expected dy [R,C], qkv [R,3C], y [R,C], lse [R,heads] and places i32 [R]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(qkv->dtype, qkv->shape), "");
}

static int attention_backward(struct graph *g, struct node *n)
{
	struct tensor *qkv = n->in[0], *dy = graph_grad_get(g, n->out[0]);
	struct attention_attr attr = *(const struct attention_attr *)n->attr;
	struct node *back;

	if (!dy || !qkv->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_attention_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, qkv, n->out[0], n->out[1], n->in[1]),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, qkv, back ? back->out[0] : NULL);
	return g->err.code;
}

static enum dtype_class attention_dtype(const struct node *n, bool is_out, int index)
{
	bool lse = n->op == &op_attention ? is_out && index == 1 : !is_out && index == 3;

	return lse ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

static void attention_dump(const struct node *n, struct buf *out)
{
	const struct attention_attr *a = n->attr;

	buf_addf(out, " heads=%lld seq=%lld", (long long)a->heads, (long long)a->seq);
	if (a->window)
		buf_addf(out, " window=%lld", (long long)a->window);
	if (a->cap > 0)
		buf_addf(out, " cap=%g", a->cap);
	if (a->dropout.p > 0)
		buf_addf(out, " dropout=%g", a->dropout.p);
}

/* FLOPs of one product of each position with every other. */
static double count_full_product(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;

	return 2 * (double)qkv->shape.dim[0] * (double)qkv->shape.dim[1] / 3 * (double)a->seq;
}

static double attention_counted(const struct node *n)
{
	return 2 * count_full_product(n, n->in[0]);
}

static double attention_grad_counted(const struct node *n)
{
	return 4 * count_full_product(n, n->in[1]);
}

/* FLOPs of its lower triangle, of which a window leaves a band. */
static double count_causal_product(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = n->attr;
	const double seq = (double)a->seq, band = a->window && a->window < a->seq ? (double)a->window : seq;

	return count_full_product(n, qkv) * band * (2 * seq + 1 - band) / (2 * seq * seq);
}

/* Two products: scores, and their product with the values. */
static double attention_flops(const struct node *n)
{
	return 2 * count_causal_product(n, n->in[0]);
}

/* Five products: scores (recomputed), dp, dq, dk and dv. */
static double attention_grad_flops(const struct node *n)
{
	return 5 * count_causal_product(n, n->in[1]);
}

const struct op op_attention = {
	.name = "attention",
	.id = OP_attention,
	.recompute = RECOMPUTE_CHEAP,
	.shape = attention_shape,
	.grad = attention_backward,
	.dtype = attention_dtype,
	.dump = attention_dump,
	.flops = attention_flops,
	.counted = attention_counted,
};

const struct op op_attention_grad = {
	.name = "attention_grad",
	.id = OP_attention_grad,
	.shape = attention_grad_shape,
	.dtype = attention_dtype,
	.dump = attention_dump,
	.flops = attention_grad_flops,
	.counted = attention_grad_counted,
};

/* ---- ref ----
 * Causal attention, one query at a time, with two passes over the keys up to it. */

/* One head of one sequence. Strides between positions: 3C in qkv and dqkv, C in y and dy, heads in lse. */
struct attention_ref_head {
	int64_t c, d, seq, heads;
	int64_t window;
	double cap;
	const int32_t *places; /* of the sequence */
	const double *q, *k, *v, *lse, *y, *dy;
	double *out, *lse_out, *dq, *dk, *dv;
	struct dropout_draw draw;
	uint64_t first; /* dropout index of element (0, 0) within the micro-batch */
	bool drops;
};

static double compute_score(const struct attention_ref_head *h, int64_t i, int64_t j)
{
	const double s = ref_dot(h->q + i * 3 * h->c, h->k + j * 3 * h->c, h->d) / sqrt((double)h->d);

	return h->cap > 0 ? h->cap * tanh(s / h->cap) : s;
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
		const int64_t begin = attention_begin(h->window, h->places, i);
		double max = -INFINITY, sum = 0, lse;

		for (int64_t j = begin; j <= i; j++)
			max = fmax(max, compute_score(h, i, j));
		for (int64_t j = begin; j <= i; j++)
			sum += exp(compute_score(h, i, j) - max);
		lse = max + log(sum);
		h->lse_out[i * h->heads] = lse;
		memset(h->out + i * h->c, 0, (size_t)h->d * sizeof(double));
		for (int64_t j = begin; j <= i; j++)
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

		for (int64_t j = attention_begin(h->window, h->places, i); j <= i; j++) {
			const double s = compute_score(h, i, j), bent = h->cap > 0 ? s / h->cap : 0;
			double p = exp(s - h->lse[i * h->heads]), m = dropout_factor(h, i, j);
			double ds = p * (m * ref_dot(dy, h->v + j * 3 * h->c, h->d) - inner) / sqrt((double)h->d);

			ds *= 1 - bent * bent;
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
					    .window = a->window,
					    .cap = a->cap,
					    .draw = dropout_draw(&a->dropout, page),
					    .drops = a->dropout.p > 0 };
}

static void run_attention_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	struct attention_ref_head h = make_head(n, n->in[0], args->page);
	int64_t heads = n->in[0]->shape.dim[0] / h.seq * h.heads;

	for (int64_t i = 0; i < heads; i++) {
		int64_t row = i / h.heads * h.seq, at = i % h.heads * h.d;

		h.places = n->in[1] ? (const int32_t *)args->in[1] + row : NULL;
		h.q = (const double *)args->in[0] + row * 3 * h.c + at;
		h.k = h.q + h.c;
		h.v = h.k + h.c;
		h.out = (double *)args->out[0] + row * h.c + at;
		h.lse_out = (double *)args->out[1] + row * h.heads + i % h.heads;
		h.first = (uint64_t)(i * h.seq * h.seq);
		run_head_forward(&h);
	}
}

/* Runs the backward pass of every head. */
static void run_attention_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	struct attention_ref_head h = make_head(n, n->in[1], args->page);
	int64_t heads = n->in[1]->shape.dim[0] / h.seq * h.heads;

	memset(args->out[0], 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < heads; i++) {
		int64_t row = i / h.heads * h.seq, at = i % h.heads * h.d;

		h.places = n->in[4] ? (const int32_t *)args->in[4] + row : NULL;
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
}

const struct kernel attention_ref = REF_KERNEL(run_attention_ref);
const struct kernel attention_grad_ref = REF_KERNEL(run_attention_grad_ref);
