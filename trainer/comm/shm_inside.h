/* SPDX-License-Identifier: Apache-2.0 */
/* shm_inside.h: the shm communicator as its collectives see it: how they begin, where the ranks' buffers are, and the
 * stage for private buffers. Private to shm*.c. */
#ifndef DPT_COMM_SHM_INSIDE_H
#define DPT_COMM_SHM_INSIDE_H

#include "trainer/comm/shm_area.h"

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
