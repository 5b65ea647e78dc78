/* sgd_cpu.c: the update of one parameter in f32. Parameter, gradient and moment are each read once. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/sgd/sgd.h"

struct sgd_state {
	struct cpu_update u;
	const float *g;
	float *p, *m;
	float lr, grad_scale;
};

#define CPU_BODY "trainer/ops/sgd/sgd_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_sgd_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct cpu_update_opts o = { CPU_PICK(env, sgd_loop), .n_in = 3, .bytes = sizeof(struct sgd_state) };

	return cpu_update_new(env, n, &o, ret_state, err);
}

static int run_sgd_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	struct sgd_state s = *(const struct sgd_state *)state;
	const double *step = args->in[3];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	s.p = args->out[0];
	s.g = args->in[1];
	s.m = ((const struct sgd_attr *)s.u.attr)->momentum != 0 ? args->out[1] : NULL;
	s.lr = (float)args->page->lr;
	s.grad_scale = (float)step[STEP_GUARD_FACTOR];
	cpu_parallel(s.u.parts, s.u.loop, &s);
	return 0;
}

extern const struct kernel sgd_cpu;
const struct kernel sgd_cpu = { .prepare = prepare_sgd_cpu, .run = run_sgd_cpu, .release = cpu_state_release };

#else

static void V(sgd_loop)(void *arg, int part, int parts)
{
	const struct sgd_state *s = arg;
	const struct sgd_attr *a = s->u.attr;
	struct cpu_range r = cpu_split(s->u.count, LANES, part, parts);
	float decay = (float)a->weight_decay, momentum = (float)a->momentum;

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		int64_t n = r.end - i;
		vf p = vload_any(s->p, i, n, false);
		vf d = vload_any(s->g, i, n, false) * s->grad_scale + decay * p;

		if (s->m) {
			vf m = momentum * vload_any(s->m, i, n, false) + d;

			vstore_any(s->m, i, m, n, false);
			d = a->nesterov ? d + momentum * m : m;
		}
		vstore_any(s->p, i, p - s->lr * d, n, false);
	}
}

#endif
