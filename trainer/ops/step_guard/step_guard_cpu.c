/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_cpu.c: the decision of step_guard_math.h; operands are always f64. */
#include "trainer/ops/step_guard/step_guard_math.h"

static int prepare_guard_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env, (void)err;
	*ret_state = n;
	return 0;
}

static void run_guard_cpu(void *state, const struct kernel_args *args)
{
	step_guard_decide(state, args);
}

extern const struct kernel step_guard_cpu;
const struct kernel step_guard_cpu = { .prepare = prepare_guard_cpu, .run = run_guard_cpu };
