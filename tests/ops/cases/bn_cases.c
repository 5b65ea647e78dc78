/* SPDX-License-Identifier: Apache-2.0 */
/* bn_cases.c: test cases of the batch norm ops. Most take statistics as inputs, so these are made up rather than
 * computed: various means and variances, and a count above the rank's own pixels, as after a reduction over ranks. */

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"

#define BN_ROUNDINGS 12
#define BN_EPS 1e-5

enum { N, H, W, C, RELU, RESIDUAL, WRITE_G, DY2, OTHERS /* pixels of other ranks */ };

static struct shape make_x_shape(const struct op_case *c)
{
	return SHAPE(c->size[N], c->size[H], c->size[W], c->size[C]);
}

static int64_t count_case_pixels(const struct op_case *c)
{
	return c->size[N] * c->size[H] * c->size[W];
}

static struct bn_attr make_bn_attr(const struct op_case *c)
{
	return (struct bn_attr){ .eps = BN_EPS,
				 .momentum = 0.1,
				 .relu = c->size[RELU],
				 .residual = c->size[RESIDUAL],
				 .write_g = c->size[WRITE_G] };
}

static struct tensor *add_vector_input(struct graph *g, const char *name, int64_t n)
{
	return case_input(g, name, DTYPE_F32, SHAPE(n));
}

static struct tensor *add_sums_input(struct graph *g, const char *name, int64_t n)
{
	return case_input(g, name, DTYPE_F64, SHAPE(n));
}

static struct tensor *add_input_like_x(struct graph *g, const struct op_case *c, const char *name, bool there)
{
	return there ? case_input(g, name, DTYPE_F32, make_x_shape(c)) : NULL;
}

static struct node *build_bn_stats_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_stats,
						  NODE_IN(add_input_like_x(g, c, "x", true)),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
}

static struct node *build_bn_apply_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){
				     .op = &op_bn_apply,
				     NODE_OUT(NULL),
				     NODE_ATTR(attr),
				     NODE_IN(add_input_like_x(g, c, "x", true), add_sums_input(g, "stat", 2 * ch + 1),
					     add_vector_input(g, "gamma", ch), add_vector_input(g, "beta", ch),
					     add_input_like_x(g, c, "residual", attr.residual)) });
}

static struct node *build_bn_running_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);
	int64_t ch = c->size[C];
	struct tensor *mean = add_vector_input(g, "mean", ch), *var = add_vector_input(g, "var", ch);
	struct tensor *next_mean = add_vector_input(g, "next_mean", ch),
		      *next_var = add_vector_input(g, "next_var", ch);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_running,
						  NODE_OUT(next_mean, next_var),
						  NODE_ATTR(attr),
						  NODE_IN(add_sums_input(g, "stat", 2 * ch + 1), mean, var, next_mean,
							  next_var) });
}

static struct node *build_bn_keep_case(struct graph *g, const struct op_case *c)
{
	int64_t ch = c->size[0];
	struct tensor *mean = add_vector_input(g, "mean", ch), *var = add_vector_input(g, "var", ch);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_keep,
						  NODE_OUT(mean, var),
						  NODE_IN(add_sums_input(g, "step", STEP_GUARD_STEP_VALUES),
							  add_vector_input(g, "next_mean", ch),
							  add_vector_input(g, "next_var", ch), mean, var) });
}

static struct node *build_bn_fixed_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);
	int64_t ch = c->size[C];

	return graph_node(
		g, &(struct node_spec){ .op = &op_bn_fixed,
					NODE_OUT(NULL),
					NODE_ATTR(attr),
					NODE_IN(add_vector_input(g, "mean", ch), add_vector_input(g, "var", ch)) });
}

static struct node *build_bn_grad_stats_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);
	int64_t ch = c->size[C];

	return graph_node(
		g, &(struct node_spec){
			   .op = &op_bn_grad_stats,
			   NODE_OUT(NULL, NULL),
			   NODE_ATTR(attr),
			   NODE_IN(add_input_like_x(g, c, "dy", true), add_input_like_x(g, c, "dy2", c->size[DY2]),
				   add_input_like_x(g, c, "x", true), add_sums_input(g, "stat", 2 * ch + 1),
				   add_vector_input(g, "gamma", ch), add_vector_input(g, "beta", ch),
				   add_input_like_x(g, c, "y", attr.relu && attr.residual)) });
}

