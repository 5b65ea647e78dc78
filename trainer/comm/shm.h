/* SPDX-License-Identifier: Apache-2.0 */
/* shm.h: what hierarchical communicators need from the ranks of one machine: sums and copies of pieces that have one
 * owner each. Independent of other machines. c is always of comm_shm_open. */
#ifndef DPT_COMM_SHM_H
#define DPT_COMM_SHM_H

#include "trainer/comm/comm.h"

struct shm_piece {	  /* the list is the same on every rank; pieces do not overlap */
	size_t at, bytes; /* offset within the buffer; whole elements */
	int owner;
};

struct shm_pieces {
	const struct shm_piece *piece;
	int n;
	size_t bytes; /* size of the whole buffer */
};

/* Adds every piece over all ranks, in place at its owner. The other ranks' contents of the piece are undefined
 * afterwards. */
int shm_reduce_pieces(struct comm *c, void *data, const struct shm_pieces *p, enum dtype dtype, struct err *err);

/* Copies all pieces from their owners to every rank, in place. */
int shm_share_pieces(struct comm *c, void *data, const struct shm_pieces *p, struct err *err);

/* ret[r]: where rank r's buffer can be read, once all ranks have called. It stays valid until the owner changes data,
 * which it may do after the next meeting. data: memory of the communicator, or at most SHM_SHOWN_BYTES. */
#define SHM_SHOWN_BYTES 16384
int shm_show(struct comm *c, void *data, size_t bytes, unsigned char **ret, struct err *err);

/* Calls fn(user) repeatedly while this rank waits for others of its machine, so that its other transfers progress.
 * NULL: no call. */
void shm_while_waiting(struct comm *c, void (*fn)(void *user), void *user);

/* Returns 0 if all ranks of this machine are alive and none has aborted; else ERR_PEER. Any thread. */
int shm_check(struct comm *c, struct err *err);

#endif
