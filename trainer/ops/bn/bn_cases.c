/* bn_cases.c: test cases of the batch norm ops. Statistics are inputs of most of them, so they are drawn rather than
 * computed: mean and variance of any size, and a count above the own pixels, as a reduction over ranks leaves it. */
#include <math.h>

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/cases.h"
#include "trainer/ops/step_guard/step_guard.h"

#define BN_ROUNDINGS 12
#define BN_EPS 1e-5

enum { N, H, W, C, RELU, RESIDUAL, WRITE_G, DY2, OTHERS /* pixels of other ranks */ };

static struct shape x_shape(const struct op_case *c)
{
	return SHAPE(c->size[N], c->size[H], c->size[W], c->size[C]);
}

static int64_t pixels(const struct op_case *c)
{
	return c->size[N] * c->size[H] * c->size[W];
}

static struct bn_attr attr_of(const struct op_case *c)
{
	return (struct bn_attr){ .eps = BN_EPS,
				 .momentum = 0.1,
				 .relu = c->size[RELU],
				 .residual = c->size[RESIDUAL],
				 .write_g = c->size[WRITE_G] };
}

static struct tensor *vector(struct graph *g, const char *name, int64_t n)
{
	return case_input(g, name, DTYPE_F32, SHAPE(n));
}

static struct tensor *sums(struct graph *g, const char *name, int64_t n)
{
	return case_input(g, name, DTYPE_F64, SHAPE(n));
}

static struct tensor *like_x(struct graph *g, const struct op_case *c, const char *name, bool there)
{
	return there ? case_input(g, name, DTYPE_F32, x_shape(c)) : NULL;
}

static struct node *build_stats(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);

	return graph_node(
		g, &(struct node_spec){
			   .op = &op_bn_stats, NODE_IN(like_x(g, c, "x", true)), NODE_OUT(NULL), NODE_ATTR(attr) });
}

static struct node *build_apply(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){ .op = &op_bn_apply,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(like_x(g, c, "x", true), sums(g, "stat", 2 * ch + 1),
							  vector(g, "gamma", ch), vector(g, "beta", ch),
							  like_x(g, c, "residual", attr.residual)) });
}

static struct node *build_running(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];
	struct tensor *mean = vector(g, "mean", ch), *var = vector(g, "var", ch);
	struct tensor *next_mean = vector(g, "next_mean", ch), *next_var = vector(g, "next_var", ch);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_running,
						  NODE_OUT(next_mean, next_var),
						  NODE_ATTR(attr),
						  NODE_IN(sums(g, "stat", 2 * ch + 1), mean, var, next_mean,
							  next_var) });
}

static struct node *build_keep(struct graph *g, const struct op_case *c)
{
	int64_t ch = c->size[0];
	struct tensor *mean = vector(g, "mean", ch), *var = vector(g, "var", ch);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_keep,
						  NODE_OUT(mean, var),
						  NODE_IN(sums(g, "step", STEP_GUARD_STEP_VALUES),
							  vector(g, "next_mean", ch), vector(g, "next_var", ch), mean,
							  var) });
}

static struct node *build_fixed(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){ .op = &op_bn_fixed,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(vector(g, "mean", ch), vector(g, "var", ch)) });
}

static struct node *build_infer(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];

	return graph_node(
		g, &(struct node_spec){ .op = &op_bn_infer,
					NODE_OUT(NULL),
					NODE_ATTR(attr),
					NODE_IN(like_x(g, c, "x", true), vector(g, "gamma", ch), vector(g, "beta", ch),
						vector(g, "mean", ch), vector(g, "var", ch),
						like_x(g, c, "residual", attr.residual)) });
}

static struct node *build_grad_stats(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){ .op = &op_bn_grad_stats,
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(like_x(g, c, "dy", true), like_x(g, c, "dy2", c->size[DY2]),
							  like_x(g, c, "x", true), sums(g, "stat", 2 * ch + 1),
							  vector(g, "gamma", ch), vector(g, "beta", ch),
							  like_x(g, c, "y", attr.relu && attr.residual)) });
}

static struct node *build_grad_apply(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);
	int64_t ch = c->size[C];

	return graph_node(g, &(struct node_spec){ .op = &op_bn_grad_apply,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(like_x(g, c, "g", true), like_x(g, c, "x", true),
							  sums(g, "stat", 2 * ch + 1), sums(g, "dstat", 2 * ch),
							  vector(g, "gamma", ch), vector(g, "beta", ch)) });
}

