/* SPDX-License-Identifier: Apache-2.0 */
/* bn_channels_cpu.c: the per-channel parts of batch norm: coefficients from statistics, running statistics, gradients
 * of the parameters. */

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/bn/bn_cpu.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/ops.h"

int bn_cpu_new(const struct kernel_env *env, struct node *n, struct cpu_operands large, struct bn_state **ret,
	       struct err *err)
{
	const struct shape *shape = &n->in[large.n_in - 1]->shape;
	struct bn_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ large.n_in, large.n_out }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->attr = *(const struct bn_attr *)n->attr;
	s->c = shape->dim[shape->ndim - 1];
	s->rows = s->c ? shape_count(shape) / s->c : 0;
	s->padded = round_up(s->c, LANES_MOST);
	s->parts = cpu_parts(env, shape_count(shape));
	s->bf16 = bf16;
	*ret = s;
	return 0;
}

/* Above this size, written data has left the caches before it is read. */
#define PAST_BYTES ((int64_t)4 << 20)

void bn_cpu_write(struct bn_state *s, void *out)
{
	int64_t bytes = s->rows * s->c * (s->bf16 ? 2 : 4);

	s->out = out;
	s->past = bytes >= PAST_BYTES && (uintptr_t)out % 64 == 0;
}

size_t bn_cpu_coef_bytes(const struct bn_state *s, int arrays)
{
	return (size_t)(s->padded * arrays) * sizeof(float);
}

void bn_cpu_coef_place(struct bn_state *s, void *workspace)
{
	float **const arrays[] = { &s->scale, &s->shift, &s->mean, &s->rstd, &s->slope, &s->offset };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		*arrays[i] = (float *)workspace + (size_t)s->padded * i;
}

double bn_cpu_rstd(const double *stat, int64_t c, int64_t i, double eps)
{
	double count = stat[2 * c], mean, var;

	if (count <= 0)
		return 0;
	mean = stat[i] / count;
	var = stat[c + i] / count - mean * mean;
	return 1 / sqrt((var > 0 ? var : 0) + eps);
}

void bn_cpu_coef_forward(struct bn_state *s, const double *stat, const float *gamma, const float *beta)
{
	double count = stat[2 * s->c];

	for (int64_t i = 0; i < s->padded; i++) {
		double mean = i < s->c && count > 0 ? stat[i] / count : 0;
		double rstd = i < s->c ? bn_cpu_rstd(stat, s->c, i, s->attr.eps) : 0;
		double scale = i < s->c ? (double)gamma[i] * rstd : 0;

		s->scale[i] = (float)scale;
		s->shift[i] = i < s->c ? (float)((double)beta[i] - mean * scale) : 0;
		s->mean[i] = (float)mean;
		s->rstd[i] = (float)rstd;
	}
}

static int prepare_bn_small_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s = mem_zalloc(sizeof(*s));

	(void)env, (void)err;
	if (n->attr) /* some of these ops have no attributes */
		s->attr = *(const struct bn_attr *)n->attr;
	s->c = shape_count(&n->out[0]->shape);
	*ret_state = s;
	return 0;
}

static void run_bn_running_cpu(void *state, const struct kernel_args *args)
{
	const struct bn_state *s = state;
	const int from = args->page->micro == 0 ? 1 : 3;
	const float *mean_in = args->in[from], *var_in = args->in[from + 1];
	float *mean = args->out[0], *var = args->out[1];

	for (int64_t i = 0; i < s->c; i++) {
		struct bn_running r = { (double)mean_in[i], (double)var_in[i] };

		bn_running_update(&r, args->in[0], s->c, i, s->attr.momentum);
		mean[i] = (float)r.mean;
		var[i] = (float)r.var;
	}
}

static void run_bn_keep_cpu(void *state, const struct kernel_args *args)
{
	const struct bn_state *s = state;
	const double *step = args->in[0];

	for (int k = 0; k < 2 && step[STEP_GUARD_SKIP] == 0; k++)
		memcpy(args->out[k], args->in[k + 1], (size_t)s->c * sizeof(float));
}

static void run_bn_fixed_cpu(void *state, const struct kernel_args *args)
{
	const struct bn_state *s = state;
	const float *mean = args->in[0], *var = args->in[1];
	int64_t channels = s->c / 2;

	for (int64_t i = 0; i < channels; i++)
		bn_fix(args->out[0], channels, i, (double)mean[i], (double)var[i]);
}

static void run_bn_grad_params_cpu(void *state, const struct kernel_args *args)
{
	const struct bn_state *s = state;
	const double *dstat = args->in[0];
	float *dgamma = args->out[0], *dbeta = args->out[1];

	for (int64_t i = 0; i < s->c; i++) {
		dbeta[i] = (float)dstat[i];
		dgamma[i] = (float)dstat[s->c + i];
	}
}

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP
const struct kernel bn_running_cpu = { .prepare = prepare_bn_small_cpu,
				       .run = run_bn_running_cpu,
				       .release = cpu_state_release };
const struct kernel bn_keep_cpu = { .prepare = prepare_bn_small_cpu,
				    .run = run_bn_keep_cpu,
				    .release = cpu_state_release };
const struct kernel bn_fixed_cpu = { .prepare = prepare_bn_small_cpu,
				     .run = run_bn_fixed_cpu,
				     .release = cpu_state_release };
const struct kernel bn_grad_params_cpu = { .prepare = prepare_bn_small_cpu,
					   .run = run_bn_grad_params_cpu,
					   .release = cpu_state_release };
