/* step_guard_cpu.c: see step_guard_math.h; its operands are f64 everywhere. */
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/step_guard/step_guard_math.h"

static int guard_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env, (void)err;
	*ret_state = n;
	return 0;
}

static int guard_run(void *state, const struct kernel_args *args, struct err *err)
{
	(void)err;
	step_guard_decide(state, args);
	return 0;
}

extern const struct kernel step_guard_cpu;
const struct kernel step_guard_cpu = { .prepare = guard_prepare, .run = guard_run };
