/* SPDX-License-Identifier: Apache-2.0 */
/* bn_ref.c: batch normalisation, elementwise. The workspace holds mean and 1/sqrt(var+eps) per channel. */
#include <string.h>

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"

static int64_t count_pixels(const struct tensor *x)
{
	return x->shape.dim[0] * x->shape.dim[1] * x->shape.dim[2];
}

/* Reserves a struct bn_channel per channel. x_index: index of input x. */
static int prepare_bn_channels_ref(const struct kernel_env *env, struct node *n, int x_index, void **ret_state,
				   struct err *err)
{
	n->workspace_bytes = (size_t)n->in[x_index]->shape.dim[3] * sizeof(struct bn_channel);
	return ref_prepare(env, n, ret_state, err);
}

static int prepare_bn_x0_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_bn_channels_ref(env, n, 0, ret_state, err);
}

static int prepare_bn_x1_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_bn_channels_ref(env, n, 1, ret_state, err);
}

static int prepare_bn_x2_ref(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_bn_channels_ref(env, n, 2, ret_state, err);
}

static const struct bn_channel *compute_bn_channels(const struct kernel_args *args, const double *stat, int64_t count,
						    double eps)
{
	struct bn_channel *ch = args->workspace;

	for (int64_t c = 0; c < count; c++)
		ch[c] = bn_channel_of(stat, count, c, eps);
	return ch;
}

static void run_bn_stats_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *stat = args->out[0];
	int64_t pixels = count_pixels(n->in[0]), channels = n->in[0]->shape.dim[3];

	memset(stat, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < pixels; i++, x += channels)
		for (int64_t c = 0; c < channels; c++) {
			stat[c] += x[c];
			stat[channels + c] += x[c] * x[c];
		}
	stat[2 * channels] = (double)pixels;
}

struct bn_apply_args {
	const double *x, *gamma, *beta, *residual;
	const struct bn_channel *ch;
	double *y;
	int64_t pixels, channels;
	bool relu;
};

static void apply_bn_elements(const struct bn_apply_args *a)
{
	for (int64_t i = 0; i < a->pixels * a->channels; i++) {
		int64_t c = i % a->channels;
		double y = a->gamma[c] * ((a->x[i] - a->ch[c].mean) * a->ch[c].rstd) + a->beta[c];

		if (a->residual)
			y += a->residual[i];
		a->y[i] = a->relu && y <= 0 ? 0 : y;
	}
}

static void run_bn_apply_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	struct bn_apply_args a = { .x = args->in[0],
				   .gamma = args->in[2],
				   .beta = args->in[3],
				   .residual = args->in[4],
				   .y = args->out[0],
				   .pixels = count_pixels(n->in[0]),
				   .channels = n->in[0]->shape.dim[3],
				   .relu = attr->relu };

	a.ch = compute_bn_channels(args, args->in[1], a.channels, attr->eps);
	apply_bn_elements(&a);
}

static void run_bn_running_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	double *mean = args->out[0], *var = args->out[1];
	int64_t channels = n->in[1]->shape.dim[0];

	if (args->page->micro == 0 || n->in[3] == n->in[1]) {
		memcpy(mean, args->in[1], tensor_bytes(n->in[1]));
		memcpy(var, args->in[2], tensor_bytes(n->in[2]));
	}
	for (int64_t c = 0; c < channels; c++) {
		struct bn_running r = { mean[c], var[c] };

		bn_running_update(&r, args->in[0], channels, c, attr->momentum);
		mean[c] = r.mean;
		var[c] = r.var;
	}
}

static void run_bn_keep_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *step = args->in[0];

	for (int k = 0; k < 2 && step[STEP_GUARD_SKIP] == 0; k++)
		memcpy(args->out[k], args->in[k + 1], tensor_bytes(n->out[k]));
}

static void run_bn_fixed_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *mean = args->in[0], *var = args->in[1];
	int64_t channels = n->in[0]->shape.dim[0];

	for (int64_t c = 0; c < channels; c++)
		bn_fix(args->out[0], channels, c, mean[c], var[c]);
}

/* Sums g and g*xhat per channel, and writes g if requested. */
static void run_bn_grad_stats_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	const double *dy = args->in[0], *dy2 = args->in[1], *x = args->in[2], *gamma = args->in[4], *beta = args->in[5];
	const double *y = args->in[6];
	double *dstat = args->out[0], *g_out = attr->write_g ? args->out[1] : NULL;
	int64_t pixels = count_pixels(n->in[2]), channels = n->in[2]->shape.dim[3];
	const struct bn_channel *ch = compute_bn_channels(args, args->in[3], channels, attr->eps);

	memset(dstat, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < pixels * channels; i++) {
		int64_t c = i % channels;
		double xhat = (x[i] - ch[c].mean) * ch[c].rstd, g = dy[i] + (dy2 ? dy2[i] : 0);
		double out = attr->residual ? (y ? y[i] : 1) : gamma[c] * xhat + beta[c];

		if (attr->relu && out <= 0)
			g = 0;
		if (g_out)
			g_out[i] = g;
		dstat[c] += g;
		dstat[channels + c] += g * xhat;
	}
}

static void run_bn_grad_apply_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	const double *g = args->in[0], *x = args->in[1], *stat = args->in[2], *dstat = args->in[3],
		     *gamma = args->in[4];
	const double *beta = args->in[5];
	double *dx = args->out[0];
	int64_t pixels = count_pixels(n->in[1]), channels = n->in[1]->shape.dim[3];
	const struct bn_channel *ch = compute_bn_channels(args, stat, channels, attr->eps);
	double count = stat[2 * channels];

	for (int64_t i = 0; i < pixels * channels; i++) {
		int64_t c = i % channels;
		double xhat = (x[i] - ch[c].mean) * ch[c].rstd;
		double masked = attr->relu && gamma[c] * xhat + beta[c] <= 0 ? 0 : g[i];

		dx[i] = gamma[c] * ch[c].rstd * (masked - dstat[c] / count - xhat * dstat[channels + c] / count);
	}
}

static void run_bn_grad_params_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	size_t bytes = tensor_bytes(n->out[0]);
	const double *dstat = args->in[0];

	memcpy(args->out[0], dstat + n->out[0]->shape.dim[0], bytes);
	memcpy(args->out[1], dstat, bytes);
}

const struct kernel bn_stats_ref = REF_KERNEL(run_bn_stats_ref);
const struct kernel bn_apply_ref = { .prepare = prepare_bn_x0_ref, .run = run_bn_apply_ref };
const struct kernel bn_fixed_ref = REF_KERNEL(run_bn_fixed_ref);
const struct kernel bn_running_ref = REF_KERNEL(run_bn_running_ref);
const struct kernel bn_keep_ref = REF_KERNEL(run_bn_keep_ref);
const struct kernel bn_grad_stats_ref = { .prepare = prepare_bn_x2_ref, .run = run_bn_grad_stats_ref };
const struct kernel bn_grad_apply_ref = { .prepare = prepare_bn_x1_ref, .run = run_bn_grad_apply_ref };
const struct kernel bn_grad_params_ref = REF_KERNEL(run_bn_grad_params_ref);
