/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h: a communicator: the ranks of one run and their collectives. Every rank calls the collectives in the same
 * order, from one thread at a time. They return 0, or ERR_PEER when a rank died or the job was aborted; they never
 * hang. Sums are added in rank order, so every rank gets the same bits, also in a repeated run. */
#ifndef DPT_COMM_COMM_H
#define DPT_COMM_COMM_H

#include "trainer/graph/graph.h"

struct comm;

/* The operands of a sum along the reduction tree (graph/reduction_tree.h). Its leaves are dealt to the ranks in rank
 * order. Each rank has a term for each root of its leaves, one after another. */
struct comm_terms {
	void *data;	   /* in memory of alloc, or small; room and count are the same on all ranks */
	int64_t count;	   /* elements of one term */
	int room;	   /* terms that fit there; a rank has at most that many */
	int64_t leaves;	   /* leaves of all ranks; > 0 */
	enum dtype dtype;  /* f32, f64, i64 */
	const void **from; /* scratch for world x room pointers */
	uint8_t *adds;	   /* scratch for world x room counts */
};

struct comm_ops {
	const char *name; /* self, shm, mpi, nccl */
	/* sum, in place */
	int (*allreduce)(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
	/* in place: rank r's slice at r*count_each */
	int (*reduce_scatter)(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);
	/* Replaces the first term by the sum of all leaves. Its bits depend on the leaves' terms and their number, not
	 * on the ranks. Only where comm->terms. */
	int (*allreduce_terms)(struct comm *c, const struct comm_terms *t, struct err *err);
	/* the same for the own slice, at rank * (count / world) of the first term */
	int (*reduce_scatter_terms)(struct comm *c, const struct comm_terms *t, struct err *err);
	/* in place: own slice at rank*bytes_each */
	int (*all_gather)(struct comm *c, void *data, int64_t bytes_each, struct err *err);
	int (*broadcast)(struct comm *c, void *data, size_t bytes, int root, struct err *err);
	int (*send)(struct comm *c, const void *data, size_t bytes, int to, struct err *err);
	int (*recv)(struct comm *c, void *data, size_t bytes, int from, struct err *err);
	int (*barrier)(struct comm *c, struct err *err);
	/* Collective: returns a zeroed buffer, whose size may differ between ranks. The collectives of c, and of
	 * communicators split from it, use it without copying. It lives until close. Not of a communicator that was
	 * split from another. */
	int (*alloc)(struct comm *c, size_t bytes, void **ret, struct err *err);
	/* Collective over c: ranks that pass the same color >= 0 get a communicator of their group, numbered in c's
	 * order; with color -1 *ret is NULL. Its calls may run concurrently with c's, in another thread. A split
	 * communicator cannot be split again and is closed before c. Aborting one aborts the job. */
	int (*split)(struct comm *c, int color, struct comm **ret, struct err *err);
	/* ERR_PEER once a rank has died or the job was aborted, as far as this machine knows; else 0. Never waits. */
	int (*check)(struct comm *c, struct err *err);
	/* sets the limit of later waits for a rank, as timeout_s below; between collectives */
	void (*limit)(struct comm *c, double seconds);
	void (*abort)(struct comm *c); /* any thread: makes pending and later collectives of every rank fail */
	void (*close)(struct comm *c);
};

struct comm { /* first member of each transport's own struct */
	const struct comm_ops *ops;
	int rank;
	int world;
	bool terms; /* offers the collectives of terms */
	/* bytes that left this rank so far, once for each receiver; bytes that others read from its memory count */
	int64_t sent;
	int64_t sent_nodes; /* the part sent to other machines */
};

struct comm *comm_self_new(void); /* world 1 */

/* Makes the memory of one communicator of that many ranks, which inherit the descriptor or receive it (bootstrap.h).
 * The memory has no name and ends with its last process. The caller closes *ret_fd once the ranks have opened it. */
int comm_shm_make(int *ret_fd, int world, struct err *err);

struct comm_shm_opts {
	int fd; /* the descriptor from comm_shm_make */
	int rank, world;
	int first; /* added to ranks in messages: the job's number of this machine's first rank */
	/* a collective that waits longer fails with ERR_PEER that names the missing rank; 0: no limit */
	double timeout_s;
};

int comm_shm_open(struct comm **ret, const struct comm_shm_opts *o, struct err *err);

struct comm_slow_link {
	double latency_s;   /* added to each call */
	double bytes_per_s; /* limit for bytes that leave or reach a rank; 0: none */
};

/* Returns a communicator that calls c and then waits for the latency and the bytes of the call, as a slower link would;
 * so do those split from it. It owns c. */
struct comm *comm_emulate_link(struct comm *c, const struct comm_slow_link *link);

/* ---- communicators around another one: all calls pass through one function ---- */

enum comm_op { COMM_ALLREDUCE, COMM_REDUCE_SCATTER, COMM_ALL_GATHER, COMM_BROADCAST, COMM_SEND, COMM_RECV,
	       COMM_BARRIER };

struct comm_call {
	enum comm_op op;
	void *data;
	int64_t count;			/* in the operation's unit: elements, elements of each rank, or bytes */
	int dtype;			/* enum dtype; -1: bytes */
	size_t bytes;			/* size of the whole buffer; for terms, of one */
	int peer;			/* root of a broadcast, or the other rank of a message; -1: none */
	const struct comm_terms *terms; /* for a sum of terms; NULL: a plain sum */
};

struct comm_wrap; /* first member of each wrapper's own struct */
struct comm_wrap_ops {
	/* Makes the call by comm_wrap_run, and does something before and after it. Returns the call's result. */
	int (*around)(struct comm_wrap *w, const struct comm_call *call, struct err *err);
	/* Wraps a part that was split from inner, and owns it. */
	struct comm *(*split)(struct comm_wrap *w, struct comm *part);
};

struct comm_wrap {
	struct comm comm;
	struct comm *inner;
	const struct comm_wrap_ops *ops;
};

/* Makes a wrapper of that many bytes around c, which it owns; the rest is zeroed. */
struct comm_wrap *comm_wrap_new(size_t bytes, struct comm *c, const struct comm_wrap_ops *ops);
/* Returns c as a wrapper with these ops; NULL: it is another communicator. */
struct comm_wrap *comm_wrap_of(struct comm *c, const struct comm_wrap_ops *ops);
int comm_wrap_run(struct comm_wrap *w, const struct comm_call *call, struct err *err);

#endif
