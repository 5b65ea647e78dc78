/* terms_ref.c: terms in one go. */
#include "trainer/ops/ref.h"
#include "trainer/ops/terms/terms_host.h"

static int push_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct terms_host s = terms_host_of(state);

	(void)err;
	terms_push_range(&s, args, (struct terms_range){ 0, s.count });
	return 0;
}

static int fold_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct terms_host s = terms_host_of(state);

	(void)err;
	terms_fold_range(&s, args, (struct terms_range){ 0, s.count });
	return 0;
}

const struct kernel term_push_ref = REF_KERNEL(push_run);
const struct kernel term_fold_ref = REF_KERNEL(fold_run);