static struct node *build_bn_grad_apply_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){
				     .op = &op_bn_grad_apply,
				     NODE_OUT(NULL),
				     NODE_ATTR(attr),
				     NODE_IN(add_input_like_x(g, c, "g", true), add_input_like_x(g, c, "x", true),
					     add_sums_input(g, "stat", 2 * ch + 1), add_sums_input(g, "dstat", 2 * ch),
					     add_vector_input(g, "gamma", ch), add_vector_input(g, "beta", ch)) });
}

static struct node *build_bn_grad_params_case(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = make_bn_attr(c);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_grad_params,
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(add_sums_input(g, "dstat", 2 * c->size[C])) });
}

/* Sums that give means of about +-1 and variances of 0.5 to 2. */
static void fill_bn_stat(const struct op_case *c, double *stat)
{
	int64_t ch = c->size[C];
	double count = (double)(count_case_pixels(c) + c->size[OTHERS]);

	for (int64_t i = 0; i < ch; i++) {
		double mean = (double)(i * 37 % 17 - 8) / 8, var = 0.5 + (double)(i * 11 % 13) / 8;

		stat[i] = mean * count;
		stat[ch + i] = (var + mean * mean) * count;
	}
	stat[2 * ch] = count;
}

/* Moves x away from values where rounding could flip ReLU's mask. */
static void avoid_edge(double *x, const double *stat, const double *gamma, const double *beta, const struct op_case *c)
{
	int64_t ch = c->size[C];

	for (int64_t i = 0; i < count_case_pixels(c) * ch; i++) {
		struct bn_channel b = bn_channel_of(stat, ch, i % ch, BN_EPS);

		while (fabs(gamma[i % ch] * (x[i] - b.mean) * b.rstd + beta[i % ch]) < 0.06)
			x[i] += 0.5;
	}
}

/* Gains away from 0, so that avoid_edge's steps cross the edge. */
static void fill_bn_gamma(const struct op_case *c, double *gamma)
{
	for (int64_t i = 0; i < c->size[C]; i++)
		gamma[i] = (i % 3 ? 1 : -1) * (0.5 + (double)(i * 7 % 11) / 8);
}

static void fill_bn_apply(const struct op_case *c, struct case_values *v)
{
	fill_bn_stat(c, v->in[1]);
}

static void fill_bn_running(const struct op_case *c, struct case_values *v)
{
	fill_bn_stat(c, v->in[0]);
	for (int64_t i = 0; i < c->size[C]; i++)
		v->in[2][i] = fabs(v->in[2][i]), v->in[4][i] = fabs(v->in[4][i]);
}

/* size: channels, skipped. */
static void fill_bn_keep(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[0], 3);
	v->in[0][STEP_GUARD_SKIP] = (double)c->size[1];
}

static void fill_bn_fixed(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[C]; i++)
		v->in[1][i] = fabs(v->in[1][i]);
}

static void fill_bn_grad_stats(const struct op_case *c, struct case_values *v)
{
	fill_bn_stat(c, v->in[3]);
	fill_bn_gamma(c, v->in[4]);
	if (c->size[RELU] && !c->size[RESIDUAL])
		avoid_edge(v->in[2], v->in[3], v->in[4], v->in[5], c);
	for (int64_t i = 0; v->in[6] && i < count_case_pixels(c) * c->size[C]; i++)
		v->in[6][i] = v->in[6][i] > 0 ? v->in[6][i] : 0;
}

static void fill_bn_grad_apply(const struct op_case *c, struct case_values *v)
{
	fill_bn_stat(c, v->in[2]);
	fill_bn_gamma(c, v->in[4]);
	if (c->size[RELU])
		avoid_edge(v->in[1], v->in[2], v->in[4], v->in[5], c);
}

