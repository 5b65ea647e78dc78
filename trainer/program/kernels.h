/* kernels.h: makes all ranks use the same kernels. Where a backend chooses by timing, ranks that measure at the same
 * time would disturb each other and choose differently. */
#ifndef DPT_PROGRAM_KERNELS_H
#define DPT_PROGRAM_KERNELS_H

#include "tracker/base/buf.h"
#include "trainer/program/rank.h"

#define KERNELS_BYTES_MAX ((size_t)1 << 20)

/* Appends one choice to the struct buf at user: key and name, each with its 0. */
void kernels_add(void *user, const char *key, const char *name);

/* Applies rank 0's text on every rank; the other ranks' texts are ignored. Collective; the backend has choose. */
int kernels_share(const struct rank *r, const struct buf *text, struct err *err);

#endif
