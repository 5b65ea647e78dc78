/* norm_cpu.c: sums of squares, in f32 over short runs and f64 above, and the norm made of them. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/norm/norm.h"

struct sumsq_state {
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	bool bf16;
	const void *g;
	double *sums; /* one of each part, in the workspace */
};

#define CPU_BODY "trainer/ops/norm/norm_cpu.c"
#include "trainer/backends/cpu/each.h"

static int sumsq_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct sumsq_state *s;
	void *state;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 0 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->loop = CPU_PICK(env, sumsq_loop);
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	s->bf16 = bf16;
	n->workspace_bytes = (size_t)s->parts * sizeof(double);
	*ret_state = s;
	return 0;
}

static int sumsq_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct sumsq_state s = *(const struct sumsq_state *)state;
	double sum = 0;

	(void)err;
	s.g = args->in[0];
	s.sums = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	for (int i = 0; i < s.parts; i++)
		sum += s.sums[i];
	*(double *)args->out[0] = sum;
	return 0;
}

struct norm_state {
	int n;
	bool sum;
};

static int norm_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	void *state;
	struct norm_state *s;
	int rc = cpu_state_new(sizeof(*s), &state, err);

	(void)env;
	if (rc)
		return rc;
	s = state;
	*s = (struct norm_state){ .n = n->n_in, .sum = n->attr != NULL };
	*ret_state = s;
	return 0;
}

static int norm_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct norm_state *s = state;
	double sum = 0;

	(void)err;
	for (int i = 0; i < s->n; i++)
		sum += *(const double *)args->in[i];
	*(double *)args->out[0] = s->sum ? sum : sqrt(sum) / args->page->loss_scale;
	return 0;
}

extern const struct kernel sumsq_cpu, norm_cpu;
const struct kernel sumsq_cpu = { .prepare = sumsq_prepare, .run = sumsq_run, .release = cpu_state_release };
const struct kernel norm_cpu = { .prepare = norm_prepare, .run = norm_run, .release = cpu_state_release };

#else

#define SUMSQ_RUN 1024

/* A gradient of 1e20 squares to infinity in f32: squares are taken of the f64 value then. */
VEC_INLINE double V(sumsq_run_of)(const struct sumsq_state *s, struct cpu_range r, const bool bf)
{
	v16 acc = { 0 }, acc2 = { 0 };
	double sum;

	for (int64_t i = r.begin; i < r.end; i += 2 * LANES) {
		v16 a = vload_any(s->g, i, r.end - i, bf);
		v16 b = i + LANES < r.end ? vload_any(s->g, i + LANES, r.end - i - LANES, bf) : (v16){ 0 };

		acc += a * a;
		acc2 += b * b;
	}
	sum = (double)vsum(acc + acc2);
	if (sum < 1e30 && (sum > 1e-20 || sum == 0))
		return sum;
	sum = 0;
	for (int64_t i = r.begin; i < r.end; i += LANES) {
		v16 a = vload_any(s->g, i, r.end - i, bf);

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

		sum += s->bf16 ? V(sumsq_run_of)(s, run, true) : V(sumsq_run_of)(s, run, false);
	}
	s->sums[part] = sum;
}

#endif
