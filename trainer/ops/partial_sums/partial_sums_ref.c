/* partial_sums_ref.c: terms in one go. */
#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

static int push_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	(void)err;
	partial_sums_push_range(&s, args, (struct partial_sums_range){ 0, s.count });
	return 0;
}

static int fold_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	(void)err;
	partial_sums_fold_range(&s, args, (struct partial_sums_range){ 0, s.count });
	return 0;
}

const struct kernel term_push_ref = REF_KERNEL(push_run);
const struct kernel term_fold_ref = REF_KERNEL(fold_run);
