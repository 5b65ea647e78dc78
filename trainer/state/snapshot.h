/* snapshot.h: a copy of everything persistent at rank 0, in memory that the plan has set aside, so that it can be
 * written while training goes on. */
#ifndef DPT_STATE_SNAPSHOT_H
#define DPT_STATE_SNAPSHOT_H

#include "trainer/state/tensors.h"

/* Rank 0, between steps, with the others in tensors_help. */
int snapshot_take(const struct tensors *s, struct err *err);

/* Where a whole tensor lies in the snapshot that was taken last; any thread. */
const void *snapshot_peek(const struct tensors *s, const struct tensor *t);

#endif
