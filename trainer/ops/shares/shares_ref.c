/* shares_ref.c: hands the flat tensor to the communicator. */
#include "trainer/ops/shares/shares_host.h"

extern const struct kernel all_gather_ref, reduce_scatter_ref;
const struct kernel all_gather_ref = SHARES_KERNEL(all_gather_run);
const struct kernel reduce_scatter_ref = SHARES_KERNEL(reduce_scatter_run);
