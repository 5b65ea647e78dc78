/* guard_ref.c: see guard_math.h. */
#include "trainer/ops/guard/guard_math.h"
#include "trainer/ops/ref.h"

static int guard_run(void *state, const struct kernel_args *args, struct err *err)
{
	(void)err;
	guard_decide(state, args);
	return 0;
}

const struct kernel guard_ref = REF_KERNEL(guard_run);
