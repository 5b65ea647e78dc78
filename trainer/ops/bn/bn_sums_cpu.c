/* SPDX-License-Identifier: Apache-2.0 */
/* bn_sums_cpu.c: the sums for batch norm's statistics and for its gradient, in one pass over the data that includes the
 * gradient's mask and join. Each part sums blocks of rows in f32 and the blocks in f64; the parts are added in
 * order. */
#ifndef CPU_PASS

#include "tracker/base/round.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/graph/plan.h"
#include "trainer/ops/bn/bn_cpu.h"
#include "trainer/ops/ops.h"

#define BLOCK_ROWS 64

static inline int pick_bn_mask(const struct bn_state *s)
{
	return s->y_in ? MASK_FROM_Y : s->attr.relu ? MASK_FROM_X : MASK_NONE;
}

#define CPU_BODY "trainer/ops/bn/bn_sums_cpu.c"
#include "trainer/backends/cpu/each.h"

static bool has_wide_sums(const struct bn_state *s)
{
	return s->c > 4 * LANES_MOST && s->c % LANES_MOST == 0;
}

static size_t count_sums_bytes(const struct bn_state *s)
{
	size_t wide = has_wide_sums(s) ? (size_t)(s->parts * 2 * s->padded) * sizeof(float) : 0;

	return round_up_bytes((size_t)(s->parts * 2 * s->c) * sizeof(double), PLAN_ALIGN_BYTES) + wide;
}

static void place_sums(struct bn_state *s, void *workspace)
{
	s->sums = workspace;
	if (has_wide_sums(s))
		s->rows_sum = (float *)((char *)workspace + count_sums_bytes(s)) - s->parts * 2 * s->padded;
}

static void fold_sums(const struct bn_state *s, double *out)
{
	for (int64_t i = 0; i < 2 * s->c; i++) {
		double sum = 0;

		for (int p = 0; p < s->parts; p++)
			sum += s->sums[p * 2 * s->c + i];
		out[i] = sum;
	}
}

static int prepare_bn_stats_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	int rc = bn_cpu_new(env, n, (struct cpu_operands){ 1, 0 }, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_sum_x);
	n->workspace_bytes = count_sums_bytes(s);
	*ret_state = s;
	return 0;
}

static void run_bn_stats_cpu(void *state, const struct kernel_args *args)
{
	struct bn_state s = *(const struct bn_state *)state;
	double *stat = args->out[0];

	s.x = args->in[0];
	place_sums(&s, args->workspace);
	cpu_parallel(s.parts, s.loop, &s);
	fold_sums(&s, stat);
	stat[2 * s.c] = (double)s.rows;
}

static int prepare_bn_grad_stats_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	int rc = bn_cpu_new(env, n, (struct cpu_operands){ 3, 0 }, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_sum_grad);
	n->workspace_bytes = count_sums_bytes(s) + bn_cpu_coef_bytes(s, 4);
	*ret_state = s;
	return 0;
}

static void run_bn_grad_stats_cpu(void *state, const struct kernel_args *args)
{
	struct bn_state s = *(const struct bn_state *)state;

	s.dy = args->in[0];
	s.dy2 = args->in[1];
	s.x = args->in[2];
	s.y_in = s.attr.relu && s.attr.residual ? args->in[6] : NULL;
	bn_cpu_write(&s, s.attr.write_g ? args->out[1] : NULL);
	place_sums(&s, args->workspace);
	bn_cpu_coef_place(&s, (char *)args->workspace + count_sums_bytes(&s));
	bn_cpu_coef_forward(&s, args->in[3], args->in[4], args->in[5]);
	cpu_parallel(s.parts, s.loop, &s);
	fold_sums(&s, args->out[0]);
}

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP
const struct kernel bn_stats_cpu = { .prepare = prepare_bn_stats_cpu,
				     .run = run_bn_stats_cpu,
				     .release = cpu_state_release };
const struct kernel bn_grad_stats_cpu = { .prepare = prepare_bn_grad_stats_cpu,
					  .run = run_bn_grad_stats_cpu,
					  .release = cpu_state_release };

#else

#include "trainer/ops/bn/bn_tile.h"

#define TILE_VECTORS 4

static inline __attribute__((unused)) void V(bn_fold)(double *sums, vf acc, int64_t width)
{
	vhalf half[2];
	vd sum[2];

	if (width < LANES) {
		for (int64_t i = 0; i < width; i++)
			sums[i] += (double)acc[i];
		return;
	}
	memcpy(half, &acc, sizeof(acc));
	memcpy(sum, sums, sizeof(sum));
	for (int i = 0; i < 2; i++)
		sum[i] += __builtin_convertvector(half[i], vd);
	memcpy(sums, sum, sizeof(sum));
}

