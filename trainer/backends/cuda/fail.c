/* fail.c: see fail.h. */
#include "trainer/backends/cuda/fail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
