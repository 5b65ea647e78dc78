/* comm.h: a communicator: the ranks of one run and their collectives. Collectives are called by every rank in the same
 * order, from one thread at a time. They return 0, or ERR_PEER when a rank died or the job was aborted: never hang.
 * Sums run in rank order, so every rank gets the same bits and a repeat gives them again. */
#ifndef DPT_COMM_COMM_H
#define DPT_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/graph/graph.h"

struct comm;

/* A sum of terms of leaves (graph/leaves.h) that are dealt to the ranks in their order: each rank has a term for each
 * of its roots, behind one another. */
struct comm_terms {
	void *data;	    /* in memory of alloc, or small: all ranks have the same room and count */
	int64_t count;	    /* elements of one term */
	int room;	    /* terms that have a place there; one rank's are at most as many */
	int64_t leaves;	    /* of all ranks; > 0 */
	enum dtype dtype;   /* f32, f64, i64 */
	const void **from;  /* scratch for world x room of them */
	uint8_t *adds;	    /* likewise */
};

struct comm_ops {
	const char *name; /* self, shm, mpi, nccl */
	/* sum, in place */
	int (*allreduce)(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
	/* in place: rank r's slice at r*count_each */
	int (*reduce_scatter)(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);
	/* The sum of all leaves takes the place of the first term. Its bits depend on the terms of the leaves and on
	 * their number, not on the ranks. Only where comm->terms. */
	int (*allreduce_terms)(struct comm *c, const struct comm_terms *t, struct err *err);
	/* the same of the own slice, at rank * (count / world) of the first term */
	int (*reduce_scatter_terms)(struct comm *c, const struct comm_terms *t, struct err *err);
	/* in place: own slice at rank*bytes_each */
	int (*all_gather)(struct comm *c, void *data, int64_t bytes_each, struct err *err);
	int (*broadcast)(struct comm *c, void *data, size_t bytes, int root, struct err *err);
	int (*send)(struct comm *c, const void *data, size_t bytes, int to, struct err *err);
	int (*recv)(struct comm *c, void *data, size_t bytes, int from, struct err *err);
	int (*barrier)(struct comm *c, struct err *err);
	/* Collective: a zeroed buffer, of any size on each rank, that the collectives of c, and of what was split from
	 * it, use without copying. Lives until close. Not of a communicator that was split from another. */
	int (*alloc)(struct comm *c, size_t bytes, void **ret, struct err *err);
	/* Collective over c: ranks that name the same color >= 0 get a communicator of their own, numbered in c's
	 * order; with color -1 *ret is NULL. Its calls may run beside c's, in a thread of their own. Not of one that
	 * was split itself; closed before c. Aborting one aborts the job. */
	int (*split)(struct comm *c, int color, struct comm **ret, struct err *err);
	/* ERR_PEER once a rank has died or the job was aborted, as far as this machine sees; 0: not so. Never waits. */
	int (*check)(struct comm *c, struct err *err);
	/* of later waits for a rank, as timeout_s below; between collectives */
	void (*limit)(struct comm *c, double seconds);
	void (*abort)(struct comm *c); /* any thread: makes every rank's pending and later collectives fail */
	void (*close)(struct comm *c);
};

struct comm { /* first member of each transport's own struct */
	const struct comm_ops *ops;
	int rank;
	int world;
	bool terms; /* sums along the tree of leaves are offered */
	/* bytes so far that left this rank, each time they did: those that others read of its memory, too */
	int64_t sent;
	int64_t sent_nodes; /* of them to other machines */
};

int comm_self_open(struct comm **ret, struct err *err); /* world 1 */

/* Memory for one communicator of that many ranks, who inherit the descriptor or are sent it (rendezvous.h). It has no
 * name and is gone with its last process. The caller's to close once the ranks have opened it. */
int comm_shm_make(int *ret_fd, int world, struct err *err);

struct comm_shm_opts {
	int fd; /* of comm_shm_make */
	int rank, world;
	int first;	  /* what messages add to ranks: the job's number of this machine's first */
	double timeout_s; /* a collective that waits longer fails with ERR_PEER naming the missing rank; 0 = no limit */
};

int comm_shm_open(struct comm **ret, const struct comm_shm_opts *o, struct err *err);

#endif
