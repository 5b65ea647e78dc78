/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm_cases.c: test cases of layernorm and layernorm_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/layernorm/layernorm.h"

#define LAYERNORM_ROUNDINGS 16

enum { R, C, JOINED, OFFSET, GROUP /* RMS norm of runs of this length; 0: layer norm */ };

/* The length of what is normalised. */
static int64_t count_run(const struct op_case *c)
{
	return c->size[GROUP] ? c->size[GROUP] : c->size[C];
}

static struct layernorm_attr make_layernorm_attr(const struct op_case *c)
{
	return c->size[GROUP] ? (struct layernorm_attr){ 1e-6, 1, true }
			      : (struct layernorm_attr){ LAYERNORM_EPS, 0, false };
}

static struct node *build_layernorm_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[R], c->size[C]), run = SHAPE(count_run(c));
	struct layernorm_attr attr = make_layernorm_attr(c);
	struct tensor *beta = c->size[GROUP] ? NULL : case_input(g, "beta", DTYPE_F32, run);
	struct tensor *delta = c->size[JOINED] ? case_input(g, "delta", DTYPE_F32, shape) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_layernorm,
						  NODE_OUT(NULL, NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, shape), delta,
							  case_input(g, "gamma", DTYPE_F32, run), beta) });
}

static struct tensor *add_param_grad_input(struct graph *g, const char *name, const struct op_case *c)
{
	return c->size[JOINED] ? case_input(g, name, DTYPE_F32, SHAPE(count_run(c))) : NULL;
}

static struct node *build_layernorm_grad_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[R], c->size[C]);
	struct tensor *skip = c->size[JOINED] ? case_input(g, "skip", DTYPE_F32, shape) : NULL;
	struct layernorm_attr attr = make_layernorm_attr(c);
	struct tensor *dbeta = c->size[GROUP] ? NULL : add_param_grad_input(g, "dbeta", c);

	return graph_node(
		g, &(struct node_spec){
			   .op = &op_layernorm_grad,
			   NODE_OUT(NULL, add_param_grad_input(g, "dgamma", c), dbeta),
			   NODE_ATTR(attr),
			   NODE_IN(case_input(g, "dy", DTYPE_F32, shape), case_input(g, "s", DTYPE_F32, shape),
				   case_input(g, "stats", DTYPE_F32, SHAPE(c->size[R] * c->size[C] / count_run(c), 2)),
				   case_input(g, "gamma", DTYPE_F32, SHAPE(count_run(c))), skip) });
}

/* A mean far from 0 reveals variances computed as a difference of squares. */
static void fill_layernorm_far_mean(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[R] * c->size[C]; i++)
		if (fabs(v->in[0][i]) < 50)
			v->in[0][i] += (double)c->size[OFFSET];
}

static void compute_row_stats(const struct layernorm_attr *a, const double *s, int64_t c, double *stats)
{
	double mean = 0, squares = 0;

	for (int64_t i = 0; !a->rms && i < c; i++)
		mean += s[i] / (double)c;
	for (int64_t i = 0; i < c; i++)
		squares += (s[i] - mean) * (s[i] - mean);
	stats[0] = mean;
	stats[1] = 1 / sqrt(squares / (double)c + a->eps);
}

static void fill_layernorm_stats(const struct op_case *c, struct case_values *v)
{
	const struct layernorm_attr attr = make_layernorm_attr(c);
	const int64_t run = count_run(c);

	for (int64_t r = 0; r < c->size[R] * c->size[C] / run; r++)
		compute_row_stats(&attr, v->in[1] + r * run, run, v->in[2] + 2 * r);
}

