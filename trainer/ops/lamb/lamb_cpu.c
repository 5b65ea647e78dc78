/* lamb_cpu.c: LAMB in f32: Adam's step of one parameter into a separate buffer, then its addition once its norm is
 * known. */
#ifndef CPU_PASS
#include <math.h>
#include <string.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lamb/lamb.h"
#include "trainer/ops/lamb/lamb_math.h"

struct lamb_state { /* of both ops */
	struct cpu_update u;
	const float *g, *p_in, *u_in;
	float *p, *m, *v, *out;
	float grad_scale, mean_scale, root_scale; /* 1 / (1 - b1^t), 1 / sqrt(1 - b2^t) */
	float rate;				  /* lr times the trust ratio */
};

#define CPU_BODY "trainer/ops/lamb/lamb_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_lamb_update_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct cpu_update_opts o = { CPU_PICK(env, update_loop), .n_in = 4, .bytes = sizeof(struct lamb_state) };

	return cpu_update_new(env, n, &o, ret_state, err);
}

/* Adam's step into out; zero for a skipped step. */
static int run_lamb_update_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct lamb_state s = *(const struct lamb_state *)state;
	const double *step = args->in[4];
	const struct lamb_attr *a = s.u.attr;
	double t = step[STEP_GUARD_UPDATES];

	(void)err;
	s.out = args->out[0];
	if (step[STEP_GUARD_SKIP] != 0) {
		memset(s.out, 0, (size_t)s.u.count * sizeof(*s.out));
		return 0;
	}
	s.g = args->in[0];
	s.p_in = args->in[1];
	s.m = args->out[1];
	s.v = args->out[2];
	s.grad_scale = (float)step[STEP_GUARD_FACTOR];
	s.mean_scale = (float)(1 / (1 - pow(a->beta1, t)));
	s.root_scale = (float)(1 / sqrt(1 - pow(a->beta2, t)));
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

static int prepare_lamb_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct cpu_update_opts o = { CPU_PICK(env, lamb_loop), .n_in = 2, .bytes = sizeof(struct lamb_state) };

	return cpu_update_new(env, n, &o, ret_state, err);
}

static int run_lamb_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct lamb_state s = *(const struct lamb_state *)state;
	const double *step = args->in[2];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	s.p = args->out[0];
	s.u_in = args->in[1];
	s.rate = (float)(args->page->lr * lamb_ratio(args->in[3], args->in[4]));
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

extern const struct kernel lamb_update_cpu, lamb_cpu;
const struct kernel lamb_update_cpu = { .prepare = prepare_lamb_update_cpu,
					.run = run_lamb_update_cpu,
					.release = cpu_state_release };
const struct kernel lamb_cpu = { .prepare = prepare_lamb_cpu, .run = run_lamb_cpu, .release = cpu_state_release };

#else

static void V(update_loop)(void *arg, int part, int parts)
{
	const struct lamb_state *s = arg;
	const struct lamb_attr *a = s->u.attr;
	struct cpu_range r = cpu_split(s->u.count, LANES, part, parts);
	float decay = (float)a->weight_decay, eps = (float)a->eps;
	float beta1 = (float)a->beta1, beta2 = (float)a->beta2;
	float share1 = (float)(1 - a->beta1), share2 = (float)(1 - a->beta2);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		int64_t n = r.end - i;
		vf d = vload_any(s->g, i, n, false) * s->grad_scale;
		vf m = beta1 * vload_any(s->m, i, n, false) + share1 * d;
		vf v = beta2 * vload_any(s->v, i, n, false) + share2 * d * d;
		vf u = m * s->mean_scale / (vsqrt(v) * s->root_scale + eps);

		vstore_any(s->m, i, m, n, false);
		vstore_any(s->v, i, v, n, false);
		vstore_any(s->out, i, u + decay * vload_any(s->p_in, i, n, false), n, false);
	}
}

static void V(lamb_loop)(void *arg, int part, int parts)
{
	const struct lamb_state *s = arg;
	struct cpu_range r = cpu_split(s->u.count, LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf u = vload_any(s->u_in, i, r.end - i, false);

		vstore_any(s->p, i, vload_any(s->p, i, r.end - i, false) - s->rate * u, r.end - i, false);
	}
}

#endif
