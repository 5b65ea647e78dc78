/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead.c: shape rule and gradients of the classifier with its loss. */
#include "trainer/ops/lmhead/lmhead.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"
#include "trainer/ops/xent/xent.h"

static struct tensor *add_kept(struct graph *g, enum dtype dtype, struct shape shape, const char *name)
{
	struct tensor *t = graph_act(g, dtype, shape, "%s", name);

	if (t)
		t->keep = true;
	return t;
}

struct tensor *lmhead_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *targets,
			  const struct lmhead_opts *o)
{
	struct tensor *result, *logits = NULL, *best = NULL;

	if (graph_failed(g))
		return NULL;
	result = graph_tensor(g, &(struct tensor){ .name = "result",
						   .kind = TENSOR_RESULT,
						   .dtype = DTYPE_F64,
						   .shape = SHAPE(XENT_RESULTS),
						   .life = LIFE_STEP });
	if (o->logits)
		logits = add_kept(g, x->dtype, SHAPE(x->shape.dim[0], w->shape.dim[0]), "logits");
	if (o->best)
		best = add_kept(g, DTYPE_I32, SHAPE(x->shape.dim[0]), "best");
	if (!graph_node(g, &(struct node_spec){ .op = &op_lmhead,
						.name = "loss",
						NODE_ATTR(o->attr),
						NODE_IN(x, w, targets),
						NODE_OUT(result, NULL, NULL, logits, NULL, best) }))
		return NULL;
	g->loss = result;
	return result;
}

static int lmhead_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *w = n->in[1], *targets = n->in[2];

	if (graph_expect(g, n,
			 x->shape.ndim == 2 && w->shape.ndim == 2 && x->shape.dim[1] == w->shape.dim[1] &&
				 w->shape.dim[0] >= 1 && targets->dtype == DTYPE_I32 &&
				 shape_count(&targets->shape) == x->shape.dim[0],
			 "expected x [R,C], w [V,C] and targets i32 [R]") ||
	    graph_out(g, n, LMHEAD_RESULT, TENSOR_TYPE(DTYPE_F64, SHAPE(XENT_RESULTS)), ".result") ||
	    (n->out[LMHEAD_DX] && graph_out(g, n, LMHEAD_DX, TENSOR_TYPE(x->dtype, x->shape), "")) ||
	    (n->out[LMHEAD_DW] && graph_out(g, n, LMHEAD_DW, TENSOR_TYPE(w->dtype, w->shape), "")))
		return g->err.code;
	if (n->out[LMHEAD_LOGITS] &&
	    graph_out(g, n, LMHEAD_LOGITS, TENSOR_TYPE(x->dtype, SHAPE(x->shape.dim[0], w->shape.dim[0])), ""))
		return g->err.code;
	if (n->out[LMHEAD_BEST])
		graph_out(g, n, LMHEAD_BEST, TENSOR_TYPE(DTYPE_I32, SHAPE(x->shape.dim[0])), "");
	if (n->out[LMHEAD_LOSSES])
		graph_out(g, n, LMHEAD_LOSSES, TENSOR_TYPE(DTYPE_F64, SHAPE(x->shape.dim[0])), "");
	return g->err.code;
}

/* Adds the gradient outputs to the node itself. */
static int lmhead_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *w = n->in[1];

	if (n->out[LMHEAD_RESULT] != g->loss)
		return 0;
	n->phase = PHASE_BACKWARD;
	if (x->wants_grad) {
		n->out[LMHEAD_DX] = graph_act(g, x->dtype, x->shape, "%s.dx", n->name);
		if (n->out[LMHEAD_DX])
			n->out[LMHEAD_DX]->producer = n;
		graph_grad_add(g, x, n->out[LMHEAD_DX]);
	}
	if (w->wants_grad) {
		n->out[LMHEAD_DW] = graph_param_grad(g, w);
		if (n->out[LMHEAD_DW])
			n->out[LMHEAD_DW]->producer = n;
		graph_grad_add(g, w, n->out[LMHEAD_DW]);
	}
	return g->err.code;
}

static enum dtype_class lmhead_dtype(const struct node *n, bool is_out, int index)
{
	(void)n;
	if (!is_out || index == LMHEAD_DX)
		return DTYPE_CLASS_LOW;
	return index == LMHEAD_RESULT || index == LMHEAD_LOSSES || index == LMHEAD_BEST ? DTYPE_CLASS_KEEP
											: DTYPE_CLASS_MASTER;
}

