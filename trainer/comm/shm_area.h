/* shm_area.h: the shared memory of one shm communicator: how the ranks find it, how they wait for each other in it,
 * and how one notices that another died. Knows nothing of collectives' arithmetic.
 *
 * A communicator that was split from another has an area of its own in the same file, and its buffers are those of the
 * first, the root: what alloc gave is shared with every group that a rank is in. Ranks are named in messages, and kept
 * as culprits, by their numbers in the root.
 *
 * Waiting: who comes to a meeting adds one to a count that all share; the last one says that the meeting is complete
 * and wakes those who sleep. Who waits spins briefly, then sleeps (futex), waking at least every 50 ms to look for an
 * abort or a dead rank. Death is what the kernel says: each rank holds a robust mutex that the kernel marks when its
 * owner's thread ends, in whatever way. Open and close therefore belong to the same thread. */
#ifndef DPT_COMM_SHM_AREA_H
#define DPT_COMM_SHM_AREA_H

#include <pthread.h>
#include <stdatomic.h>

#include "trainer/comm/comm.h"

#define SHM_WORLD_MAX 256
#define SHM_STAGE_BYTES ((size_t)1 << 20) /* per rank: what private buffers are copied through */
#define SHM_MAIL_BYTES ((size_t)1 << 14)  /* per pair of ranks: send and receive */
#define SHM_REGIONS_MAX 64

struct shm_call {	  /* what a rank says of the collective it enters; compared with the others' */
	const char *what; /* name, for messages; only of use to the rank itself */
	uint32_t op;
	uint32_t dtype;
	int64_t count;
	int32_t root;
	int32_t region;	 /* its buffer: number of an allocated region, -1 private */
	uint64_t offset; /* from the rank's part of that region */
};

struct shm_count { /* what others wait for */
	_Atomic uint32_t value;
	_Atomic uint32_t sleepers; /* how many sleep on it */
};

struct shm_rank {
	_Alignas(64) _Atomic uint32_t arrived; /* meetings that it has come to */
	_Atomic uint32_t joined, left;
	int32_t grow_errno; /* why it could not take its part of a buffer */
	_Alignas(64) struct shm_call
		call[2];       /* by the parity of the meeting: the next one's may be written while this is read */
	pthread_mutex_t alive; /* robust, held by the rank while it is in */
};

struct shm_mail {
	_Alignas(64) struct shm_count sent;
	_Alignas(64) struct shm_count taken;
	_Alignas(64) unsigned char bytes[SHM_MAIL_BYTES];
};

struct shm_head {
	_Atomic uint32_t aborted;
	_Atomic int32_t culprit; /* rank that died, -1 */
	uint32_t world;
	int32_t grow_errno;
	uint64_t size_bytes; /* of the file; the root's */
	_Alignas(64) _Atomic uint32_t come; /* to meetings, of all ranks together */
	_Alignas(64) struct shm_count joined;
	_Alignas(64) struct shm_count met; /* meetings that are complete */
	struct shm_rank rank[];
};

struct shm_region {
	unsigned char *base;
	size_t stride_bytes; /* one rank's part */
	size_t length_bytes;
};

struct shm_area {
	struct shm_head *head;
	struct shm_area *root; /* that it was split from; itself */
	size_t mapped_bytes;
	int fd; /* the root's */
	int rank, world;
	int root_rank[SHM_WORLD_MAX]; /* by rank */
	int first; /* the root's: added to ranks in messages */
	double timeout_s;
	int spins;
	uint32_t meeting;
	void (*idle_fn)(void *user); /* shm_while_waiting */
	void *idle_user;
	struct shm_region region[SHM_REGIONS_MAX]; /* the root's */
	int n_regions;
};

int shm_area_open(struct shm_area *ret, const struct comm_shm_opts *o, struct err *err);

/* Collective over root: an area for the ranks that name the same color >= 0; with -1 *ret_in is false and there is
 * none. To be closed before root. */
int shm_area_split(struct shm_area *ret, struct shm_area *root, int color, bool *ret_in, struct err *err);
void shm_area_close(struct shm_area *a);

/* Every rank has come this far. call may be NULL. */
int shm_area_meet(struct shm_area *a, const struct shm_call *call, struct err *err);

/* What rank r said at the meeting just held (when it said anything); valid until the next meeting. */
const struct shm_call *shm_area_call(const struct shm_area *a, int r);

/* Collective over a root: bytes for this rank, zeroed; the others' may differ. */
int shm_area_grow(struct shm_area *a, size_t bytes, int *ret_region, struct err *err);

/* Waits until c differs from seen; rank `on` is who must change it, -1: all that are late for the meeting. */
int shm_area_wait(struct shm_area *a, struct shm_count *c, uint32_t seen, int on, struct err *err);

/* Adds one to what others may wait for, or wakes them without. */
void shm_area_count(struct shm_count *c);
void shm_area_wake(struct shm_count *c);

void shm_area_abort(struct shm_area *a, int culprit);

/* ERR_PEER once a rank has died or somebody has aborted. */
int shm_area_check(struct shm_area *a, struct err *err);

int shm_area_number(const struct shm_area *a, int r); /* what messages call rank r */
unsigned char *shm_area_stage(const struct shm_area *a, int rank);
struct shm_mail *shm_area_mail(const struct shm_area *a, int from, int to);

#endif