static struct node *build_grad_params(struct graph *g, const struct op_case *c)
{
	struct bn_attr attr = attr_of(c);

	return graph_node(g, &(struct node_spec){ .op = &op_bn_grad_params,
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(sums(g, "dstat", 2 * c->size[C])) });
}

/* Sums that belong to a mean of about +-1 and a variance of 0.5 to 2. */
static void fill_stat(const struct op_case *c, double *stat)
{
	int64_t ch = c->size[C];
	double count = (double)(pixels(c) + c->size[OTHERS]);

	for (int64_t i = 0; i < ch; i++) {
		double mean = (double)(i * 37 % 17 - 8) / 8, var = 0.5 + (double)(i * 11 % 13) / 8;

		stat[i] = mean * count;
		stat[ch + i] = (var + mean * mean) * count;
	}
	stat[2 * ch] = count;
}

/* Moves x away from where the rectifier's mask would flip on a rounding. */
static void avoid_edge(double *x, const double *stat, const double *gamma, const double *beta, const struct op_case *c)
{
	int64_t ch = c->size[C];

	for (int64_t i = 0; i < pixels(c) * ch; i++) {
		struct bn_channel b = bn_channel_of(stat, ch, i % ch, BN_EPS);

		while (fabs(gamma[i % ch] * (x[i] - b.mean) * b.rstd + beta[i % ch]) < 0.06)
			x[i] += 0.5;
	}
}

/* Gains away from 0, so that the step over the edge is a step. */
static void fill_gamma(const struct op_case *c, double *gamma)
{
	for (int64_t i = 0; i < c->size[C]; i++)
		gamma[i] = (i % 3 ? 1 : -1) * (0.5 + (double)(i * 7 % 11) / 8);
}

static void fill_apply(const struct op_case *c, struct case_values *v)
{
	fill_stat(c, v->in[1]);
}

static void fill_running(const struct op_case *c, struct case_values *v)
{
	fill_stat(c, v->in[0]);
	for (int64_t i = 0; i < c->size[C]; i++)
		v->in[2][i] = fabs(v->in[2][i]), v->in[4][i] = fabs(v->in[4][i]);
}

/* size: channels, skipped. */
static void fill_keep(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[0], 3);
	v->in[0][STEP_GUARD_SKIP] = (double)c->size[1];
}

static void fill_fixed(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[C]; i++)
		v->in[1][i] = fabs(v->in[1][i]);
}

static void fill_infer(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[C]; i++)
		v->in[4][i] = 0.25 + fabs(v->in[4][i]);
}

static void fill_grad_stats(const struct op_case *c, struct case_values *v)
{
	fill_stat(c, v->in[3]);
	fill_gamma(c, v->in[4]);
	if (c->size[RELU] && !c->size[RESIDUAL])
		avoid_edge(v->in[2], v->in[3], v->in[4], v->in[5], c);
	for (int64_t i = 0; v->in[6] && i < pixels(c) * c->size[C]; i++)
		v->in[6][i] = v->in[6][i] > 0 ? v->in[6][i] : 0;
}

static void fill_grad_apply(const struct op_case *c, struct case_values *v)
{
	fill_stat(c, v->in[2]);
	fill_gamma(c, v->in[4]);
	if (c->size[RELU])
		avoid_edge(v->in[1], v->in[2], v->in[4], v->in[5], c);
}

/* |gamma| (|x| + |mean|) rstd + |beta| + |residual|. */
static double bound_apply(const struct case_values *v, int k, double *terms)
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

static double bound_fixed(const struct case_values *v, int k, double *terms)
{
	for (int64_t i = 0; i < case_count(v->node->out[k]); i++)
		terms[i] = fabs(v->out[k][i]);
	return 4;
}

static double bound_infer(const struct case_values *v, int k, double *terms)
{
	int64_t ch = v->node->in[0]->shape.dim[3];

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double rstd = 1 / sqrt(v->in[4][i % ch] + BN_EPS);

		terms[i] = fabs(v->in[1][i % ch]) * (fabs(v->in[0][i]) + fabs(v->in[3][i % ch])) * rstd +
			   fabs(v->in[2][i % ch]) + (v->in[5] ? fabs(v->in[5][i]) : 0);
	}
	return BN_ROUNDINGS;
}

static double bound_running(const struct case_values *v, int k, double *terms)
{
	for (int64_t i = 0; i < case_count(v->node->in[1]); i++)
		terms[i] = fabs(v->in[k + 3][i]) + fabs(v->out[k][i]);
	return 4;
}

