/* staging.h: pinned memory through which the device reads and writes what of the host's is not to be pinned: a file's
 * pages, which would all be resident then. One buffer for each direction, used in the order of that direction's
 * stream. */
#ifndef DPT_BACKENDS_CUDA_STAGING_H
#define DPT_BACKENDS_CUDA_STAGING_H

#include <stddef.h>

#include "tracker/base/err.h"

enum staging { STAGING_IN, STAGING_OUT, STAGING_COUNT }; /* to the device, from it */

#define STAGING_BYTES ((size_t)4 << 20)

/* The module's own, made when it is first asked for: not while a graph is recorded. NULL where nothing runs. */
int staging_get(void *module, enum staging which, void **ret, struct err *err);
void staging_done(void *module); /* nothing is under way */

#endif
