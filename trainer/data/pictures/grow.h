/* grow.h: buffers that are reused for every picture and only grow. */
#ifndef DPT_DATA_GROW_H
#define DPT_DATA_GROW_H

#include <stddef.h>

#include "tracker/base/err.h"

/* Grows *(void **)buffer, of *have bytes, to at least `bytes`; keeps its content. what: for the message. On failure
 * (ERR_NOMEM) both stay unchanged. */
int grow_to(void *buffer, size_t *have, size_t bytes, const char *what, struct err *err);

#endif
