/* SPDX-License-Identifier: Apache-2.0 */
/* add_cpu.c: the elementwise sum of two tensors. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/vec.h"

#define CPU_BODY "trainer/ops/add/add_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_add_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return cpu_elems_new(env, n, CPU_PICK(env, add_loop), ret_state, err);
}

extern const struct kernel add_cpu;
const struct kernel add_cpu = { .prepare = prepare_add_cpu, .run = cpu_elems_run, .release = cpu_state_release };

#else

VEC_INLINE vf V(add_loop_one)(vf a, vf b)
{
	return a + b;
}

CPU_ELEMS_LOOP(add_loop)

#endif
