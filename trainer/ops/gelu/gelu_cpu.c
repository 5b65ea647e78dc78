/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_cpu.c: tanh GELU and its gradient. With u = sqrt(2/pi) (x + 0.044715 x^3), 0.5 (1 + tanh u) is the logistic
 * function s of 2u, so y = x s and dy/dx = s + x s (1 - s) 2 du/dx: one exponential each. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/vec.h"

#define CPU_BODY "trainer/ops/gelu/gelu_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_gelu_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return cpu_elems_new(env, n, CPU_PICK(env, gelu_loop), ret_state, err);
}

extern const struct kernel gelu_cpu;
const struct kernel gelu_cpu = { .prepare = prepare_gelu_cpu, .run = cpu_elems_run, .release = cpu_state_release };

static int prepare_gelu_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return cpu_elems_new(env, n, CPU_PICK(env, gelu_grad_loop), ret_state, err);
}

extern const struct kernel gelu_grad_cpu;
const struct kernel gelu_grad_cpu = { .prepare = prepare_gelu_grad_cpu,
				      .run = cpu_elems_run,
				      .release = cpu_state_release };

#else

#define GELU_TWO_ROOT 1.59576912160573071f /* 2 sqrt(2/pi) */
#define GELU_CUBIC 0.044715f

/* e^(-2u), limited to a finite value; vmin with the constant first propagates NaN. */
VEC_INLINE vf V(gelu_exp)(vf x)
{
	return vexp(vmin(vset(88), -(GELU_TWO_ROOT * x * (1 + GELU_CUBIC * x * x))));
}

VEC_INLINE vf V(gelu_loop_one)(vf x, vf same)
{
	(void)same;
	return x / (1 + V(gelu_exp)(x));
}

/* 1 - s is computed as e s, since the difference cancels where s is near 1. For large |x| it is zero; clamping x keeps
 * its polynomial factor finite, so that the product is not NaN. */
VEC_INLINE vf V(gelu_grad_loop_one)(vf dy, vf x)
{
	vf e = V(gelu_exp)(x);
	vf s = 1 / (1 + e);
	vf t = vmin(vmax(x, vset(-64)), vset(64));
	vf du = GELU_TWO_ROOT * (1 + 3 * GELU_CUBIC * t * t);

	return dy * (s + t * s * (e * s) * du);
}

CPU_ELEMS_LOOP(gelu_loop)
CPU_ELEMS_LOOP(gelu_grad_loop)

#endif
