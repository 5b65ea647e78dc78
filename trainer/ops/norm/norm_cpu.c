/* SPDX-License-Identifier: Apache-2.0 */
/* norm_cpu.c: sums of squares, in f32 over short runs and in f64 over these, and the norm. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/norm/norm_host.h"

struct sumsq_state {
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	bool bf16;
	const void *g;
	double *sums; /* one per part, in the workspace */
};

struct squares_state {
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	const float *g;
	double *out;
};

#define CPU_BODY "trainer/ops/norm/norm_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_sumsq_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct sumsq_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 0 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = CPU_PICK(env, sumsq_loop);
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	s->bf16 = bf16;
	n->workspace_bytes = (size_t)s->parts * sizeof(double);
	*ret_state = s;
	return 0;
}

static void run_sumsq_cpu(void *state, const struct kernel_args *args)
{
	struct sumsq_state s = *(const struct sumsq_state *)state;
	double sum = 0;

	s.g = args->in[0];
	s.sums = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	for (int i = 0; i < s.parts; i++)
		sum += s.sums[i];
	*(double *)args->out[0] = sum;
}

static int prepare_squares_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct squares_state *s;
	int rc = cpu_want(n, n->in[0], DTYPE_F32, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = CPU_PICK(env, squares_loop);
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	*ret_state = s;
	return 0;
}

static void run_squares_cpu(void *state, const struct kernel_args *args)
{
	struct squares_state s = *(const struct squares_state *)state;

	s.g = args->in[0];
	s.out = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel sumsq_cpu, squares_cpu, exact_cpu, norm_cpu;
const struct kernel sumsq_cpu = { .prepare = prepare_sumsq_cpu, .run = run_sumsq_cpu, .release = cpu_state_release };
const struct kernel squares_cpu = { .prepare = prepare_squares_cpu,
				    .run = run_squares_cpu,
				    .release = cpu_state_release };
const struct kernel exact_cpu = EXACT_KERNEL;
const struct kernel norm_cpu = NORM_KERNEL;

#else

#define SUMSQ_RUN 1024

/* The square of 1e20 overflows f32. If the f32 sum is out of range, sums the squares of f64 values. */
VEC_INLINE double V(sum_run_squares)(const struct sumsq_state *s, struct cpu_range r, const bool bf)
{
	vf acc = { 0 }, acc2 = { 0 };
	double sum;

	for (int64_t i = r.begin; i < r.end; i += 2 * LANES) {
		vf a = vload_any(s->g, i, r.end - i, bf);
		vf b = i + LANES < r.end ? vload_any(s->g, i + LANES, r.end - i - LANES, bf) : (vf){ 0 };

		acc += a * a;
		acc2 += b * b;
	}
	sum = (double)vsum(acc + acc2);
	if (sum < 1e30 && (sum > 1e-20 || sum == 0))
		return sum;
	sum = 0;
	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf a = vload_any(s->g, i, r.end - i, bf);

		for (int j = 0; j < LANES; j++)
			sum += (double)a[j] * (double)a[j];
	}
	return sum;
}

static void V(sumsq_loop)(void *arg, int part, int parts)
{
	const struct sumsq_state *s = arg;
	struct cpu_range r = cpu_split(s->count, SUMSQ_RUN, part, parts);
	double sum = 0;

	for (int64_t i = r.begin; i < r.end; i += SUMSQ_RUN) {
		struct cpu_range run = { i, i + SUMSQ_RUN < r.end ? i + SUMSQ_RUN : r.end };

		sum += s->bf16 ? V(sum_run_squares)(s, run, true) : V(sum_run_squares)(s, run, false);
	}
	s->sums[part] = sum;
}

/* Squares in f64 are exact and cannot overflow. */
VEC_INLINE double V(sum_block_squares)(const float *g, int64_t n)
{
	vd low = { 0 }, high = { 0 };

	for (int64_t i = 0; i < n; i += LANES) {
		const vf x = vload_any(g, i, n - i, false);
		vhalf half[2];
		vd a, b;

		memcpy(half, &x, sizeof(half));
		a = __builtin_convertvector(half[0], vd);
		b = __builtin_convertvector(half[1], vd);
		low += a * a;
		high += b * b;
	}
	return vsum_d(low + high);
}

static void V(squares_loop)(void *arg, int part, int parts)
{
	const struct squares_state *s = arg;
	const struct cpu_range r = cpu_split(s->count, SQUARES_BLOCK, part, parts);

	for (int64_t i = r.begin; i < r.end; i += SQUARES_BLOCK)
		s->out[i / SQUARES_BLOCK] =
			V(sum_block_squares)(s->g + i, r.end - i < SQUARES_BLOCK ? r.end - i : SQUARES_BLOCK);
}

#endif
