/* staging.h: pinned buffers through which the device accesses host memory that must not be pinned: pages of a file,
 * which would all become resident. One buffer per direction, used in the order of that direction's stream. */
#ifndef DPT_BACKENDS_CUDA_STAGING_H
#define DPT_BACKENDS_CUDA_STAGING_H

#include <stddef.h>

#include "tracker/base/err.h"

enum staging { STAGING_IN, STAGING_OUT, STAGING_COUNT }; /* to the device, from the device */

#define STAGING_BYTES ((size_t)4 << 20)

/* Returns the module's buffer; allocated at the first call, which must not be during graph recording. NULL when
 * planning only. */
int staging_get(void *module, enum staging which, void **ret, struct err *err);
void staging_done(void *module); /* no copy may be pending */

#endif