/* Absolute terms of each output, derived from the largest value and rstd of the row. */
static double bound_layernorm_error(const struct case_values *v, int k, double *terms)
{
	const struct layernorm_attr *a = v->node->attr;
	int64_t rows = layernorm_rows(v->node->in[0], v->node->in[2]), c = v->node->in[2]->shape.dim[0];

	for (int64_t r = 0; r < rows; r++) {
		double most = 0, rstd = v->out[1][2 * r + 1];

		for (int64_t i = 0; i < c; i++)
			most = fmax(most, fabs(v->in[0][r * c + i]) + (v->in[1] ? fabs(v->in[1][r * c + i]) : 0));
		if (k == 1) {
			terms[2 * r] = most;
			terms[2 * r + 1] = rstd * (1 + rstd * most);
		}
		for (int64_t i = 0; k != 1 && i < c; i++) {
			double h = most * rstd;

			terms[r * c + i] = k == 2 ? most
						  : h * (1 + h) * (fabs(v->in[2][i]) + a->shift) +
							    (a->rms ? 0 : fabs(v->in[3][i]));
		}
	}
	return LAYERNORM_ROUNDINGS + sqrt((double)c);
}

/* Absolute terms of ds, dgamma and dbeta. */
static double bound_layernorm_grad_error(const struct case_values *v, int k, double *terms)
{
	const struct layernorm_attr *a = v->node->attr;
	int64_t rows = layernorm_rows(v->node->in[1], v->node->in[3]), c = v->node->in[3]->shape.dim[0];

	for (int64_t i = 0; k > 0 && i < c; i++)
		terms[i] = 0;
	for (int64_t r = 0; r < rows; r++) {
		const double *stats = v->in[2] + 2 * r;
		double d_most = 0, h_most = 0;

		for (int64_t i = 0; i < c; i++) {
			double h = (fabs(v->in[1][r * c + i]) + fabs(stats[0])) * stats[1],
			       dy = fabs(v->in[0][r * c + i]);

			d_most = fmax(d_most, dy * (fabs(v->in[3][i]) + a->shift));
			h_most = fmax(h_most, h);
			if (k > 0)
				terms[i] += k == 1 ? dy * h : dy;
		}
		for (int64_t i = 0; k == 0 && i < c; i++)
			terms[r * c + i] =
				stats[1] * d_most * (2 + h_most * h_most) + (v->in[4] ? fabs(v->in[4][r * c + i]) : 0);
	}
	return LAYERNORM_ROUNDINGS + (k ? (double)rows : sqrt((double)c));
}

const struct op_case cases_layernorm[] = {
	{ "no rows", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 0, 8, 1 } },
	{ "one column", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 3, 1 } },
	{ "odd sizes", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 7, 37 } },
	{ "odd sizes, joined", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 7, 37, 1 } },
	{ "far mean", .build = build_layernorm_case, .fill = fill_layernorm_far_mean, .bound = bound_layernorm_error,
	  .size = { 5, 64, 0, 100 } },
	{ "wide, joined", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 33, 768, 1 } },
	{ "wider, odd", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 3, 1037, 1 } },
	{ "wider", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 3, 2064 } },
	{ "RMS", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 7, 37, 1, 0, 37 } },
	{ "RMS of heads", .build = build_layernorm_case, .bound = bound_layernorm_error, .size = { 9, 192, 0, 0, 64 } },
	{ "RMS, wider", .build = build_layernorm_case, .bound = bound_layernorm_error,
	  .size = { 3, 2064, 1, 0, 2064 } },
	{ NULL },
};

const struct op_case cases_layernorm_grad[] = {
	{ "no rows", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 0, 8, 1 } },
	{ "one column", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 3, 1, 1 } },
	{ "odd sizes", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 7, 37 } },
	{ "odd sizes, joined", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 7, 37, 1 } },
	{ "wide, joined", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 33, 768, 1 } },
	{ "many rows", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 1234, 24, 1 } },
	{ "wider, odd", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 3, 1037, 1 } },
	{ "wider, joined", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 35, 2064, 1 } },
	{ "RMS", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats, .bound = bound_layernorm_grad_error,
	  .size = { 7, 37, 1, 0, 37 } },
	{ "RMS of heads", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 9, 192, 1, 0, 64 } },
	{ "RMS, wider", .build = build_layernorm_grad_case, .fill = fill_layernorm_stats,
	  .bound = bound_layernorm_grad_error, .size = { 35, 2064, 1, 0, 2064 } },
	{ NULL },
};
