/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm_cpu.c: layer normalisation, one visit per row in each direction. The gradients of gain and bias are summed
 * per part, in runs of FOLD rows, then over the parts. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/ops.h"

#define FOLD 32 /* rows, or vectors, summed in f32 before they are added to a longer sum */

struct layernorm_state {
	cpu_part_fn *loop;
	int64_t rows, c;
	float eps, shift;
	bool rms;
	int parts;
	bool bf16;
	/* set per run */
	const void *x, *delta, *dy, *skip;
	const float *gamma, *beta, *stats_in;
	void *y, *sum;
	float *stats, *dgamma, *dbeta;
	float *scratch; /* per part: forward [c], a row before rounding; gradient [4][c], sums */
};

#define CPU_BODY "trainer/ops/layernorm/layernorm_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Creates the state of both ops. scratch_rows: rows of c floats per part. */
static int new_layernorm_state(const struct kernel_env *env, struct node *n, int scratch_rows,
			       struct layernorm_state **ret, struct err *err)
{
	const struct tensor *gamma = n->in[n->op->id == OP_layernorm ? 2 : 3];
	const struct layernorm_attr *a = n->attr;
	struct layernorm_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 1 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->bf16 = bf16;
	s->rows = layernorm_rows(n->in[0], gamma);
	s->c = gamma->shape.dim[0];
	s->eps = (float)a->eps;
	s->shift = (float)a->shift;
	s->rms = a->rms;
	s->parts = cpu_parts(env, s->rows * s->c * 4);
	n->workspace_bytes = (size_t)s->parts * (size_t)(scratch_rows * s->c) * sizeof(float);
	*ret = s;
	return 0;
}

static int prepare_layernorm_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct layernorm_state *s;
	int rc = new_layernorm_state(env, n, 1, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, layernorm_loop);
	*ret_state = s;
	return 0;
}

static void run_layernorm_cpu(void *state, const struct kernel_args *args)
{
	struct layernorm_state s = *(const struct layernorm_state *)state;

	s.x = args->in[0];
	s.delta = args->in[1];
	s.gamma = args->in[2];
	s.beta = args->in[3];
	s.y = args->out[0];
	s.stats = args->out[1];
	s.sum = args->out[2];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
}

static int prepare_layernorm_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct layernorm_state *s;
	int rc = new_layernorm_state(env, n, 4, &s, err);

	if (rc)
		return rc;
	s->loop = CPU_PICK(env, layernorm_grad_loop);
	*ret_state = s;
	return 0;
}

/* Runs the parts, then adds their sums to dgamma and dbeta. */
static void run_layernorm_grad_cpu(void *state, const struct kernel_args *args)
{
	struct layernorm_state s = *(const struct layernorm_state *)state;

	s.dy = args->in[0];
	s.x = args->in[1];
	s.stats_in = args->in[2];
	s.gamma = args->in[3];
	s.skip = args->in[4];
	s.y = args->out[0]; /* may share memory with dy */
	s.dgamma = args->out[1];
	s.dbeta = args->out[2];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	for (int64_t i = 0; s.dgamma && i < s.c; i++) {
		double dgamma = 0, dbeta = 0;

		for (int part = 0; part < s.parts; part++) {
			dgamma += (double)s.scratch[(4 * part + 2) * s.c + i];
			dbeta += (double)s.scratch[(4 * part + 3) * s.c + i];
		}
		s.dgamma[i] = (float)dgamma;
		if (s.dbeta)
			s.dbeta[i] = (float)dbeta;
	}
}

extern const struct kernel layernorm_cpu, layernorm_grad_cpu;
const struct kernel layernorm_cpu = { .prepare = prepare_layernorm_cpu,
				      .run = run_layernorm_cpu,
				      .release = cpu_state_release };
const struct kernel layernorm_grad_cpu = { .prepare = prepare_layernorm_grad_cpu,
					   .run = run_layernorm_grad_cpu,
					   .release = cpu_state_release };

#else

/* Two sums over a row in f64; callers accumulate in f32 first. */
struct V(row_pair) {
	double a, b;
};

/* Computes v = x + delta and returns the sum of its elements. */
VEC_INLINE double V(add_row_sum)(const struct layernorm_state *s, int64_t at, float *v, const bool bf)
{
	double sum = 0;

	for (int64_t i0 = 0; i0 < s->c; i0 += FOLD * LANES) {
		vf acc = { 0 };

		for (int64_t i = i0; i < s->c && i < i0 + FOLD * LANES; i += LANES) {
			int64_t left = s->c - i;
			vf x = vload_any(s->x, at + i, left, bf);

			if (s->delta)
				x += vload_any(s->delta, at + i, left, bf);
			if (s->sum)
				vstore_any(s->sum, at + i, x, left, bf);
			vstore_any(v, i, x, left, false);
			acc += x;
		}
		sum += (double)vsum(acc);
	}
	return sum;
}

