/* hier_base.h: a communicator over several machines as the files that make it see it: who is where, what it has under
 * way, and what its collectives begin and end with. Private to nodes*.c. */
#ifndef DPT_COMM_HIER_BASE_H
#define DPT_COMM_HIER_BASE_H

#include "trainer/comm/comm.h"
#include "trainer/comm/link.h"
#include "trainer/comm/requests.h"
#include "trainer/comm/shm.h"
#include "trainer/graph/reduction_tree.h"

#define HIER_AHEAD 4			   /* chunks under way, so that the wire has some while others are added */
#define HIER_PART_BYTES ((size_t)1 << 20) /* of a sum that one message carries at most */
#define HIER_ALIGN 16			   /* elements */
#define HIER_INTERFACE_BYTES 64

struct hier_place {
	int node, local;
};

struct hier_comm {
	struct comm comm;
	struct comm *local;
	struct link *link;
	struct hier_place *place; /* by rank */
	int *number;		   /* by rank: what messages to users call it */
	int n_nodes, node;
	int *size;  /* ranks, by node */
	int **rank; /* by node and place in it */
	int least;  /* ranks of the smallest node: as many ranks of each have pieces of sums */
	struct requests messages;
	unsigned char *scratch; /* for each of HIER_AHEAD chunks: a part for each node */
	struct shm_piece *piece;
	const void **from;	/* by node */
	struct reduction_tree_run *run; /* neighbours on one machine, from rank 0 on, */
	int *run_node;		/* and which machine that is */
	int n_runs;
	unsigned char **shown; /* by place on this machine: terms */
	unsigned char **roots; /* of each of HIER_AHEAD chunks, by node */
	bool broken;
	int sockets; /* and interface: for groups that are split from it */
	char interface[HIER_INTERFACE_BYTES];
};

static inline struct hier_comm *hier_of(struct comm *c)
{
	return (struct hier_comm *)c;
}

/* ---- life ---- */

struct hier_said { /* by a rank: its number in the job, which machine it is on, and how its link is reached */
	int number, node;
	const void *address;
	size_t bytes;
};

/* Of rank lo->rank of lo->world, with its link opened; local is taken over in any case. The caller sets comm.ops. */
int hier_begin_life(struct hier_comm **ret, struct comm *local, const struct link_module *link,
		     const struct link_opts *lo, struct err *err);

/* With what all ranks said, in their order: places, memory, connections. */
int hier_set_up(struct hier_comm *x, const struct hier_said *said, struct err *err);

void hier_free(struct hier_comm *x); /* NULL is fine */

/* Of one whose set-up failed: nobody waits for the others. Returns rc. */
int hier_give_up(struct hier_comm *x, int rc);

/* ---- collectives ---- */

/* what: for messages. ERR_PEER: the ranks have lost each other before. */
int hier_enter(struct hier_comm *x, const char *what, struct err *err);

/* The same of one beside which the rank computes: its waits rest. */
int hier_enter_resting(struct hier_comm *x, const char *what, struct err *err);

/* Of a collective; returns rc. What has failed is not tried again, and the ranks beside this one are not left
 * waiting. */
int hier_end(struct hier_comm *x, int rc);

/* Waits until all messages that were begun are done. */
int hier_finish(struct hier_comm *x, struct err *err);

/* Who has, on that node, what rank r has elsewhere. */
int hier_holder(const struct hier_comm *x, int node, int r);

/* Every rank's slice as a piece, owned here by who has what that rank has elsewhere. */
struct shm_pieces hier_slices(struct hier_comm *x, size_t bytes_each);

struct hier_slice { /* elements */
	size_t first, count;
};

/* Part i of n. */
struct hier_slice hier_slice_of(size_t count, int i, int n);

/* A chunk of a piece, among its owners on all nodes: each adds a part of it, then all get all parts. */
struct hier_chunk {
	unsigned char *data;
	size_t count;
	enum dtype dtype;
	size_t at; /* which one of its piece it is */
};

/* The scratch of chunk `at`: n_nodes x HIER_PART_BYTES. */
unsigned char *hier_scratch(const struct hier_comm *x, size_t at);

/* Tells the others this rank's part of a chunk, or names places for theirs. */
int hier_begin_gather(struct hier_comm *x, const struct hier_chunk *c, bool sends, struct err *err);

struct hier_turns { /* of chunks, one after another */
	int (*begin)(void *user, size_t at, struct err *err); /* messages that are due by `at` */
	int (*add)(void *user, size_t at, struct err *err);   /* they are there */
	void *user;
};

/* Several chunks are under way: the wire is never idle while a sum is added or a peer is a moment late. Returns when
 * all messages are done. */
int hier_in_turns(struct hier_comm *x, size_t chunks, const struct hier_turns *t, struct err *err);

/* ---- the files of collectives ---- */

int hier_split(struct comm *c, int color, struct comm **ret, struct err *err); /* hier_groups.c */

/* hier_sums.c */
int hier_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
int hier_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);

/* hier_leaves.c */
int hier_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err);
int hier_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err);

/* hier_copies.c */
int hier_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err);
int hier_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err);
int hier_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err);
int hier_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err);
int hier_barrier(struct comm *c, struct err *err);

#endif
