/* bn_cpu.c: batch normalisation, one pass over the data each way: statistics while reading x, normalising with add and
 * ReLU while writing y, and the two sums of the gradient together with its mask and join.
 * Sums run in f32 over blocks of rows and in f64 above, per part, and the parts are added in their order. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/guard/guard.h"
#include "trainer/ops/ops.h"

#define BLOCK_ROWS 64

enum { MASK_NONE, MASK_FROM_X, MASK_FROM_Y }; /* where it is seen whether the output was positive */

struct bn_state {
	cpu_part_fn *loop;
	struct bn_attr attr;
	int64_t rows, c, padded; /* padded: c rounded up to whole vectors, the length of each coefficient array */
	int parts;
	bool bf16;
	/* of one run */
	const void *x, *dy, *dy2, *y_in, *residual;
	void *out;
	float *mean, *rstd, *scale, *shift, *slope, *offset; /* in the workspace */
	float *rows_sum; /* [parts][2 padded] in the workspace, when there are many channels */
	double *sums;	 /* [parts][2c] in the workspace */
};

#define CPU_BODY "trainer/ops/bn/bn_cpu.c"
#include "trainer/backends/cpu/each.h"

/* in[x] is the tensor that is normalised. */
static int bn_new(const struct kernel_env *env, struct node *n, int x, struct bn_state **ret, struct err *err)
{
	const struct shape *shape = &n->in[x]->shape;
	struct bn_state *s;
	void *state;
	int rc = cpu_state_new(sizeof(*s), &state, err);

	if (rc)
		return rc;
	s = state;
	s->attr = *(const struct bn_attr *)n->attr;
	s->c = shape->dim[shape->ndim - 1];
	s->rows = s->c ? shape_count(shape) / s->c : 0;
	s->padded = (s->c + LANES - 1) / LANES * LANES;
	s->parts = cpu_parts(env, shape_count(shape));
	s->bf16 = n->in[x]->dtype == DTYPE_BF16;
	*ret = s;
	return 0;
}

static size_t coef_bytes(const struct bn_state *s, int arrays)
{
	return (size_t)(s->padded * arrays) * sizeof(float);
}

static bool sums_wide(const struct bn_state *s)
{
	return s->c > 4 * LANES && s->c % LANES == 0;
}

static size_t sums_bytes(const struct bn_state *s)
{
	size_t wide = sums_wide(s) ? (size_t)(s->parts * 2 * s->padded) * sizeof(float) : 0;

	return ((size_t)(s->parts * 2 * s->c) * sizeof(double) + 63) / 64 * 64 + wide;
}

static void sums_place(struct bn_state *s, void *workspace)
{
	s->sums = workspace;
	if (sums_wide(s))
		s->rows_sum = (float *)((char *)workspace + sums_bytes(s)) - s->parts * 2 * s->padded;
}

/* The coefficient arrays stand one after another in the workspace. */
static void coef_place(struct bn_state *s, void *workspace)
{
	float **const arrays[] = { &s->scale, &s->shift, &s->mean, &s->rstd, &s->slope, &s->offset };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		*arrays[i] = (float *)workspace + (size_t)s->padded * i;
}

static double stat_rstd(const double *stat, int64_t c, int64_t i, double eps)
{
	double count = stat[2 * c], mean, var;

	if (count <= 0)
		return 0;
	mean = stat[i] / count;
	var = stat[c + i] / count - mean * mean;
	return 1 / sqrt((var > 0 ? var : 0) + eps);
}

/* Scale and shift of the forward pass, as the backward pass needs them again for the mask. */
static void coef_forward(struct bn_state *s, const double *stat, const float *gamma, const float *beta)
{
	double count = stat[2 * s->c];

	for (int64_t i = 0; i < s->padded; i++) {
		double mean = i < s->c && count > 0 ? stat[i] / count : 0;
		double rstd = i < s->c ? stat_rstd(stat, s->c, i, s->attr.eps) : 0;
		double scale = i < s->c ? (double)gamma[i] * rstd : 0;

		s->scale[i] = (float)scale;
		s->shift[i] = i < s->c ? (float)((double)beta[i] - mean * scale) : 0;
		s->mean[i] = (float)mean;
		s->rstd[i] = (float)rstd;
	}
}

static void sums_fold(const struct bn_state *s, double *out)
{
	for (int64_t i = 0; i < 2 * s->c; i++) {
		double sum = 0;

		for (int p = 0; p < s->parts; p++)
			sum += s->sums[p * 2 * s->c + i];
		out[i] = sum;
	}
}

