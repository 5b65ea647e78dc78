/* SPDX-License-Identifier: Apache-2.0 */
/* bn_cpu.c: applies batch norm in one pass over the data in each direction: normalisation with add and ReLU forward,
 * the gradient of x with its mask backward. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/bn/bn_cpu.h"
#include "trainer/ops/ops.h"

#define BN_NARROW 4 /* vectors */

#define CPU_BODY "trainer/ops/bn/bn_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_bn_apply_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	int rc = bn_cpu_new(env, n, (struct cpu_operands){ 1, 1 }, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_normalise);
	n->workspace_bytes = bn_cpu_coef_bytes(s, 4);
	*ret_state = s;
	return 0;
}

static void run_bn_apply_cpu(void *state, const struct kernel_args *args)
{
	struct bn_state s = *(const struct bn_state *)state;

	s.x = args->in[0];
	s.residual = s.attr.residual ? args->in[4] : NULL;
	bn_cpu_write(&s, args->out[0]);
	bn_cpu_coef_place(&s, args->workspace);
	bn_cpu_coef_forward(&s, args->in[1], args->in[2], args->in[3]);
	cpu_parallel(s.parts, s.loop, &s);
}

static int prepare_bn_grad_apply_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct bn_state *s;
	int rc = bn_cpu_new(env, n, (struct cpu_operands){ 2, 1 }, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bn_grad_x);
	n->workspace_bytes = bn_cpu_coef_bytes(s, 6);
	*ret_state = s;
	return 0;
}

/* dx as scale g + slope (x - mean) + offset, with per-channel coefficients. */
static void run_bn_grad_apply_cpu(void *state, const struct kernel_args *args)
{
	struct bn_state s = *(const struct bn_state *)state;
	const double *stat = args->in[2], *dstat = args->in[3];
	const float *gamma = args->in[4];
	double count = stat[2 * s.c];

	s.dy = args->in[0];
	s.x = args->in[1];
	bn_cpu_write(&s, args->out[0]);
	bn_cpu_coef_place(&s, args->workspace);
	bn_cpu_coef_forward(&s, stat, gamma, args->in[5]);
	for (int64_t i = 0; i < s.padded; i++) {
		double rstd = i < s.c ? bn_cpu_rstd(stat, s.c, i, s.attr.eps) : 0;
		double scale = i < s.c ? (double)gamma[i] * rstd : 0;

		s.slope[i] = scale != 0 ? (float)(-scale * rstd * dstat[s.c + i] / count) : 0;
		s.offset[i] = scale != 0 ? (float)(-scale * dstat[i] / count) : 0;
	}
	cpu_parallel(s.parts, s.loop, &s);
}

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP
const struct kernel bn_apply_cpu = { .prepare = prepare_bn_apply_cpu,
				     .run = run_bn_apply_cpu,
				     .release = cpu_state_release };
const struct kernel bn_grad_apply_cpu = { .prepare = prepare_bn_grad_apply_cpu,
					  .run = run_bn_grad_apply_cpu,
					  .release = cpu_state_release };

#else

#include "trainer/ops/bn/bn_tile.h"

VEC_INLINE void V(bn_normalise_one)(const struct bn_state *s, int64_t i, int64_t n, const struct V(bn_coef) * f,
				    const struct V(tile) k, const bool residual)
{
	vf y = V(bn_load)(s->x, i, n, k) * f->scale + f->shift;

	if (residual)
		y += V(bn_load)(s->residual, i, n, k);
	if (s->attr.relu)
		y = vrelu(y);
	V(bn_store)(s->out, i, y, n, k);
}

VEC_INLINE void V(bn_normalise_rows)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k,
				     const bool residual)
{
	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			struct V(bn_coef) f = V(bn_coef_at)(s, c);

			V(bn_normalise_one)(s, row * s->c + c, s->c - c, &f, k, residual);
		}
}

/* True if rows divide groups of BN_NARROW vectors, so that each vector of a group always covers the same channels. */
VEC_INLINE bool V(bn_narrow)(const struct bn_state *s)
{
	return s->c == LANES || s->c == 2 * LANES || s->c == BN_NARROW * LANES;
}

