/* SPDX-License-Identifier: Apache-2.0 */
/* device_calls.c: see device_calls.h. */
#include "trainer/backends/cuda/device_calls.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/cuda_module.h"

static bool is_kernel_fault(cudaError_t rc)
{
	return rc == cudaErrorIllegalAddress || rc == cudaErrorMisalignedAddress || rc == cudaErrorLaunchFailure ||
	       rc == cudaErrorIllegalInstruction || rc == cudaErrorInvalidAddressSpace || rc == cudaErrorInvalidPc ||
	       rc == cudaErrorHardwareStackError || rc == cudaErrorAssert || rc == cudaErrorLaunchTimeout;
}

static bool is_launch_blocking(void)
{
	const char *given = getenv("CUDA_LAUNCH_BLOCKING");

	return given && !strcmp(given, "1");
}

int cuda_fail(struct err *err, cudaError_t rc, const char *what)
{
	if (is_kernel_fault(rc) && !is_launch_blocking())
		return err_set(
			err, ERR_IO,
			"cuda: a kernel failed: %s: run again with CUDA_LAUNCH_BLOCKING=1 in the environment and "
			"--no-cuda-graphs to get its name",
			cudaGetErrorString(rc));
	return err_set(err, rc == cudaErrorMemoryAllocation ? ERR_NOMEM : ERR_IO, "cuda: %s: %s", what,
		       cudaGetErrorString(rc));
}

int staging_get(void *module, enum staging which, void **ret, struct err *err)
{
	struct cuda_module *m = module;
	const bool there = m->staging[which] || m->described;
	cudaError_t rc = there ? cudaSuccess : cudaMallocHost(&m->staging[which], STAGING_BYTES);

	if (rc != cudaSuccess)
		return cuda_fail(err, rc, "allocating pinned memory for file offloading");
	*ret = m->staging[which];
	return 0;
}

void staging_done(void *module)
{
	struct cuda_module *m = module;

	for (int i = 0; i < STAGING_COUNT; i++)
		if (m->staging[i])
			cudaFreeHost(m->staging[i]);
}
