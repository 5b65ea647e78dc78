/* fail.c: see fail.h. */
#include "trainer/backends/cuda/fail.h"

int cuda_fail(struct err *err, cudaError_t rc, const char *what)
{
	return err_set(err, rc == cudaErrorMemoryAllocation ? ERR_NOMEM : ERR_IO, "cuda: %s: %s", what,
		       cudaGetErrorString(rc));
}