static int bn_stats_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 0 }, &bf16, err);

	if (!rc)
		rc = bn_new(env, n, 0, &s, err);
	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_sum_x);
	n->workspace_bytes = sums_bytes(s);
	*ret_state = s;
	return 0;
}

static int bn_stats_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct bn_state s = *(const struct bn_state *)state;
	double *stat = args->out[0];

	(void)err;
	s.x = args->in[0];
	sums_place(&s, args->workspace);
	cpu_parallel(s.parts, s.loop, &s);
	sums_fold(&s, stat);
	stat[2 * s.c] = (double)s.rows;
	return 0;
}

static int bn_apply_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (!rc)
		rc = bn_new(env, n, 0, &s, err);
	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_normalise);
	n->workspace_bytes = coef_bytes(s, 4);
	*ret_state = s;
	return 0;
}

static int bn_apply_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct bn_state s = *(const struct bn_state *)state;

	(void)err;
	s.x = args->in[0];
	s.residual = s.attr.residual ? args->in[4] : NULL;
	s.out = args->out[0];
	coef_place(&s, args->workspace);
	coef_forward(&s, args->in[1], args->in[2], args->in[3]);
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

static int bn_infer_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct bn_state s = *(const struct bn_state *)state;
	const float *gamma = args->in[1], *beta = args->in[2], *mean = args->in[3], *var = args->in[4];

	(void)err;
	s.x = args->in[0];
	s.residual = s.attr.residual ? args->in[5] : NULL;
	s.out = args->out[0];
	coef_place(&s, args->workspace);
	for (int64_t i = 0; i < s.padded; i++) {
		double scale = i < s.c ? (double)gamma[i] / sqrt((double)var[i] + s.attr.eps) : 0;

		s.scale[i] = (float)scale;
		s.shift[i] = i < s.c ? (float)((double)beta[i] - (double)mean[i] * scale) : 0;
	}
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

static int bn_small_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	void *state;
	int rc = cpu_state_new(sizeof(*s), &state, err);

	(void)env;
	if (rc)
		return rc;
	s = state;
	if (n->attr) /* not every one has any */
		s->attr = *(const struct bn_attr *)n->attr;
	s->c = shape_count(&n->out[0]->shape);
	*ret_state = s;
	return 0;
}

static int bn_running_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct bn_state *s = state;
	const int from = args->page->micro == 0 ? 1 : 3;
	const float *mean_in = args->in[from], *var_in = args->in[from + 1];
	float *mean = args->out[0], *var = args->out[1];

	(void)err;
	for (int64_t i = 0; i < s->c; i++) {
		double next_mean = (double)mean_in[i], next_var = (double)var_in[i];

		bn_running_update(args->in[0], s->c, i, s->attr.momentum, &next_mean, &next_var);
		mean[i] = (float)next_mean;
		var[i] = (float)next_var;
	}
	return 0;
}

static int bn_keep_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct bn_state *s = state;
	const double *step = args->in[0];

	(void)err;
	for (int k = 0; k < 2 && step[GUARD_SKIP] == 0; k++)
		memcpy(args->out[k], args->in[k + 1], (size_t)s->c * sizeof(float));
	return 0;
}

static int bn_fixed_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct bn_state *s = state;
	const float *mean = args->in[0], *var = args->in[1];
	int64_t channels = s->c / 2;

	(void)err;
	for (int64_t i = 0; i < channels; i++)
		bn_fix(args->out[0], channels, i, (double)mean[i], (double)var[i]);
	return 0;
}

static int bn_grad_params_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct bn_state *s = state;
	const double *dstat = args->in[0];
	float *dgamma = args->out[0], *dbeta = args->out[1];

	(void)err;
	for (int64_t i = 0; i < s->c; i++) {
		dbeta[i] = (float)dstat[i];
		dgamma[i] = (float)dstat[s->c + i];
	}
	return 0;
}

static int bn_grad_stats_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 3, 0 }, &bf16, err);

	if (!rc)
		rc = bn_new(env, n, 2, &s, err);
	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_sum_grad);
	n->workspace_bytes = sums_bytes(s) + coef_bytes(s, 4);
	*ret_state = s;
	return 0;
}