static double lmhead_flops(const struct node *n)
{
	double product = 2 * (double)n->in[0]->shape.dim[0] * (double)shape_count(&n->in[1]->shape);

	return product * (1 + !!n->out[LMHEAD_DX] + !!n->out[LMHEAD_DW]);
}

const struct op op_lmhead = {
	.name = "lmhead",
	.id = OP_lmhead,
	.shape = lmhead_shape,
	.grad = lmhead_backward,
	.dtype = lmhead_dtype,
	.flops = lmhead_flops,
};

/* ---- ref ----
 * The classifier with its loss, one row at a time. */

static int prepare_lmhead_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	n->workspace_bytes = (size_t)n->in[1]->shape.dim[0] * sizeof(double);
	return ref_prepare(env, n, ret_state, err);
}

struct lmhead_ref_row {
	const double *x, *w;
	double *dx, *dw;
	int64_t c, v;
	double cap;
	int32_t target;
};

/* Computes the logits of one row; returns log sum exp. */
static double compute_row_logits(const struct lmhead_ref_row *r, double *logits)
{
	const int64_t v = r->v;
	double max = -INFINITY, sum = 0;

	for (int64_t j = 0; j < v; j++) {
		logits[j] = ref_dot(r->x, r->w + j * r->c, r->c);
		if (r->cap > 0)
			logits[j] = r->cap * tanh(logits[j] / r->cap);
		if (!(logits[j] <= max))
			max = logits[j];
	}
	for (int64_t j = 0; j < v; j++)
		sum += exp(logits[j] - max);
	return max + log(sum);
}

/* Adds dlogits = scale (softmax - onehot) to dx and dw at once. */
static void apply_logit_grads(const struct lmhead_ref_row *r, const double *logits, double lse, double scale)
{
	if (r->dx)
		memset(r->dx, 0, (size_t)r->c * sizeof(double));
	for (int64_t j = 0; r->target >= 0 && j < r->v; j++) {
		const double bent = r->cap > 0 ? logits[j] / r->cap : 0;
		double d = scale * (exp(logits[j] - lse) - (j == r->target)) * (1 - bent * bent);

		if (r->dx)
			ref_axpy(r->dx, d, r->w + j * r->c, r->c);
		if (r->dw)
			ref_axpy(r->dw + j * r->c, d, r->x, r->c);
	}
}

static int32_t find_best_word(const double *logits, int64_t v)
{
	int64_t best = 0;

	for (int64_t j = 1; j < v; j++)
		if (logits[j] > logits[best])
			best = j;
	return (int32_t)best;
}

/* Per row: logits, gradients, then loss and count. */
static void run_lmhead_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	int64_t rows = n->in[0]->shape.dim[0];
	struct lmhead_ref_row r = {
		.w = args->in[1], .dw = args->out[LMHEAD_DW], .c = n->in[0]->shape.dim[1], .cap = lmhead_cap(n)
	};
	double *result = args->out[LMHEAD_RESULT], *kept = args->out[LMHEAD_LOGITS], *dx = args->out[LMHEAD_DX];
	double *losses = args->out[LMHEAD_LOSSES];
	int32_t *best = args->out[LMHEAD_BEST];
	double scale = args->page->inv_count * args->page->loss_scale;

	r.v = n->in[1]->shape.dim[0];
	memset(result, 0, XENT_RESULTS * sizeof(*result));
	if (r.dw)
		memset(r.dw, 0, tensor_bytes(n->out[LMHEAD_DW]));
	for (int64_t i = 0; i < rows; i++) {
		double *logits = kept ? kept + i * r.v : args->workspace, lse;

		r.x = (const double *)args->in[0] + i * r.c;
		r.dx = dx ? dx + i * r.c : NULL;
		r.target = ((const int32_t *)args->in[2])[i];
		lse = compute_row_logits(&r, logits);
		apply_logit_grads(&r, logits, lse, scale);
		if (losses)
			losses[i] = r.target < 0 ? 0 : lse - logits[r.target];
		if (best)
			best[i] = r.target < 0 ? 0 : find_best_word(logits, r.v);
		if (r.target < 0)
			continue;
		result[XENT_LOSS_SUM] += lse - logits[r.target];
		result[XENT_COUNT] += 1;
	}
}

const struct kernel lmhead_ref = { .prepare = prepare_lmhead_ref, .run = run_lmhead_ref };