/* One vector of channels of one row: adds x and x*x, or g and g*(x - mean), to a and b. */
VEC_INLINE void V(bn_step)(const struct bn_state *s, int64_t i, int64_t n, const struct V(bn_coef) * f, vf *a, vf *b,
			   const struct V(tile) k, const bool grad)
{
	vf x = V(bn_load)(s->x, i, n, k);

	if (!grad) {
		*a += x;
		*b += x * x;
		return;
	}
	vf g = V(bn_masked)(s, i, n, x, f, k);

	if (k.write)
		V(bn_store)(s->out, i, g, n, k);
	*a += g;
	*b += g * (x - f->mean);
}

/* Coefficients for a gradient; zeros for statistics. */
VEC_INLINE struct V(bn_coef) V(bn_step_coef)(const struct bn_state *s, int64_t c, const bool grad)
{
	return grad ? V(bn_coef_at)(s, c) : (struct V(bn_coef)){ vset(0), vset(0), vset(0) };
}

/* Adds the sums of one vector of channels to the part's. */
VEC_INLINE void V(bn_keep_sums)(const struct bn_state *s, int64_t c, double *sums, vf a, vf b, const bool grad)
{
	if (grad)
		b *= vload(s->rstd, c, false);
	V(bn_fold)(sums + c, a, s->c - c);
	V(bn_fold)(sums + s->c + c, b, s->c - c);
}

/* Sums rows r of the channels [c, c + 4 LANES / deep): `deep` rows by 4 / deep vectors at a time, so that four
 * independent sums overlap. */
VEC_INLINE void V(bn_sum_tile)(const struct bn_state *s, struct cpu_range r, int64_t c, double *sums, const int deep,
			       const struct V(tile) k, const bool grad)
{
	const int wide = TILE_VECTORS / deep;
	const struct bn_state own = *s; /* a copy that stores to `out` cannot alias */
	vf a[TILE_VECTORS] = { 0 }, b[TILE_VECTORS] = { 0 };
	struct V(bn_coef) f[TILE_VECTORS];
	int64_t row = r.begin;

#pragma GCC unroll 4
	for (int w = 0; w < wide; w++)
		f[w] = V(bn_step_coef)(s, c + w * LANES, grad);
	for (; row + deep <= r.end; row += deep)
#pragma GCC unroll 4
		for (int i = 0; i < TILE_VECTORS; i++) {
			int64_t at = (row + i / wide) * own.c + c + i % wide * LANES;

			V(bn_step)(&own, at, LANES, &f[i % wide], &a[i], &b[i], k, grad);
		}
	for (; row < r.end; row++)
#pragma GCC unroll 4
		for (int w = 0; w < wide; w++)
			V(bn_step)(&own, row * own.c + c + w * LANES, LANES, &f[w], &a[w], &b[w], k, grad);
#pragma GCC unroll 4
	for (int w = 0; w < wide; w++) {
		vf ta = a[w], tb = b[w];

#pragma GCC unroll 4
		for (int d = 1; d < deep; d++)
			ta += a[d * wide + w], tb += b[d * wide + w];
		V(bn_keep_sums)(s, c + w * LANES, sums, ta, tb, grad);
	}
}

/* With many channels the rows of a tile are too far apart for full memory bandwidth. Reads whole rows instead, with the
 * sums of a block in memory. */
VEC_INLINE void V(bn_sum_wide)(const struct bn_state *s, struct cpu_range r, double *sums, const struct V(tile) k,
			       const bool grad)
{
	float *a = s->rows_sum + (sums - s->sums) / (2 * s->c) * 2 * s->padded, *b = a + s->padded;

	memset(a, 0, (size_t)(2 * s->padded) * sizeof(*a));
	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			vf ta = vload(a, c, false), tb = vload(b, c, false);
			struct V(bn_coef) f = V(bn_step_coef)(s, c, grad);

			V(bn_step)(s, row * s->c + c, LANES, &f, &ta, &tb, k, grad);
			vstore(a, c, ta, false);
			vstore(b, c, tb, false);
		}
	for (int64_t c = 0; c < s->c; c++) {
		sums[c] += (double)a[c];
		sums[s->c + c] += (double)b[c] * (grad ? (double)s->rstd[c] : 1);
	}
}

