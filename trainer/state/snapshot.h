/* snapshot.h: a copy of everything persistent that a rank holds, in memory that the plan has set aside, so that it can
 * be written while training goes on. */
#ifndef DPT_STATE_SNAPSHOT_H
#define DPT_STATE_SNAPSHOT_H

#include "trainer/state/tensors.h"

/* Between steps, on every rank that has room for one. Nobody meets. */
int snapshot_take(const struct tensors *s, struct err *err);

/* The tensors as they were when the snapshot was taken, to be read over c while training goes on. */
struct tensors snapshot_tensors(const struct tensors *s, struct comm *c);

/* Rank 0 where it holds everything: where a whole tensor lies in the snapshot; any thread. */
const void *snapshot_peek(const struct tensors *s, const struct tensor *t);

#endif
