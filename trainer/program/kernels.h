/* kernels.h: the same kernels on every rank. Where a backend chooses by the clock, ranks that timed side by side would
 * disturb each other and choose differently. */
#ifndef DPT_PROGRAM_KERNELS_H
#define DPT_PROGRAM_KERNELS_H

#include "tracker/base/buf.h"
#include "trainer/program/rank.h"

#define KERNELS_BYTES_MAX ((size_t)1 << 20)

/* Choices as texts behind one another, each with its 0: adds one to the struct buf at user. */
void kernels_add(void *user, const char *key, const char *name);

/* Rank 0's text becomes every rank's choices; that of the others is not looked at. Collective; the backend has choose.
 */
int kernels_share(const struct rank *r, const struct buf *text, struct err *err);

#endif