/* Sums the vector of channels at c. Compiled once for all shapes, with decisions at run time. */
static __attribute__((noinline)) void V(bn_sum_rest)(const struct bn_state *s, struct cpu_range r, int64_t c,
						     double *sums, const struct V(tile) * k, const bool grad)
{
	vf a = { 0 }, b = { 0 };
	struct V(bn_coef) f = V(bn_step_coef)(s, c, grad);

	for (int64_t row = r.begin; row < r.end; row++)
		V(bn_step)(s, row * s->c + c, s->c - c, &f, &a, &b, *k, grad);
	V(bn_keep_sums)(s, c, sums, a, b, grad);
}

VEC_INLINE void V(bn_sum_rows)(const struct bn_state *s, struct cpu_range r, double *sums, const struct V(tile) k,
			       const bool grad)
{
	struct V(tile) whole = k, rest = k;

	whole.full = true;
	whole.past = s->past;
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
			V(bn_sum_rest)(s, block, c, sums, &rest, grad);
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

/* Common combinations are compiled as specialised functions of their own, which reduces compile time to a third. bf16
 * has them only for wide vectors. */
#define GRAD_ROWS(name, ...)                                                                                           \
	static __attribute__((noinline)) void V(name)(const struct bn_state *s, struct cpu_range r, double *sums)      \
	{                                                                                                              \
		V(bn_sum_rows)(s, r, sums, (struct V(tile)){ __VA_ARGS__ }, true);                                     \
	}

GRAD_ROWS(bn_grad_plain, .mask = MASK_NONE)
GRAD_ROWS(bn_grad_relu, .mask = MASK_FROM_X)
GRAD_ROWS(bn_grad_join, .mask = MASK_FROM_Y, .join = true, .write = true)
GRAD_ROWS(bn_grad_last, .mask = MASK_FROM_Y, .write = true)
#if LANES > 4
GRAD_ROWS(bn_grad_plain_low, .bf = true, .mask = MASK_NONE)
GRAD_ROWS(bn_grad_relu_low, .bf = true, .mask = MASK_FROM_X)
GRAD_ROWS(bn_grad_join_low, .bf = true, .mask = MASK_FROM_Y, .join = true, .write = true)
GRAD_ROWS(bn_grad_last_low, .bf = true, .mask = MASK_FROM_Y, .write = true)
#endif
#undef GRAD_ROWS

/* All other combinations. */
static void V(bn_grad_any)(const struct bn_state *s, struct cpu_range r, double *sums)
{
	struct V(tile) k = { .bf = s->bf16, .mask = pick_bn_mask(s), .join = s->dy2 != NULL, .write = s->out != NULL,
			      .past = s->past };

	for (int64_t row = r.begin; row < r.end; row += BLOCK_ROWS) {
		struct cpu_range block = { row, row + BLOCK_ROWS < r.end ? row + BLOCK_ROWS : r.end };

		k.full = s->rows_sum != NULL;
		if (k.full)
			V(bn_sum_wide)(s, block, sums, k, true);
		for (int64_t c = 0; !s->rows_sum && c < s->c; c += LANES)
			V(bn_sum_rest)(s, block, c, sums, &k, true);
	}
}

static void V(bn_sum_grad_rows)(const struct bn_state *s, struct cpu_range r, double *sums)
{
	static void (*const shapes[2][4])(const struct bn_state *, struct cpu_range, double *) = {
		{ V(bn_grad_plain), V(bn_grad_relu), V(bn_grad_join), V(bn_grad_last) },
#if LANES > 4
		{ V(bn_grad_plain_low), V(bn_grad_relu_low), V(bn_grad_join_low), V(bn_grad_last_low) },
#else
		{ V(bn_grad_any), V(bn_grad_any), V(bn_grad_any), V(bn_grad_any) },
#endif
	};
	bool join = s->dy2 != NULL, write = s->out != NULL;
	int mask = pick_bn_mask(s);

	if (mask != MASK_FROM_Y && !join && !write)
		shapes[s->bf16][mask == MASK_FROM_X](s, r, sums);
	else if (mask == MASK_FROM_Y && write)
		shapes[s->bf16][join ? 2 : 3](s, r, sums);
	else
		V(bn_grad_any)(s, r, sums);
}

static void V(bn_sum_grad)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	double *sums = V(bn_part)(s, part);
	struct cpu_range r = cpu_split(s->rows, BLOCK_ROWS, part, parts);

	V(bn_sum_grad_rows)(s, r, sums);
	vpast_end();
}

#endif
