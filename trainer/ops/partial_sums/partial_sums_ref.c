/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums_ref.c: partial sums over all elements at once. */
#include "trainer/ops/ref_kernel.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

static int run_terms_push_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	(void)err;
	partial_sums_push_range(&s, args, (struct partial_sums_range){ 0, s.count });
	return 0;
}

static int run_terms_fold_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct partial_sums_host s = partial_sums_host_of(state);

	(void)err;
	partial_sums_fold_range(&s, args, (struct partial_sums_range){ 0, s.count });
	return 0;
}

const struct kernel term_push_ref = REF_KERNEL(run_terms_push_ref);
const struct kernel term_fold_ref = REF_KERNEL(run_terms_fold_ref);
