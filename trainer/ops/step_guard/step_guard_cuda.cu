/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_cuda.cu: the decision of step_guard_math.h, by one thread. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/step_guard/step_guard_math.h"
}

inline namespace step_guard_kernels {

__global__ void guard_kernel(struct step_guard_attr attr, struct step_guard_numbers v, const step_page *page)
{
	step_guard_decide_by(&attr, &v, page);
}

void run_guard_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	launch(a, dim3(1), 1, guard_kernel, *static_cast<const struct step_guard_attr *>(n->attr),
	       step_guard_operands(n, a), a->page);
}

} // namespace step_guard_kernels

CUDA_KERNEL(step_guard, cuda_prepare, run_guard_cuda);
