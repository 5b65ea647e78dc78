/* SPDX-License-Identifier: Apache-2.0 */
/* scale_cpu.c: the product with a constant. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/scale/scale.h"

#define CPU_BODY "trainer/ops/scale/scale_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_scale_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = cpu_elems_new(env, n, CPU_PICK(env, scale_loop), ret_state, err);

	if (!rc)
		((struct cpu_elems *)*ret_state)->factor = (float)((const struct scale_attr *)n->attr)->factor;
	return rc;
}

extern const struct kernel scale_cpu;
const struct kernel scale_cpu = { .prepare = prepare_scale_cpu, .run = cpu_elems_run, .release = cpu_state_release };

#else

static void V(scale_loop)(void *arg, int part, int parts)
{
	const struct cpu_elems *e = arg;
	struct cpu_range r = cpu_split(e->count, 2 * LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES)
		vstore_any(e->y, i, vset(e->factor) * vload_any(e->a, i, r.end - i, e->bf16), r.end - i, e->bf16);
}

#endif
