/* bn_ref.c: batch normalisation, channel by channel within each pixel. The workspace holds mean and 1/sqrt(var+eps). */
#include <string.h>

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/ref_kernel.h"

static int64_t pixels_of(const struct tensor *x)
{
	return x->shape.dim[0] * x->shape.dim[1] * x->shape.dim[2];
}

static int prepare(const struct node *x_of, int x_index, const struct kernel_env *env, struct node *n, void **ret_state,
		   struct err *err)
{
	n->workspace_bytes = (size_t)x_of->in[x_index]->shape.dim[3] * sizeof(struct bn_channel);
	return ref_prepare(env, n, ret_state, err);
}

static int prepare_0(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, 0, env, n, ret_state, err);
}

static int prepare_1(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, 1, env, n, ret_state, err);
}

static int prepare_2(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, 2, env, n, ret_state, err);
}

static const struct bn_channel *channels_of(const struct kernel_args *args, const double *stat, int64_t count,
					    double eps)
{
	struct bn_channel *ch = args->workspace;

	for (int64_t c = 0; c < count; c++)
		ch[c] = bn_channel_of(stat, count, c, eps);
	return ch;
}

static int stats_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *stat = args->out[0];
	int64_t pixels = pixels_of(n->in[0]), channels = n->in[0]->shape.dim[3];

	(void)err;
	memset(stat, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < pixels; i++, x += channels)
		for (int64_t c = 0; c < channels; c++) {
			stat[c] += x[c];
			stat[channels + c] += x[c] * x[c];
		}
	stat[2 * channels] = (double)pixels;
	return 0;
}

struct apply {
	const double *x, *gamma, *beta, *residual;
	const struct bn_channel *ch;
	double *y;
	int64_t pixels, channels;
	bool relu;
};

static void apply_all(const struct apply *a)
{
	for (int64_t i = 0; i < a->pixels * a->channels; i++) {
		int64_t c = i % a->channels;
		double y = a->gamma[c] * ((a->x[i] - a->ch[c].mean) * a->ch[c].rstd) + a->beta[c];

		if (a->residual)
			y += a->residual[i];
		a->y[i] = a->relu && y <= 0 ? 0 : y;
	}
}

static int apply_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	struct apply a = { .x = args->in[0],
			   .gamma = args->in[2],
			   .beta = args->in[3],
			   .residual = args->in[4],
			   .y = args->out[0],
			   .pixels = pixels_of(n->in[0]),
			   .channels = n->in[0]->shape.dim[3],
			   .relu = attr->relu };

	(void)err;
	a.ch = channels_of(args, args->in[1], a.channels, attr->eps);
	apply_all(&a);
	return 0;
}

static int infer_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	struct apply a = { .x = args->in[0],
			   .gamma = args->in[1],
			   .beta = args->in[2],
			   .residual = args->in[5],
			   .y = args->out[0],
			   .pixels = pixels_of(n->in[0]),
			   .channels = n->in[0]->shape.dim[3],
			   .relu = attr->relu };
	const double *mean = args->in[3], *var = args->in[4];
	struct bn_channel *ch = args->workspace;

	(void)err;
	for (int64_t c = 0; c < a.channels; c++)
		ch[c] = (struct bn_channel){ mean[c], 1 / sqrt(var[c] + attr->eps) };
	a.ch = ch;
	apply_all(&a);
	return 0;
}

static int running_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	double *mean = args->out[0], *var = args->out[1];
	int64_t channels = n->in[1]->shape.dim[0];

	(void)err;
	if (args->page->micro == 0 || n->in[3] == n->in[1]) {
		memcpy(mean, args->in[1], tensor_bytes(n->in[1]));
		memcpy(var, args->in[2], tensor_bytes(n->in[2]));
	}
	for (int64_t c = 0; c < channels; c++)
		bn_running_update(args->in[0], channels, c, attr->momentum, &mean[c], &var[c]);
	return 0;
}

static int keep_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *step = args->in[0];

	(void)err;
	for (int k = 0; k < 2 && step[STEP_GUARD_SKIP] == 0; k++)
		memcpy(args->out[k], args->in[k + 1], tensor_bytes(n->out[k]));
	return 0;
}

static int fixed_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *mean = args->in[0], *var = args->in[1];
	int64_t channels = n->in[0]->shape.dim[0];

	(void)err;
	for (int64_t c = 0; c < channels; c++)
		bn_fix(args->out[0], channels, c, mean[c], var[c]);
	return 0;
}

static int grad_stats_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	const double *dy = args->in[0], *dy2 = args->in[1], *x = args->in[2], *gamma = args->in[4], *beta = args->in[5];
	const double *y = args->in[6];
	double *dstat = args->out[0], *g_out = attr->write_g ? args->out[1] : NULL;
	int64_t pixels = pixels_of(n->in[2]), channels = n->in[2]->shape.dim[3];
	const struct bn_channel *ch = channels_of(args, args->in[3], channels, attr->eps);

	(void)err;
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
	return 0;
}

static int grad_apply_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct bn_attr *attr = n->attr;
	const double *g = args->in[0], *x = args->in[1], *stat = args->in[2], *dstat = args->in[3],
		     *gamma = args->in[4];
	const double *beta = args->in[5];
	double *dx = args->out[0];
	int64_t pixels = pixels_of(n->in[1]), channels = n->in[1]->shape.dim[3];
	const struct bn_channel *ch = channels_of(args, stat, channels, attr->eps);
	double count = stat[2 * channels];

	(void)err;
	for (int64_t i = 0; i < pixels * channels; i++) {
		int64_t c = i % channels;
		double xhat = (x[i] - ch[c].mean) * ch[c].rstd;
		double masked = attr->relu && gamma[c] * xhat + beta[c] <= 0 ? 0 : g[i];

		dx[i] = gamma[c] * ch[c].rstd * (masked - dstat[c] / count - xhat * dstat[channels + c] / count);
	}
	return 0;
}

static int grad_params_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	size_t bytes = tensor_bytes(n->out[0]);
	const double *dstat = args->in[0];

	(void)err;
	memcpy(args->out[0], dstat + n->out[0]->shape.dim[0], bytes);
	memcpy(args->out[1], dstat, bytes);
	return 0;
}

const struct kernel bn_stats_ref = REF_KERNEL(stats_run);
const struct kernel bn_apply_ref = { .prepare = prepare_0, .run = apply_run, .release = ref_release };
const struct kernel bn_fixed_ref = REF_KERNEL(fixed_run);
const struct kernel bn_running_ref = REF_KERNEL(running_run);
const struct kernel bn_keep_ref = REF_KERNEL(keep_run);
const struct kernel bn_infer_ref = { .prepare = prepare_0, .run = infer_run, .release = ref_release };
const struct kernel bn_grad_stats_ref = { .prepare = prepare_2, .run = grad_stats_run, .release = ref_release };
const struct kernel bn_grad_apply_ref = { .prepare = prepare_1, .run = grad_apply_run, .release = ref_release };
const struct kernel bn_grad_params_ref = REF_KERNEL(grad_params_run);