static int bn_grad_stats_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct bn_state s = *(const struct bn_state *)state;

	(void)err;
	s.dy = args->in[0];
	s.dy2 = args->in[1];
	s.x = args->in[2];
	s.y_in = s.attr.relu && s.attr.residual ? args->in[6] : NULL;
	s.out = s.attr.write_g ? args->out[1] : NULL;
	sums_place(&s, args->workspace);
	coef_place(&s, (char *)args->workspace + sums_bytes(&s));
	coef_forward(&s, args->in[3], args->in[4], args->in[5]);
	cpu_parallel(s.parts, s.loop, &s);
	sums_fold(&s, args->out[0]);
	return 0;
}

static int bn_grad_apply_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 1 }, &bf16, err);

	if (!rc)
		rc = bn_new(env, n, 1, &s, err);
	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_grad_x);
	n->workspace_bytes = coef_bytes(s, 6);
	*ret_state = s;
	return 0;
}

/* dx = scale g + slope (x - mean) + offset. */
static int bn_grad_apply_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct bn_state s = *(const struct bn_state *)state;
	const double *stat = args->in[2], *dstat = args->in[3];
	const float *gamma = args->in[4];
	double count = stat[2 * s.c];

	(void)err;
	s.dy = args->in[0];
	s.x = args->in[1];
	s.out = args->out[0];
	coef_place(&s, args->workspace);
	coef_forward(&s, stat, gamma, args->in[5]);
	for (int64_t i = 0; i < s.padded; i++) {
		double rstd = i < s.c ? stat_rstd(stat, s.c, i, s.attr.eps) : 0;
		double scale = i < s.c ? (double)gamma[i] * rstd : 0;

		s.slope[i] = scale != 0 ? (float)(-scale * rstd * dstat[s.c + i] / count) : 0;
		s.offset[i] = scale != 0 ? (float)(-scale * dstat[i] / count) : 0;
	}
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP
const struct kernel bn_stats_cpu = { .prepare = bn_stats_prepare, .run = bn_stats_run, .release = cpu_state_release };
const struct kernel bn_apply_cpu = { .prepare = bn_apply_prepare, .run = bn_apply_run, .release = cpu_state_release };
const struct kernel bn_infer_cpu = { .prepare = bn_apply_prepare, .run = bn_infer_run, .release = cpu_state_release };
const struct kernel bn_running_cpu = { .prepare = bn_small_prepare,
				       .run = bn_running_run,
				       .release = cpu_state_release };
const struct kernel bn_keep_cpu = { .prepare = bn_small_prepare, .run = bn_keep_run, .release = cpu_state_release };
const struct kernel bn_fixed_cpu = { .prepare = bn_small_prepare,
				     .run = bn_fixed_run,
				     .release = cpu_state_release };
const struct kernel bn_grad_params_cpu = { .prepare = bn_small_prepare,
					   .run = bn_grad_params_run,
					   .release = cpu_state_release };
const struct kernel bn_grad_stats_cpu = { .prepare = bn_grad_stats_prepare,
					  .run = bn_grad_stats_run,
					  .release = cpu_state_release };
const struct kernel bn_grad_apply_cpu = { .prepare = bn_grad_apply_prepare,
					  .run = bn_grad_apply_run,
					  .release = cpu_state_release };

#else

#define TILE_VECTORS 4

/* What a loop over a tile is compiled for: `full` means that all 16 lanes exist. */
struct V(tile) {
	bool bf, full;
	int mask; /* MASK_* */
	bool join, write;
};

VEC_INLINE v16 V(bn_load)(const void *p, int64_t i, int64_t width, const struct V(tile) k)
{
	return k.full ? vload(p, i, k.bf) : vload_any(p, i, width, k.bf);
}

VEC_INLINE void V(bn_store)(void *p, int64_t i, v16 v, int64_t width, const struct V(tile) k)
{
	if (k.full)
		vstore(p, i, v, k.bf);
	else
		vstore_any(p, i, v, width, k.bf);
}

static inline __attribute__((unused)) void V(bn_fold)(double *sums, v16 acc, int64_t width)
{
	for (int64_t i = 0; i < (width < LANES ? width : LANES); i++)
		sums[i] += (double)acc[i];
}

/* The gradient before the activation: what arrives, joined, where the output was positive. */
VEC_INLINE v16 V(bn_masked)(const struct bn_state *s, int64_t i, int64_t c, v16 x, const struct V(tile) k)
{
	int64_t n = s->c - c;
	v16 g = V(bn_load)(s->dy, i, n, k);

	if (k.join)
		g += V(bn_load)(s->dy2, i, n, k);
	if (k.mask == MASK_FROM_Y)
		g = vkeep_gt(g, V(bn_load)(s->y_in, i, n, k), vset(0));
	else if (k.mask == MASK_FROM_X)
		g = vkeep_gt(g, x * vload(s->scale, c, false) + vload(s->shift, c, false), vset(0));
	return g;
}

