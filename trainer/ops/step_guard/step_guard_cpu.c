/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_cpu.c: the decision of step_guard_math.h; operands are always f64. */
#include "trainer/ops/step_guard/step_guard_math.h"

static int prepare_guard_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env, (void)err;
	*ret_state = n;
	return 0;
}

static int run_guard_cpu(void *state, const struct kernel_args *args, struct err *err)
{
	(void)err;
	step_guard_decide(state, args);
	return 0;
}

extern const struct kernel step_guard_cpu;
const struct kernel step_guard_cpu = { .prepare = prepare_guard_cpu, .run = run_guard_cpu };
