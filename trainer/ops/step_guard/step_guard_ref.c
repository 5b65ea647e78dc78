/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_ref.c: the decision of step_guard_math.h. */
#include "trainer/ops/step_guard/step_guard_math.h"
#include "trainer/ops/ref_kernel.h"

static int run_guard_ref(void *state, const struct kernel_args *args, struct err *err)
{
	(void)err;
	step_guard_decide(state, args);
	return 0;
}

const struct kernel step_guard_ref = REF_KERNEL(run_guard_ref);
