/* shm.h: what communicators over several machines ask of the ranks of one of them: sums and copies of pieces that have
 * an owner each. Knows nothing of other machines. c is of comm_shm_open throughout. */
#ifndef DPT_COMM_SHM_H
#define DPT_COMM_SHM_H

#include "trainer/comm/comm.h"

struct shm_piece { /* the same list on every rank; pieces do not overlap */
	size_t at, bytes; /* within the buffer; whole elements */
	int owner;
};

struct shm_pieces {
	const struct shm_piece *piece;
	int n;
	size_t bytes; /* of the whole buffer */
};

/* The owner of a piece gets its sum over all ranks, in place; what others have there may not be looked at any more. */
int shm_reduce_pieces(struct comm *c, void *data, const struct shm_pieces *p, enum dtype dtype, struct err *err);

/* Every rank gets all pieces from their owners, in place. */
int shm_share_pieces(struct comm *c, void *data, const struct shm_pieces *p, struct err *err);

/* Where each rank's buffer can be read (ret: of all ranks) once all have come: until the next call that changes data,
 * which nobody makes before another meeting. Of communicator memory, or small (at most SHM_SHOWN_BYTES). */
#define SHM_SHOWN_BYTES 16384
int shm_show(struct comm *c, void *data, size_t bytes, unsigned char **ret, struct err *err);

/* fn(user) is called again and again while this rank waits for others of its machine: what else it has under way goes
 * on meanwhile. NULL: nothing. */
void shm_while_waiting(struct comm *c, void (*fn)(void *user), void *user);

/* Whether all ranks of this machine are alive and none has given up (any thread's abort). */
int shm_check(struct comm *c, struct err *err);

#endif