/* |gamma| (|x| + |mean|) rstd + |beta| + |residual|. */
static double bound_bn_apply_error(const struct case_values *v, int k, double *terms)
{
	int64_t ch = v->node->in[0]->shape.dim[3];

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		struct bn_channel b = bn_channel_of(v->in[1], ch, i % ch, BN_EPS);

		terms[i] = fabs(v->in[2][i % ch]) * (fabs(v->in[0][i]) + fabs(b.mean)) * b.rstd +
			   fabs(v->in[3][i % ch]) + (v->in[4] ? fabs(v->in[4][i]) : 0);
	}
	return BN_ROUNDINGS;
}

static double bound_bn_fixed_error(const struct case_values *v, int k, double *terms)
{
	for (int64_t i = 0; i < case_count(v->node->out[k]); i++)
		terms[i] = fabs(v->out[k][i]);
	return 4;
}

static double bound_bn_running_error(const struct case_values *v, int k, double *terms)
{
	for (int64_t i = 0; i < case_count(v->node->in[1]); i++)
		terms[i] = fabs(v->in[k + 3][i]) + fabs(v->out[k][i]);
	return 4;
}

/* Sums over pixels of |g| and |g| (|x| + |mean|) rstd; g itself is a sum of two gradients. */
static double bound_bn_grad_stats_error(const struct case_values *v, int k, double *terms)
{
	int64_t ch = v->node->in[2]->shape.dim[3], n = case_count(v->node->in[2]);

	for (int64_t i = 0; k == 0 && i < 2 * ch; i++)
		terms[i] = 0;
	for (int64_t i = 0; i < n; i++) {
		struct bn_channel b = bn_channel_of(v->in[3], ch, i % ch, BN_EPS);
		double g = fabs(v->in[0][i]) + (v->in[1] ? fabs(v->in[1][i]) : 0);

		if (k == 1) {
			terms[i] = g;
			continue;
		}
		terms[i % ch] += g;
		terms[ch + i % ch] += g * (fabs(v->in[2][i]) + fabs(b.mean)) * b.rstd;
	}
	return k == 1 ? 2 : BN_ROUNDINGS + (double)n / (double)ch;
}

static double bound_bn_grad_apply_error(const struct case_values *v, int k, double *terms)
{
	int64_t ch = v->node->in[1]->shape.dim[3];
	double count = v->in[2][2 * ch];

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[1]); i++) {
		int64_t c = i % ch;
		struct bn_channel b = bn_channel_of(v->in[2], ch, c, BN_EPS);
		double xhat = (fabs(v->in[1][i]) + fabs(b.mean)) * b.rstd;

		terms[i] = fabs(v->in[4][c]) * b.rstd *
			   (fabs(v->in[0][i]) + fabs(v->in[3][c] / count) + xhat * fabs(v->in[3][ch + c] / count));
	}
	return BN_ROUNDINGS;
}

static double bound_bn_params_error(const struct case_values *v, int k, double *terms)
{
	for (int64_t i = 0; i < case_count(v->node->out[k]); i++)
		terms[i] = 0;
	return 1;
}

#define SHAPES(b, f, bd)                                                                                               \
	{ "no images, others have some", .build = (b), .fill = (f), .bound = (bd),                                     \
	  .size = { 0, 5, 5, 16, [OTHERS] = 12 } },                                                                    \
		{ "no images anywhere", .build = (b), .fill = (f), .bound = (bd), .size = { 0, 5, 5, 16 } },           \
		{ "one pixel", .build = (b), .fill = (f), .bound = (bd), .size = { 1, 1, 1, 3, [OTHERS] = 5 } },       \
		{ "plain", .build = (b), .fill = (f), .bound = (bd), .size = { 4, 7, 5, 64 } },                        \
		{ "odd channels", .build = (b), .fill = (f), .bound = (bd), .size = { 3, 5, 7, 29, [OTHERS] = 31 } },  \
		{ "many channels", .build = (b), .fill = (f), .bound = (bd), .size = { 2, 3, 3, 2048 } },              \
		{ "many odd channels", .build = (b), .fill = (f), .bound = (bd), .size = { 1, 16, 15, 2049 } },        \
	{                                                                                                              \
		"many pixels", .build = (b), .fill = (f), .bound = (bd), .size = { 8, 28, 28, 16 }                     \
	}