/* For narrow rows: coefficients stay in registers. */
VEC_INLINE void V(bn_normalise_narrow)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k,
				       const bool residual)
{
	const struct bn_state own = *s; /* a copy that stores to `out` cannot alias */
	const int64_t end = r.end * own.c;
	struct V(bn_coef) f[BN_NARROW];
	int64_t i = r.begin * own.c;

#pragma GCC unroll 4
	for (int w = 0; w < BN_NARROW; w++)
		f[w] = V(bn_coef_at)(s, w * LANES % own.c);
	for (; i + BN_NARROW * LANES <= end; i += BN_NARROW * LANES)
#pragma GCC unroll 4
		for (int w = 0; w < BN_NARROW; w++)
			V(bn_normalise_one)(&own, i + w * LANES, LANES, &f[w], k, residual);
	V(bn_normalise_rows)(s, (struct cpu_range){ i / own.c, r.end }, k, residual);
}

VEC_INLINE void V(bn_normalise_full)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k,
				     const bool residual)
{
	if (V(bn_narrow)(s))
		V(bn_normalise_narrow)(s, r, k, residual);
	else
		V(bn_normalise_rows)(s, r, k, residual);
}

VEC_INLINE void V(bn_normalise_any)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	s->residual ? V(bn_normalise_full)(s, r, k, true) : V(bn_normalise_full)(s, r, k, false);
}

static void V(bn_normalise)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	if (s->c % LANES == 0 && s->bf16)
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = true, .full = true, .past = s->past });
	else if (s->c % LANES == 0)
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = false, .full = true, .past = s->past });
	else
		V(bn_normalise_any)(s, r, (struct V(tile)){ .bf = s->bf16 });
	vpast_end();
}

/* dx = scale g + slope (x - mean) + offset. */
struct V(bn_slope) {
	vf slope, offset;
};

VEC_INLINE struct V(bn_slope) V(bn_slope_at)(const struct bn_state *s, int64_t c)
{
	return (struct V(bn_slope)){ vload(s->slope, c, false), vload(s->offset, c, false) };
}

VEC_INLINE void V(bn_grad_x_one)(const struct bn_state *s, int64_t i, int64_t n, const struct V(bn_coef) * f,
				 const struct V(bn_slope) * l, const struct V(tile) k)
{
	vf x = V(bn_load)(s->x, i, n, k), g = V(bn_masked)(s, i, n, x, f, k);

	V(bn_store)(s->out, i, g * f->scale + ((x - f->mean) * l->slope + l->offset), n, k);
}

VEC_INLINE void V(bn_grad_x_rows)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	for (int64_t row = r.begin; row < r.end; row++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			struct V(bn_coef) f = V(bn_coef_at)(s, c);
			struct V(bn_slope) l = V(bn_slope_at)(s, c);

			V(bn_grad_x_one)(s, row * s->c + c, s->c - c, &f, &l, k);
		}
}

VEC_INLINE void V(bn_grad_x_narrow)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	const struct bn_state own = *s;
	const int64_t end = r.end * own.c;
	struct V(bn_coef) f[BN_NARROW];
	struct V(bn_slope) l[BN_NARROW];
	int64_t i = r.begin * own.c;

#pragma GCC unroll 4
	for (int w = 0; w < BN_NARROW; w++) {
		f[w] = V(bn_coef_at)(s, w * LANES % own.c);
		l[w] = V(bn_slope_at)(s, w * LANES % own.c);
	}
	for (; i + BN_NARROW * LANES <= end; i += BN_NARROW * LANES)
#pragma GCC unroll 4
		for (int w = 0; w < BN_NARROW; w++)
			V(bn_grad_x_one)(&own, i + w * LANES, LANES, &f[w], &l[w], k);
	V(bn_grad_x_rows)(s, (struct cpu_range){ i / own.c, r.end }, k);
}

VEC_INLINE void V(bn_grad_x_full)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	V(bn_narrow)(s) ? V(bn_grad_x_narrow)(s, r, k) : V(bn_grad_x_rows)(s, r, k);
}

VEC_INLINE void V(bn_grad_x_any)(const struct bn_state *s, struct cpu_range r, const struct V(tile) k)
{
	struct V(tile) none = k, from_x = k;

	none.mask = MASK_NONE;
	from_x.mask = MASK_FROM_X;
	s->attr.relu ? V(bn_grad_x_full)(s, r, from_x) : V(bn_grad_x_full)(s, r, none);
}

static void V(bn_grad_x)(void *arg, int part, int parts)
{
	const struct bn_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	if (s->c % LANES == 0 && s->bf16)
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = true, .full = true, .past = s->past });
	else if (s->c % LANES == 0)
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = false, .full = true, .past = s->past });
	else
		V(bn_grad_x_any)(s, r, (struct V(tile)){ .bf = s->bf16 });
	vpast_end();
}

#endif
