/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h: the persistent tensors of a run as whole tensors of its model (prepare.h), in ranges of elements,
 * independent of their owners, which prepared_held knows from the strategy. Between steps tensors are read and written
 * only through this module.
 *
 * Rank 0 leads reads and writes; the others answer until it ends the exchange:
 *
 *	rank 0:  tensors_get, tensors_give … tensors_end      others:  tensors_follow
 *	rank 0:  tensors_get … tensors_helped                 others:  tensors_help     (reads alone)
 *
 * Where rank 0 owns everything, reads need no other rank: tensors_help and tensors_helped return at once. */
#ifndef DPT_STATE_TENSORS_H
#define DPT_STATE_TENSORS_H

#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"

struct tensors {			 /* pointers are borrowed */
	const struct prepared *prepared; /* must have memory */
	struct comm *comm;
	/* a program's graph: the gradients of its parameters are read instead; NULL: values */
	const struct graph *grads;
	const unsigned char *copy; /* a snapshot (see below), which is read instead; NULL: the tensors */
};

struct tensors tensors_of(const struct prepared *p, const struct rank *r);

/* The same tensors, moved between the ranks over c. NULL: as s does. */
struct tensors tensors_over(const struct tensors *s, struct comm *c);

struct strategy_part tensors_all(const struct tensor *t);
struct strategy_part tensors_held(const struct tensors *s, const struct tensor *t, int rank);
size_t tensors_bytes(const struct tensor *t);					       /* size of the whole tensor */
const struct tensor *tensors_average(const struct tensors *s, const struct tensor *t); /* NULL: there is no average */

/* `from` has elements [part.begin, part.end): stores those that this rank owns. */
int tensors_put(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		struct err *err);

/* Rank 0: copies elements [part.begin, part.end) to `to` from their owners. */
int tensors_get(const struct tensors *s, const struct tensor *t, struct strategy_part part, void *to, struct err *err);

/* Rank 0: stores elements [part.begin, part.end) from `from` at their owners. */
int tensors_give(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		 struct err *err);

/* failure: error of the others' tensors_follow; NULL: success. */
int tensors_end(const struct tensors *s, const struct err *failure, struct err *err);
int tensors_follow(const struct tensors *s, struct err *err);

int tensors_helped(const struct tensors *s, int rc, struct err *err); /* rc: result of the reads, returned unless 0 */
int tensors_help(const struct tensors *s, struct err *err);

/* Collective: copies rank 0's running statistics to all ranks. */
int tensors_share_stats(const struct tensors *s, struct err *err);

/* ---- the snapshot: a copy of all persistent tensors that a rank owns, in planned memory, which can be written while
 * training continues ---- */

/* Copies the tensors between steps, on every rank that has room. Not collective. */
int snapshot_take(const struct tensors *s, struct err *err);

/* Returns access to the tensors of the snapshot, read over c while training continues. */
struct tensors snapshot_tensors(const struct tensors *s, struct comm *c);

/* Rank 0 where it owns everything: returns the address of a whole tensor in the snapshot; any thread. */
const void *snapshot_peek(const struct tensors *s, const struct tensor *t);

#endif
