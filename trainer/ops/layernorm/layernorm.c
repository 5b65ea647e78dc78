/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm.c: shape rules and gradients of layer normalisation. */
#include "trainer/ops/layernorm/layernorm.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *layernorm_add(struct graph *g, struct tensor *x, struct tensor *delta, const struct layernorm_tensors *t,
			     struct tensor **ret_sum)
{
	struct layernorm_attr attr = { t->eps, t->shift, !t->beta };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_layernorm,
					       .name = graph_stem(g, t->gamma->name),
					       NODE_IN(x, delta, t->gamma, t->beta),
					       NODE_OUT(NULL, NULL, NULL),
					       NODE_ATTR(attr) });
	if (!n)
		return NULL;
	if (ret_sum)
		*ret_sum = delta ? n->out[2] : x;
	return n->out[0];
}

bool layernorm_may_part(const struct node *n)
{
	return n->op == &op_layernorm && n->in[1] && (n->in[0]->dtype == DTYPE_F32 || n->in[0]->dtype == DTYPE_F64);
}

void layernorm_part(struct graph *g, struct node *n, struct tensor *s)
{
	graph_replace_uses(g, n->out[2], s, 0);
	n->out[2]->producer = NULL;
	n->out[2] = NULL;
	n->in[0] = s;
	n->in[1] = NULL;
}

static bool is_gain_of(const struct tensor *gamma, const struct tensor *x)
{
	return x->shape.ndim == 2 && gamma->shape.ndim == 1 && x->shape.dim[1] > 0 && gamma->shape.dim[0] > 0 &&
	       x->shape.dim[1] % gamma->shape.dim[0] == 0;
}

static int layernorm_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *delta = n->in[1], *gamma = n->in[2], *beta = n->in[3];
	const struct layernorm_attr *a = n->attr;

	if (graph_expect(g, n,
			 (!delta || shape_equal(&delta->shape, &x->shape)) && is_gain_of(gamma, x) && a->rms == !beta &&
				 (!beta || shape_equal(&beta->shape, &gamma->shape)),
			 "expected x [R,C], delta [R,C], and gamma and beta whose length divides C") ||
	    graph_out(g, n, 0, TENSOR_TYPE(x->dtype, x->shape), "") ||
	    graph_out(g, n, 1, TENSOR_TYPE(x->dtype, SHAPE(layernorm_rows(x, gamma), 2)), ".stat"))
		return g->err.code;
	return delta ? graph_out(g, n, 2, TENSOR_TYPE(x->dtype, x->shape), ".sum") : 0;
}

static int layernorm_grad_shape(struct graph *g, struct node *n)
{
	const struct tensor *dy = n->in[0], *s = n->in[1], *stats = n->in[2], *gamma = n->in[3], *skip = n->in[4];
	const struct layernorm_attr *a = n->attr;

	if (graph_expect(g, n,
			 is_gain_of(gamma, s) && shape_equal(&dy->shape, &s->shape) && stats->shape.ndim == 2 &&
				 stats->shape.dim[0] == layernorm_rows(s, gamma) && stats->shape.dim[1] == 2 &&
				 (!skip || shape_equal(&skip->shape, &s->shape)) &&
				 (a->rms ? !n->out[2] : !n->out[1] == !n->out[2]),
			 "expected dy [R,C], s [R,C], stats [R,2], gamma [C] and skip [R,C]") ||
	    graph_out(g, n, 0, TENSOR_TYPE(dy->dtype, s->shape), "") ||
	    (n->out[1] && graph_out(g, n, 1, TENSOR_TYPE(dy->dtype, gamma->shape), "")))
		return g->err.code;
	return n->out[2] ? graph_out(g, n, 2, TENSOR_TYPE(dy->dtype, gamma->shape), "") : 0;
}

/* Adds the gradient of s: through the norm, plus what bypasses it. */
static struct node *add_layernorm_grad(struct graph *g, struct node *n, struct tensor *s, struct tensor *dy)
{
	struct tensor *gamma = n->in[2], *beta = n->in[3], *dgamma = NULL, *dbeta = NULL;
	struct layernorm_attr attr = *(const struct layernorm_attr *)n->attr;
	struct node *back;

	if (gamma->wants_grad || (beta && beta->wants_grad)) {
		dgamma = graph_param_grad(g, gamma);
		dbeta = beta ? graph_param_grad(g, beta) : NULL;
	}
	back = graph_node(g, &(struct node_spec){ .op = &op_layernorm_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, s, n->out[1], gamma, graph_grad_get(g, s)),
						  NODE_OUT(NULL, dgamma, dbeta),
						  NODE_ATTR(attr) });
	if (back && dgamma)
		graph_grad_add(g, gamma, dgamma);
	if (back && dbeta)
		graph_grad_add(g, beta, dbeta);
	return back;
}

