/* snapshot.h: a copy of all persistent tensors that a rank owns, in planned memory, so that they can be written while
 * training continues. */
#ifndef DPT_STATE_SNAPSHOT_H
#define DPT_STATE_SNAPSHOT_H

#include "trainer/state/tensors.h"

/* Copies the tensors between steps, on every rank that has room. Not collective. */
int snapshot_take(const struct tensors *s, struct err *err);

/* Returns access to the tensors of the snapshot, read over c while training continues. */
struct tensors snapshot_tensors(const struct tensors *s, struct comm *c);

/* Rank 0 where it owns everything: returns the address of a whole tensor in the snapshot; any thread. */
const void *snapshot_peek(const struct tensors *s, const struct tensor *t);

#endif
