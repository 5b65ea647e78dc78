/* SPDX-License-Identifier: Apache-2.0 */
/* shm_area.h: the shared memory of one shm communicator: how the ranks find it, wait for each other in it, and notice
 * that a rank died. Independent of collectives' arithmetic.
 *
 * A split communicator has its own area in the same file. Its buffers are those of the first communicator, the root: a
 * buffer of alloc is shared with every group of a rank. Messages and `culprit` use the ranks' numbers in the root.
 *
 * Waiting: a rank that arrives at a meeting adds one to a shared count. The last rank marks the meeting complete and
 * wakes the sleepers. A waiting rank spins briefly, then sleeps (futex), and wakes at least every 50 ms to check for an
 * abort or a dead rank. The kernel reports deaths: each rank holds a robust mutex, which the kernel marks when its
 * owner's thread ends in any way. Open and close must therefore run in the same thread. */
#ifndef DPT_COMM_SHM_AREA_H
#define DPT_COMM_SHM_AREA_H

#include <pthread.h>
#include <stdatomic.h>

#include "trainer/comm/comm.h"

#define SHM_WORLD_MAX 256
#define SHM_STAGE_BYTES ((size_t)1 << 20) /* per rank: stage for private buffers */
#define SHM_MAIL_BYTES ((size_t)1 << 14)  /* per pair of ranks: send and receive */
#define SHM_REGIONS_MAX 64

struct shm_call {	  /* what a rank announces of the collective that it enters; compared with the others' */
	const char *what; /* name, for messages; valid in the rank itself only */
	uint32_t op;
	uint32_t dtype;
	int64_t count;
	int32_t root;
	int32_t region;	 /* its buffer: number of an allocated region; -1: private */
	uint64_t offset; /* offset into the rank's part of that region */
};

struct shm_count { /* a counter that ranks wait for */
	_Atomic uint32_t value;
	_Atomic uint32_t sleepers; /* number of sleepers */
};

struct shm_rank {
	_Alignas(64) _Atomic uint32_t arrived; /* meetings at which it has arrived */
	_Atomic uint32_t joined, left;
	int32_t grow_errno;		      /* why it could not allocate its part of a buffer */
	_Alignas(64) struct shm_call call[2]; /* by the parity of the meeting: one is read while the next is written */
	pthread_mutex_t alive;		      /* robust; the rank holds it while it is joined */
};

struct shm_mail {
	_Alignas(64) struct shm_count sent;
	_Alignas(64) struct shm_count taken;
	_Alignas(64) unsigned char bytes[SHM_MAIL_BYTES];
};

struct shm_head {
	_Atomic uint32_t aborted;
	_Atomic int32_t culprit; /* rank that died; -1: none */
	uint32_t world;
	int32_t grow_errno;
	uint64_t size_bytes;		    /* size of the file; set in the root */
	_Alignas(64) _Atomic uint32_t come; /* arrivals of all ranks at all meetings */
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
	struct shm_area *root; /* the area that it was split from; or itself */
	size_t mapped_bytes;
	int fd; /* the root's */
	int rank, world;
	int root_rank[SHM_WORLD_MAX]; /* number in the root, by rank */
	int first;		      /* for the root: added to ranks in messages */
	double timeout_s;
	int spins;
	uint32_t meeting;
	void (*idle_fn)(void *user); /* set by shm_while_waiting */
	void *idle_user;
	struct shm_region region[SHM_REGIONS_MAX]; /* the root's */
	int n_regions;
};

int shm_area_open(struct shm_area *ret, const struct comm_shm_opts *o, struct err *err);

/* Collective over root: makes an area for the ranks that pass the same color >= 0; with -1 *ret_in is false and no area
 * is made. Close it before root. */
int shm_area_split(struct shm_area *ret, struct shm_area *root, int color, bool *ret_in, struct err *err);
void shm_area_close(struct shm_area *a);

/* Returns when every rank has called. call may be NULL. */
int shm_area_meet(struct shm_area *a, const struct shm_call *call, struct err *err);

/* What rank r announced at the last meeting (if anything); valid until the next meeting. */
const struct shm_call *shm_area_call(const struct shm_area *a, int r);

/* Collective over a root: allocates zeroed bytes for this rank; the other ranks' sizes may differ. */
int shm_area_grow(struct shm_area *a, size_t bytes, int *ret_region, struct err *err);

/* Waits until c differs from seen. Rank `on` must change it; -1: all ranks that are late for the meeting. */
int shm_area_wait(struct shm_area *a, struct shm_count *c, uint32_t seen, int on, struct err *err);

/* Increments the counter and wakes its sleepers. */
void shm_area_count(struct shm_count *c);

void shm_area_abort(struct shm_area *a, int culprit);

/* ERR_PEER once a rank has died or the job was aborted. */
int shm_area_check(struct shm_area *a, struct err *err);

int shm_area_number(const struct shm_area *a, int r); /* number of rank r in messages */
unsigned char *shm_area_stage(const struct shm_area *a, int rank);
struct shm_mail *shm_area_mail(const struct shm_area *a, int from, int to);

/* The shm communicator as its collectives see it: how they begin, where the ranks' buffers are, and the stage for
 * private buffers. Private to shm*.c. */

/* The stage of a rank: two halves for small sums, which are used in turn, then room for a piece of a large buffer. */
#define SHM_SMALL_BYTES ((size_t)16384) /* every rank adds the whole buffer itself: one meeting instead of two */
#define SHM_PIECE_BYTES (SHM_STAGE_BYTES - 2 * SHM_SMALL_BYTES)

struct shm {
	struct comm comm;
	struct shm_area area;
	unsigned small_turn; /* half of the stage for the next small sum */
};

enum shm_op { SHM_ALLREDUCE = 1, SHM_REDUCE_SCATTER, SHM_ALL_GATHER, SHM_BROADCAST, SHM_BARRIER, SHM_REDUCE_PIECES,
	      SHM_SHARE_PIECES, SHM_SHOW };

struct shm_area *shm_area_of(struct comm *c);

/* Returns rank r's part of a buffer from the root's alloc. */
unsigned char *shm_region_part(const struct shm_area *a, int region, int r);

/* Returns a call with the place of the buffer; the caller adds what it calls. */
struct shm_call shm_describe_call(const struct shm_area *a, const void *data, size_t bytes);

/* Enters a collective: meets the other ranks and checks that all call the same one. *ret_direct: all buffers are
 * shared. */
int shm_begin(struct shm_area *a, const struct shm_call *own, bool *ret_direct, struct err *err);

/* Returns rank r's buffer of the collective, which must be shared. */
unsigned char *shm_peer_buffer(const struct shm_area *a, int r);

/* Returns rank r's room for a piece of SHM_PIECE_BYTES. */
unsigned char *shm_stage(const struct shm_area *a, int r);

/* ERR_UNSUPPORTED: values of this type cannot be added. */
int shm_check_sum(enum dtype dtype, struct err *err);

/* The sums among the operations of a communicator; see comm.h. */
int shm_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
int shm_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);
int shm_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err);
int shm_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err);

#endif