/* Sum of squared distances from the mean. */
VEC_INLINE double V(sum_row_squares)(const struct layernorm_state *s, const float *v, float mean)
{
	double sum = 0;

	for (int64_t i0 = 0; i0 < s->c; i0 += FOLD * LANES) {
		vf acc = { 0 };

		for (int64_t i = i0; i < s->c && i < i0 + FOLD * LANES; i += LANES) {
			vf d = vload_any(v, i, s->c - i, false) - mean;

			for (int64_t l = s->c - i; l < LANES; l++)
				d[l] = 0;
			acc += d * d;
		}
		sum += (double)vsum(acc);
	}
	return sum;
}

VEC_INLINE void V(layernorm_row)(const struct layernorm_state *s, int64_t row, float *v, const bool bf)
{
	double sum = V(add_row_sum)(s, row * s->c, v, bf), mean = s->rms ? 0 : sum / (double)s->c;
	double off = mean - (double)(float)mean;
	double var = V(sum_row_squares)(s, v, (float)mean) / (double)s->c - off * off;
	float rstd = (float)(1 / sqrt(var + (double)s->eps));

	s->stats[2 * row] = (float)mean;
	s->stats[2 * row + 1] = rstd;
	for (int64_t i = 0; i < s->c; i += LANES) {
		int64_t left = s->c - i;
		vf h = (vload_any(v, i, left, false) - (float)mean) * rstd;
		vf y = h * (vload_any(s->gamma, i, left, false) + s->shift);

		if (s->beta)
			y += vload_any(s->beta, i, left, false);
		vstore_any(s->y, row * s->c + i, y, left, bf);
	}
}

static void V(layernorm_loop)(void *arg, int part, int parts)
{
	const struct layernorm_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);
	float *v = s->scratch + part * s->c;

	for (int64_t row = r.begin; row < r.end; row++)
		s->bf16 ? V(layernorm_row)(s, row, v, true) : V(layernorm_row)(s, row, v, false);
}

/* Sums over the row of d = dy gamma, and of d times the normalised row. */
VEC_INLINE struct V(row_pair) V(sum_row_grads)(const struct layernorm_state *s, int64_t row, const bool bf)
{
	float mean = s->stats_in[2 * row], rstd = s->stats_in[2 * row + 1];
	struct V(row_pair) sum = { 0, 0 };

	for (int64_t i0 = 0; i0 < s->c; i0 += FOLD * LANES) {
		vf a = { 0 }, b = { 0 };

		for (int64_t i = i0; i < s->c && i < i0 + FOLD * LANES; i += LANES) {
			int64_t left = s->c - i, at = row * s->c + i;
			vf d = vload_any(s->dy, at, left, bf) * (vload_any(s->gamma, i, left, false) + s->shift);

			a += d;
			b += d * ((vload_any(s->x, at, left, bf) - mean) * rstd);
		}
		sum.a += s->rms ? 0 : (double)vsum(a);
		sum.b += (double)vsum(b);
	}
	return sum;
}

/* Computes ds of one row. sums: partial dgamma and dbeta of the run of rows, [2][c]. */
VEC_INLINE void V(compute_grad_row)(const struct layernorm_state *s, int64_t row, float *sums, const bool bf)
{
	float mean = s->stats_in[2 * row], rstd = s->stats_in[2 * row + 1];
	struct V(row_pair) sum = V(sum_row_grads)(s, row, bf);
	float mean_d = (float)(sum.a / (double)s->c), mean_dh = (float)(sum.b / (double)s->c);

	for (int64_t i = 0; i < s->c; i += LANES) {
		int64_t left = s->c - i, at = row * s->c + i;
		vf dy = vload_any(s->dy, at, left, bf), h = (vload_any(s->x, at, left, bf) - mean) * rstd;
		vf ds = rstd * (dy * (vload_any(s->gamma, i, left, false) + s->shift) - mean_d - h * mean_dh);

		if (s->skip)
			ds += vload_any(s->skip, at, left, bf);
		vstore_any(s->y, at, ds, left, bf);
		vstore_any(sums, i, vload_any(sums, i, left, false) + dy * h, left, false);
		vstore_any(sums, s->c + i, vload_any(sums, s->c + i, left, false) + dy, left, false);
	}
}

/* The part's scratch: sums of the current run of rows, [2][c], and of all earlier runs, [2][c]. */
static void V(layernorm_grad_loop)(void *arg, int part, int parts)
{
	const struct layernorm_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);
	float *sums = s->scratch + 4 * part * s->c;

	memset(sums, 0, (size_t)(4 * s->c) * sizeof(float));
	for (int64_t row = r.begin; row < r.end; row++) {
		s->bf16 ? V(compute_grad_row)(s, row, sums, true) : V(compute_grad_row)(s, row, sums, false);
		if (row + 1 < r.end && (row + 1 - r.begin) % FOLD)
			continue;
		for (int64_t i = 0; i < 2 * s->c; i++) {
			sums[2 * s->c + i] += sums[i];
			sums[i] = 0;
		}
	}
}

#endif
