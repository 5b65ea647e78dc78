/* SPDX-License-Identifier: Apache-2.0 */
/* relu_cpu.c: max(x, 0) and its gradient, elementwise; NaN stays NaN. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/vec.h"

#define CPU_BODY "trainer/ops/relu/relu_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_relu_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return cpu_elems_new(env, n, CPU_PICK(env, relu_loop), ret_state, err);
}

extern const struct kernel relu_cpu;
const struct kernel relu_cpu = { .prepare = prepare_relu_cpu, .run = cpu_elems_run, .release = cpu_state_release };

static int prepare_relu_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return cpu_elems_new(env, n, CPU_PICK(env, relu_grad_loop), ret_state, err);
}

extern const struct kernel relu_grad_cpu;
const struct kernel relu_grad_cpu = { .prepare = prepare_relu_grad_cpu,
				      .run = cpu_elems_run,
				      .release = cpu_state_release };

#else

VEC_INLINE vf V(relu_loop_one)(vf x, vf same)
{
	(void)same;
	return vrelu(x);
}

VEC_INLINE vf V(relu_grad_loop_one)(vf dy, vf y)
{
	return vkeep_gt(dy, y, vset(0));
}

CPU_ELEMS_LOOP(relu_loop)
CPU_ELEMS_LOOP(relu_grad_loop)

#endif