const struct op_case cases_bn_stats[] = {
	SHAPES(build_bn_stats_case, NULL, NULL),
	{ "very many pixels", .build = build_bn_stats_case, .size = { 11, 28, 28, 64 } },
	{ NULL },
};

const struct op_case cases_bn_running[] = {
	SHAPES(build_bn_running_case, fill_bn_running, bound_bn_running_error),
	{ "a single value", .build = build_bn_running_case, .fill = fill_bn_running, .bound = bound_bn_running_error,
	  .size = { 1, 1, 1, 5 } },
	{ NULL },
};

const struct op_case cases_bn_keep[] = {
	{ "kept", .build = build_bn_keep_case, .fill = fill_bn_keep, .exact = true, .size = { 29, 0 } },
	{ "skipped", .build = build_bn_keep_case, .fill = fill_bn_keep, .exact = true, .size = { 29, 1 } },
	{ NULL },
};

const struct op_case cases_bn_fixed[] = {
	{ "plain", .build = build_bn_fixed_case, .fill = fill_bn_fixed, .bound = bound_bn_fixed_error,
	  .size = { 1, 1, 1, 64 } },
	{ "odd channels", .build = build_bn_fixed_case, .fill = fill_bn_fixed, .bound = bound_bn_fixed_error,
	  .size = { 1, 1, 1, 29 } },
	{ NULL },
};

const struct op_case cases_bn_apply[] = {
	SHAPES(build_bn_apply_case, fill_bn_apply, bound_bn_apply_error),
	{ "relu", .build = build_bn_apply_case, .fill = fill_bn_apply, .bound = bound_bn_apply_error,
	  .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "residual", .build = build_bn_apply_case, .fill = fill_bn_apply, .bound = bound_bn_apply_error,
	  .size = { 3, 7, 5, 64, [RESIDUAL] = 1 } },
	{ "residual and relu", .build = build_bn_apply_case, .fill = fill_bn_apply, .bound = bound_bn_apply_error,
	  .size = { 3, 7, 5, 37, [RELU] = 1, [RESIDUAL] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_stats[] = {
	SHAPES(build_bn_grad_stats_case, fill_bn_grad_stats, bound_bn_grad_stats_error),
	{ "relu", .build = build_bn_grad_stats_case, .fill = fill_bn_grad_stats, .bound = bound_bn_grad_stats_error,
	  .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "relu, two gradients", .build = build_bn_grad_stats_case, .fill = fill_bn_grad_stats,
	  .bound = bound_bn_grad_stats_error, .size = { 3, 7, 5, 37, [RELU] = 1, [WRITE_G] = 1, [DY2] = 1 } },
	{ "residual and relu", .build = build_bn_grad_stats_case, .fill = fill_bn_grad_stats,
	  .bound = bound_bn_grad_stats_error, .size = { 3, 7, 5, 64, [RELU] = 1, [RESIDUAL] = 1, [WRITE_G] = 1 } },
	{ "residual and relu, two gradients", .build = build_bn_grad_stats_case, .fill = fill_bn_grad_stats,
	  .bound = bound_bn_grad_stats_error,
	  .size = { 3, 7, 5, 37, [RELU] = 1, [RESIDUAL] = 1, [WRITE_G] = 1, [DY2] = 1 } },
	{ "two gradients", .build = build_bn_grad_stats_case, .fill = fill_bn_grad_stats,
	  .bound = bound_bn_grad_stats_error, .size = { 3, 7, 5, 37, [WRITE_G] = 1, [DY2] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_apply[] = {
	SHAPES(build_bn_grad_apply_case, fill_bn_grad_apply, bound_bn_grad_apply_error),
	{ "relu", .build = build_bn_grad_apply_case, .fill = fill_bn_grad_apply, .bound = bound_bn_grad_apply_error,
	  .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "relu, whole vectors", .build = build_bn_grad_apply_case, .fill = fill_bn_grad_apply,
	  .bound = bound_bn_grad_apply_error, .size = { 3, 7, 5, 64, [RELU] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_params[] = {
	SHAPES(build_bn_grad_params_case, NULL, bound_bn_params_error),
	{ NULL },
};
