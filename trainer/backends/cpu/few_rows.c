/* SPDX-License-Identifier: Apache-2.0 */
/* few_rows.c: each result is a sum of products along two rows. The rows of the matrix are read in memory order, one at
 * a time: the processor then prefetches better than prefetch instructions do, and better than with several rows at
 * once. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/vec.h"

#define ROWS_MOST 4
#define CHAINS 4 /* independent sums per row, so that none waits for the previous one */

struct few_rows {
	const struct dnn_matmul_spec *s;
	const struct dnn_matmul_args *args;
};

#define CPU_BODY "trainer/backends/cpu/few_rows.c"
#include "trainer/backends/cpu/each.h"

bool few_rows_takes(const struct cpu_module *m, const struct dnn_matmul_spec *s)
{
	return m->isa >= CPU_AVX2 && s->m <= ROWS_MOST && s->b_turned && !s->a_turned && !s->add &&
	       s->k % (2 * LANES_MOST) == 0;
}

void few_rows_run(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads,
		  const struct dnn_matmul_args *args)
{
	static cpu_part_fn *const loops[] = CPU_TABLE(few_rows_loop);
	struct few_rows f = { s, args };
	struct kernel_env env = { .threads = threads };

	cpu_parallel(cpu_parts(&env, s->n * s->k), loops[m->isa], &f);
}

#else

/* Adds the products of the next 2 LANES elements of a row of a and a row of b. */
VEC_INLINE vf V(few_rows_add)(vf sum, const void *a, const void *b, const bool bf)
{
#ifdef CPU_HAS_BF16
	if (bf)
		return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_loadu_si512(a),
					    (__m512bh)_mm512_loadu_si512(b));
#endif
	sum += vload(a, 0, bf) * vload(b, 0, bf);
	return sum + vload(a, LANES, bf) * vload(b, LANES, bf);
}

/* Adds the products of the rows of a with row n of b, lane by lane: row i to sums[i * LANES]. */
VEC_INLINE void V(few_rows_sums)(const struct few_rows *f, int64_t n, vf *sums, const int rows, const bool bf)
{
	const struct dnn_matmul_spec *s = f->s;
	const int64_t item = bf ? 2 : 4, a_step = (s->a_step ? s->a_step : s->k) * item, b_step = s->k * item;
	const int64_t next = 2 * LANES * item;
	const char *a = f->args->a, *b = (const char *)f->args->b + n * b_step;
	vf sum[ROWS_MOST * CHAINS] = { 0 };
	int64_t at = 0;

	for (; at + CHAINS * next <= b_step; at += CHAINS * next)
#pragma GCC unroll 4
		for (int j = 0; j < CHAINS; j++) {
#pragma GCC unroll 4
			for (int i = 0; i < rows; i++)
				sum[i * CHAINS + j] = V(few_rows_add)(
					sum[i * CHAINS + j], a + i * a_step + at + j * next, b + at + j * next, bf);
		}
	for (; at < b_step; at += next)
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++)
			sum[i * CHAINS] = V(few_rows_add)(sum[i * CHAINS], a + i * a_step + at, b + at, bf);
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++) {
		const vf *of = sum + i * CHAINS;

		sums[i * LANES] = of[0] + of[1] + (of[2] + of[3]);
	}
}

/* Adds up the lanes of columns n.. into results. */
VEC_INLINE void V(few_rows_put)(const struct few_rows *f, int64_t n, vf *sums, const int rows)
{
	const struct dnn_matmul_spec *s = f->s;

	for (int i = 0; i < rows; i++, sums += LANES) {
		vf y = { 0 };

		vturn(sums);
#pragma GCC unroll 16
		for (int l = 0; l < LANES; l++)
			y += sums[l];
		if (f->args->bias)
			y += vload_any(f->args->bias, n, s->n - n, false);
		vstore_any(f->args->out, i * (s->out_step ? s->out_step : s->n) + n, y, s->n - n, s->out_bf16);
	}
}

VEC_INLINE void V(few_rows_range)(const struct few_rows *f, struct cpu_range r, const int rows, const bool bf)
{
	vf sums[ROWS_MOST * LANES] = { 0 };

	for (int64_t n = r.begin; n < r.end; n += LANES) {
		for (int j = 0; j < LANES && n + j < f->s->n; j++)
			V(few_rows_sums)(f, n + j, sums + j, rows, bf);
		V(few_rows_put)(f, n, sums, rows);
	}
}

VEC_INLINE void V(few_rows_any)(const struct few_rows *f, struct cpu_range r, const bool bf)
{
	switch (f->s->m) {
	case 1:
		V(few_rows_range)(f, r, 1, bf);
		break;
	case 2:
		V(few_rows_range)(f, r, 2, bf);
		break;
	case 3:
		V(few_rows_range)(f, r, 3, bf);
		break;
	default:
		V(few_rows_range)(f, r, 4, bf);
	}
}

static void V(few_rows_loop)(void *arg, int part, int parts)
{
	const struct few_rows *f = arg;
	struct cpu_range r = cpu_split(f->s->n, LANES, part, parts);

	f->s->bf16 ? V(few_rows_any)(f, r, true) : V(few_rows_any)(f, r, false);
}

#endif