/* One vector of channels of one row: a and b gain x and x*x, or g and g*(x - mean). */
VEC_INLINE void V(bn_step)(const struct bn_state *s, int64_t i, int64_t c, v16 *a, v16 *b, const struct V(tile) k,
			   const bool grad)
{
	v16 x = V(bn_load)(s->x, i, s->c - c, k);

	if (!grad) {
		*a += x;
		*b += x * x;
		return;
	}
	v16 g = V(bn_masked)(s, i, c, x, k);

	if (k.write)
		V(bn_store)(s->out, i, g, s->c - c, k);
	*a += g;
	*b += g * (x - vload(s->mean, c, false));
}

/* Rows r of the channels [c, c + 64 / deep): `deep` rows by 4 / deep vectors at a time, so that four independent sums
 * run side by side. */
VEC_INLINE void V(bn_sum_tile)(const struct bn_state *s, struct cpu_range r, int64_t c, double *sums, const int deep,
			       const struct V(tile) k, const bool grad)
{
	const int wide = TILE_VECTORS / deep;
	v16 a[TILE_VECTORS] = { 0 }, b[TILE_VECTORS] = { 0 };
	int64_t row = r.begin;

	for (; row + deep <= r.end; row += deep)
#pragma GCC unroll 4
		for (int d = 0; d < deep; d++)
#pragma GCC unroll 4
			for (int w = 0; w < wide; w++)
				V(bn_step)
	(s, (row + d) * s->c + c + w * LANES, c + w * LANES, &a[d * wide + w], &b[d * wide + w], k, grad);
	for (; row < r.end; row++)
#pragma GCC unroll 4
		for (int w = 0; w < wide; w++)
			V(bn_step)(s, row * s->c + c + w * LANES, c + w * LANES, &a[w], &b[w], k, grad);
#pragma GCC unroll 4
	for (int w = 0; w < wide; w++) {
		v16 ta = a[w], tb = b[w];

#pragma GCC unroll 4
		for (int d = 1; d < deep; d++)
			ta += a[d * wide + w], tb += b[d * wide + w];
		if (grad)
			tb *= vload(s->rstd, c + w * LANES, false);
		V(bn_fold)(sums + c + w * LANES, ta, s->c - c);
		V(bn_fold)(sums + s->c + c + w * LANES, tb, s->c - c);
	}
}

/* With many channels a tile's rows lie too far apart for the memory to be read at speed: whole rows then, the sums
 * of a block in memory. */
VEC_INLINE void V(bn_sum_wide)(const struct bn_state *s, struct cpu_range r, double *sums, const struct V(tile) k,
			       const bool grad)
{
	float *a = s->rows_sum + (sums - s->sums) / (2 * s->c) * 2 * s->padded, *b = a + s->padded;

	memset(a, 0, (size_t)(2 * s->padded) * sizeof(*a));
	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			v16 ta = vload(a, c, false), tb = vload(b, c, false);

			V(bn_step)(s, row * s->c + c, c, &ta, &tb, k, grad);
			vstore(a, c, ta, false);
			vstore(b, c, tb, false);
		}
	for (int64_t c = 0; c < s->c; c++) {
		sums[c] += (double)a[c];
		sums[s->c + c] += (double)b[c] * (grad ? (double)s->rstd[c] : 1);
	}
}

VEC_INLINE void V(bn_sum_rows)(const struct bn_state *s, struct cpu_range r, double *sums, const struct V(tile) k,
			       const bool grad)
{
	struct V(tile) whole = k, rest = k;

	whole.full = true;
	rest.full = false;
	for (int64_t row = r.begin; row < r.end; row += BLOCK_ROWS) {
		struct cpu_range block = { row, row + BLOCK_ROWS < r.end ? row + BLOCK_ROWS : r.end };
		int64_t c = 0;

		if (s->rows_sum) {
			V(bn_sum_wide)(s, block, sums, whole, grad);
			continue;
		}
		for (; c + 4 * LANES <= s->c; c += 4 * LANES)
			V(bn_sum_tile)(s, block, c, sums, 1, whole, grad);
		for (; c + 2 * LANES <= s->c; c += 2 * LANES)
			V(bn_sum_tile)(s, block, c, sums, 2, whole, grad);
		for (; c + LANES <= s->c; c += LANES)
			V(bn_sum_tile)(s, block, c, sums, 4, whole, grad);
		if (c < s->c)
			V(bn_sum_tile)(s, block, c, sums, 4, rest, grad);
	}
}