/* Sums over pixels of |g| and |g| (|x| + |mean|) rstd; g itself is one sum of two. */
static double bound_grad_stats(const struct case_values *v, int k, double *terms)
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

static double bound_grad_apply(const struct case_values *v, int k, double *terms)
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

static double bound_params(const struct case_values *v, int k, double *terms)
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
	SHAPES(build_stats, NULL, NULL),
	{ "very many pixels", .build = build_stats, .size = { 11, 28, 28, 64 } },
	{ NULL },
};

const struct op_case cases_bn_running[] = {
	SHAPES(build_running, fill_running, bound_running),
	{ "a single value", .build = build_running, .fill = fill_running, .bound = bound_running,
	  .size = { 1, 1, 1, 5 } },
	{ NULL },
};

const struct op_case cases_bn_keep[] = {
	{ "kept", .build = build_keep, .fill = fill_keep, .exact = true, .size = { 29, 0 } },
	{ "skipped", .build = build_keep, .fill = fill_keep, .exact = true, .size = { 29, 1 } },
	{ NULL },
};

const struct op_case cases_bn_fixed[] = {
	{ "plain", .build = build_fixed, .fill = fill_fixed, .bound = bound_fixed, .size = { 1, 1, 1, 64 } },
	{ "odd channels", .build = build_fixed, .fill = fill_fixed, .bound = bound_fixed, .size = { 1, 1, 1, 29 } },
	{ NULL },
};

const struct op_case cases_bn_apply[] = {
	SHAPES(build_apply, fill_apply, bound_apply),
	{ "relu", .build = build_apply, .fill = fill_apply, .bound = bound_apply, .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "residual", .build = build_apply, .fill = fill_apply, .bound = bound_apply,
	  .size = { 3, 7, 5, 64, [RESIDUAL] = 1 } },
	{ "residual and relu", .build = build_apply, .fill = fill_apply, .bound = bound_apply,
	  .size = { 3, 7, 5, 37, [RELU] = 1, [RESIDUAL] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_infer[] = {
	SHAPES(build_infer, fill_infer, bound_infer),
	{ "relu", .build = build_infer, .fill = fill_infer, .bound = bound_infer, .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "residual", .build = build_infer, .fill = fill_infer, .bound = bound_infer,
	  .size = { 3, 7, 5, 64, [RESIDUAL] = 1 } },
	{ "residual and relu", .build = build_infer, .fill = fill_infer, .bound = bound_infer,
	  .size = { 3, 7, 5, 37, [RELU] = 1, [RESIDUAL] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_stats[] = {
	SHAPES(build_grad_stats, fill_grad_stats, bound_grad_stats),
	{ "relu", .build = build_grad_stats, .fill = fill_grad_stats, .bound = bound_grad_stats,
	  .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "relu, two gradients", .build = build_grad_stats, .fill = fill_grad_stats, .bound = bound_grad_stats,
	  .size = { 3, 7, 5, 37, [RELU] = 1, [WRITE_G] = 1, [DY2] = 1 } },
	{ "residual and relu", .build = build_grad_stats, .fill = fill_grad_stats, .bound = bound_grad_stats,
	  .size = { 3, 7, 5, 64, [RELU] = 1, [RESIDUAL] = 1, [WRITE_G] = 1 } },
	{ "residual and relu, two gradients", .build = build_grad_stats, .fill = fill_grad_stats,
	  .bound = bound_grad_stats, .size = { 3, 7, 5, 37, [RELU] = 1, [RESIDUAL] = 1, [WRITE_G] = 1, [DY2] = 1 } },
	{ "two gradients", .build = build_grad_stats, .fill = fill_grad_stats, .bound = bound_grad_stats,
	  .size = { 3, 7, 5, 37, [WRITE_G] = 1, [DY2] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_apply[] = {
	SHAPES(build_grad_apply, fill_grad_apply, bound_grad_apply),
	{ "relu", .build = build_grad_apply, .fill = fill_grad_apply, .bound = bound_grad_apply,
	  .size = { 3, 7, 5, 37, [RELU] = 1 } },
	{ "relu, whole vectors", .build = build_grad_apply, .fill = fill_grad_apply, .bound = bound_grad_apply,
	  .size = { 3, 7, 5, 64, [RELU] = 1 } },
	{ NULL },
};

const struct op_case cases_bn_grad_params[] = {
	SHAPES(build_grad_params, NULL, bound_params),
	{ NULL },
};
