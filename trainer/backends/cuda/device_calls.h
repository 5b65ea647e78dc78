/* SPDX-License-Identifier: Apache-2.0 */
/* device_calls.h: what other files of the module need from it: errors of the CUDA runtime, and buffers in pinned
 * memory through which copies from and to a mapped file go. */
#ifndef DPT_BACKENDS_CUDA_DEVICE_CALLS_H
#define DPT_BACKENDS_CUDA_DEVICE_CALLS_H

#include <cuda_runtime_api.h>

#include "tracker/base/err.h"

/* Fills err with "cuda: <what>: <CUDA's message>" and returns its code. A fault of an enqueued kernel is reported by
 * the next call to the device, so `what` is reliable only when launches block (CUDA_LAUNCH_BLOCKING=1). */
int cuda_fail(struct err *err, cudaError_t rc, const char *what);

enum staging { STAGING_IN, STAGING_OUT, STAGING_COUNT }; /* copies to the device, and from it */

#define STAGING_BYTES ((size_t)4 << 20)

/* Returns the module's buffer; allocated at the first call, which must not be during graph recording. NULL when
 * planning only. */
int staging_get(void *module, enum staging which, void **ret, struct err *err);
void staging_done(void *module); /* no copy may be pending */

#endif