static int layernorm_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *delta = n->in[1], *s = delta ? n->out[2] : x, *dy = graph_grad_get(g, n->out[0]);
	struct tensor *ds = delta ? graph_grad_get(g, s) : NULL; /* the whole gradient if only the sum is used */
	struct node *back;

	back = dy ? add_layernorm_grad(g, n, s, dy) : NULL;
	if (dy)
		ds = back ? back->out[0] : NULL;
	if (delta)
		graph_grad_add(g, delta, ds);
	else if (ds)
		x->grad = NULL; /* ds includes the earlier gradient of x */
	graph_grad_add(g, x, ds);
	return g->err.code;
}

static enum dtype_class layernorm_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	return (is_out ? index == 1 : index >= 2) ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

static enum dtype_class layernorm_grad_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	return (is_out ? index >= 1 : index == 2 || index == 3) ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

/* y may overwrite delta, or x without delta; the sum may overwrite x. */
static int layernorm_inplace(const struct node *n, int out)
{
	return out == 0 ? (n->in[1] ? 1 : 0) : out == 2 ? 0 : -1;
}

static int layernorm_grad_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : -1;
}

static void layernorm_dump(const struct node *n, struct buf *out)
{
	const struct layernorm_attr *a = n->attr;

	if (a->rms)
		buf_addf(out, " rms eps=%g shift=%g", a->eps, a->shift);
}

const struct op op_layernorm = {
	.name = "layernorm",
	.id = OP_layernorm,
	.recompute = RECOMPUTE_CHEAP,
	.shape = layernorm_shape,
	.grad = layernorm_backward,
	.dtype = layernorm_dtype,
	.inplace = layernorm_inplace,
	.dump = layernorm_dump,
};

const struct op op_layernorm_grad = {
	.name = "layernorm_grad",
	.id = OP_layernorm_grad,
	.shape = layernorm_grad_shape,
	.dtype = layernorm_grad_dtype,
	.inplace = layernorm_grad_inplace,
	.dump = layernorm_dump,
};

/* ---- ref ----
 * Layer normalisation, row by row. */

/* Mean and rstd of a row, in two passes. */
static void compute_row_mean_rstd(const struct layernorm_attr *a, const double *s, int64_t c, double stats[2])
{
	double sum = 0, squares = 0;

	for (int64_t i = 0; !a->rms && i < c; i++)
		sum += s[i];
	stats[0] = sum / (double)c;
	for (int64_t i = 0; i < c; i++)
		squares += (s[i] - stats[0]) * (s[i] - stats[0]);
	stats[1] = 1 / sqrt(squares / (double)c + a->eps);
}

static void run_layernorm_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct layernorm_attr *a = n->attr;
	int64_t rows = layernorm_rows(n->in[0], n->in[2]), c = n->in[2]->shape.dim[0];
	const double *x = args->in[0], *delta = args->in[1], *gamma = args->in[2], *beta = args->in[3];
	double *y = args->out[0], *stats = args->out[1], *sum = args->out[2];

	for (int64_t r = 0; r < rows; r++) {
		const double *s = delta ? sum + r * c : x + r * c;

		for (int64_t i = 0; delta && i < c; i++)
			sum[r * c + i] = x[r * c + i] + delta[r * c + i];
		compute_row_mean_rstd(a, s, c, stats + 2 * r);
		for (int64_t i = 0; i < c; i++)
			y[r * c + i] =
				(s[i] - stats[2 * r]) * stats[2 * r + 1] * (gamma[i] + a->shift) + (beta ? beta[i] : 0);
	}
}

/* With h the normalised row and d = dy gamma: ds = rstd (d - mean(d) - h mean(d h)), of RMS norm without mean(d). */
static void run_layernorm_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct layernorm_attr *a = n->attr;
	int64_t rows = layernorm_rows(n->in[1], n->in[3]), c = n->in[3]->shape.dim[0];
	const double *dy = args->in[0], *s = args->in[1], *stats = args->in[2], *gamma = args->in[3];
	const double *skip = args->in[4];
	double *ds = args->out[0], *dgamma = args->out[1], *dbeta = args->out[2];

	if (dgamma)
		memset(dgamma, 0, tensor_bytes(n->out[1]));
	if (dbeta)
		memset(dbeta, 0, tensor_bytes(n->out[2]));
	for (int64_t r = 0; r < rows; r++, dy += c, s += c, stats += 2, ds += c, skip += skip ? c : 0) {
		double mean_d = 0, mean_dh = 0;

		for (int64_t i = 0; i < c; i++) {
			double h = (s[i] - stats[0]) * stats[1], d = dy[i] * (gamma[i] + a->shift);

			mean_d += a->rms ? 0 : d / (double)c;
			mean_dh += d * h / (double)c;
			if (dgamma)
				dgamma[i] += dy[i] * h;
			if (dbeta)
				dbeta[i] += dy[i];
		}
		for (int64_t i = 0; i < c; i++) {
			double h = (s[i] - stats[0]) * stats[1];

			ds[i] = stats[1] * (dy[i] * (gamma[i] + a->shift) - mean_d - h * mean_dh) +
				(skip ? skip[i] : 0);
		}
	}
}

const struct kernel layernorm_ref = REF_KERNEL(run_layernorm_ref);
const struct kernel layernorm_grad_ref = REF_KERNEL(run_layernorm_grad_ref);