static double *V(bn_part)(const struct bn_state *s, int part)
{
	double *sums = s->sums + part * 2 * s->c;

	memset(sums, 0, (size_t)(2 * s->c) * sizeof(*sums));
	return sums;
}

static void V(bn_sum_x)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	double *sums = V(bn_part)(s, part);
	struct cpu_range r = cpu_split(s->rows, BLOCK_ROWS, part, parts);

	if (s->bf16)
		V(bn_sum_rows)(s, r, sums, (struct V(tile)){ .bf = true }, false);
	else
		V(bn_sum_rows)(s, r, sums, (struct V(tile)){ .bf = false }, false);
}

/* The shapes that a network's blocks have are compiled each for itself; the rest is decided as it goes. */
VEC_INLINE void V(bn_sum_grad_rows)(const struct bn_state *s, struct cpu_range r, double *sums, const bool bf)
{
	bool join = s->dy2 != NULL, write = s->out != NULL;
	int mask = s->y_in ? MASK_FROM_Y : s->attr.relu ? MASK_FROM_X : MASK_NONE;

	if (mask == MASK_FROM_X && !join && !write)
		V(bn_sum_rows)(s, r, sums, (struct V(tile)){ .bf = bf, .mask = MASK_FROM_X }, true);
	else if (mask == MASK_FROM_Y && join && write)
		V(bn_sum_rows)
	(s, r, sums, (struct V(tile)){ .bf = bf, .mask = MASK_FROM_Y, .join = true, .write = true }, true);
	else if (mask == MASK_NONE && !join && !write)
		V(bn_sum_rows)(s, r, sums, (struct V(tile)){ .bf = bf, .mask = MASK_NONE }, true);
	else V(bn_sum_rows)(s, r, sums, (struct V(tile)){ .bf = bf, .mask = mask, .join = join, .write = write }, true);
}

static void V(bn_sum_grad)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	double *sums = V(bn_part)(s, part);
	struct cpu_range r = cpu_split(s->rows, BLOCK_ROWS, part, parts);

	s->bf16 ? V(bn_sum_grad_rows)(s, r, sums, true) : V(bn_sum_grad_rows)(s, r, sums, false);
}

VEC_INLINE void V(bn_normalise_rows)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k,
				     const bool residual)
{
	const bool relu = s->attr.relu;

	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			int64_t i = row * s->c + c, n = s->c - c;
			v16 y = V(bn_load)(s->x, i, n, k) * vload(s->scale, c, false) + vload(s->shift, c, false);

			if (residual)
				y += V(bn_load)(s->residual, i, n, k);
			if (relu)
				y = vrelu(y);
			V(bn_store)(s->out, i, y, n, k);
		}
}

VEC_INLINE void V(bn_normalise_any)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	s->residual ? V(bn_normalise_rows)(s, r, k, true) : V(bn_normalise_rows)(s, r, k, false);
}

static void V(bn_normalise)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	if (s->c % LANES == 0 && s->bf16)
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = true, .full = true });
	else if (s->c % LANES == 0)
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = false, .full = true });
	else
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = s->bf16 });
}

VEC_INLINE void V(bn_grad_x_rows)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			int64_t i = row * s->c + c;
			v16 x = V(bn_load)(s->x, i, s->c - c, k);
			v16 g = V(bn_masked)(s, i, c, x, k);
			v16 dx =
				(x - vload(s->mean, c, false)) * vload(s->slope, c, false) + vload(s->offset, c, false);

			V(bn_store)(s->out, i, g * vload(s->scale, c, false) + dx, s->c - c, k);
		}
}

VEC_INLINE void V(bn_grad_x_any)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	struct V(tile) none = k, from_x = k;

	none.mask = MASK_NONE;
	from_x.mask = MASK_FROM_X;
	s->attr.relu ? V(bn_grad_x_rows)(s, r, from_x) : V(bn_grad_x_rows)(s, r, none);
}

static void V(bn_grad_x)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	if (s->c % LANES == 0 && s->bf16)
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = true, .full = true });
	else if (s->c % LANES == 0)
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = false, .full = true });
	else
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = s->bf16 });
}

#endif
