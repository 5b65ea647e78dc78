/* fail.h: one way to say what CUDA refused. */
#ifndef DPT_BACKENDS_CUDA_FAIL_H
#define DPT_BACKENDS_CUDA_FAIL_H

#include <cuda_runtime_api.h>

#include "tracker/base/err.h"

/* Fills err with "cuda: <what>: <CUDA's words>" and returns its code. A fault of some kernel that was enqueued before
 * shows at whatever is asked of the device next, so `what` is named only where launches wait (CUDA_LAUNCH_BLOCKING=1).
 */
int cuda_fail(struct err *err, cudaError_t rc, const char *what);

#endif
