/* fail.h: error messages for CUDA errors. */
#ifndef DPT_BACKENDS_CUDA_FAIL_H
#define DPT_BACKENDS_CUDA_FAIL_H

#include <cuda_runtime_api.h>

#include "tracker/base/err.h"

/* Fills err with "cuda: <what>: <CUDA's message>" and returns its code. A fault of an enqueued kernel is reported by
 * the next call to the device, so `what` is reliable only when launches block (CUDA_LAUNCH_BLOCKING=1). */
int cuda_fail(struct err *err, cudaError_t rc, const char *what);

#endif
