/* adamw_cpu.c: the update of one parameter in f32. Parameter, gradient and both moments are each read once. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/adamw/adamw.h"
#include "trainer/ops/step_guard/step_guard.h"

struct adamw_state {
	struct cpu_update u;
	const float *g;
	float *p, *m, *v;
	float grad_scale, keep; /* keep: factor of decoupled decay */
	float rate, root_scale; /* lr / (1 - b1^t), 1 / sqrt(1 - b2^t) */
};

#define CPU_BODY "trainer/ops/adamw/adamw_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_adamw_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct cpu_update_opts o = { CPU_PICK(env, adamw_loop), .n_in = 4, .bytes = sizeof(struct adamw_state) };

	return cpu_update_new(env, n, &o, ret_state, err);
}

static int run_adamw_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct adamw_state s = *(const struct adamw_state *)state;
	const struct adamw_attr *a = s.u.attr;
	const double *step = args->in[4];
	double lr = args->page->lr, t = step[STEP_GUARD_UPDATES];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	s.p = args->out[0];
	s.g = args->in[1];
	s.m = args->out[1];
	s.v = args->out[2];
	s.grad_scale = (float)step[STEP_GUARD_FACTOR];
	s.keep = a->coupled ? 1 : (float)(1 - lr * a->weight_decay);
	s.rate = (float)(lr / (1 - pow(a->beta1, t)));
	s.root_scale = (float)(1 / sqrt(1 - pow(a->beta2, t)));
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

extern const struct kernel adamw_cpu;
const struct kernel adamw_cpu = { .prepare = prepare_adamw_cpu, .run = run_adamw_cpu, .release = cpu_state_release };

#else

static void V(adamw_loop)(void *arg, int part, int parts)
{
	const struct adamw_state *s = arg;
	const struct adamw_attr *a = s->u.attr;
	struct cpu_range r = cpu_split(s->u.count, LANES, part, parts);
	float decay = a->coupled ? (float)a->weight_decay : 0, eps = (float)a->eps;
	float share1 = (float)(1 - a->beta1), beta2 = (float)a->beta2, share2 = (float)(1 - a->beta2);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		int64_t n = r.end - i;
		vf p = vload_any(s->p, i, n, false), m = vload_any(s->m, i, n, false),
			v = vload_any(s->v, i, n, false);
		vf d = vload_any(s->g, i, n, false) * s->grad_scale + decay * p;

		m += share1 * (d - m);
		v = beta2 * v + share2 * d * d;
		vstore_any(s->m, i, m, n, false);
		vstore_any(s->v, i, v, n, false);
		p = p * s->keep - s->rate * m / (vsqrt(v) * s->root_scale + eps);
		vstore_any(s->p, i, p, n, false);
	}
}

#endif
