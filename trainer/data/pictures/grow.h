/* grow.h: buffers that are kept from picture to picture and only ever grow. */
#ifndef DPT_DATA_GROW_H
#define DPT_DATA_GROW_H

#include <stddef.h>

#include "tracker/base/err.h"

/* Makes *(void **)buffer, of *have bytes, at least `bytes` long; what it holds stays. what: for the message. On failure
 * (ERR_NOMEM) both are as they were. */
int grow_to(void *buffer, size_t *have, size_t bytes, const char *what, struct err *err);

#endif
