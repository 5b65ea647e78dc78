/* nodes_base.h: a communicator over several machines as the files that make it see it: who is where, what it has under
 * way, and what its collectives begin and end with. Private to nodes*.c. */
#ifndef DPT_COMM_NODES_BASE_H
#define DPT_COMM_NODES_BASE_H

#include "trainer/comm/comm.h"
#include "trainer/comm/link.h"
#include "trainer/comm/messages.h"
#include "trainer/comm/shm.h"
#include "trainer/graph/leaves.h"

#define NODES_AHEAD 4			   /* chunks under way, so that the wire has some while others are added */
#define NODES_PART_BYTES ((size_t)1 << 20) /* of a sum that one message carries at most */
#define NODES_ALIGN 16			   /* elements */
#define NODES_INTERFACE_BYTES 64

struct nodes_place {
	int node, local;
};

struct nodes {
	struct comm comm;
	struct comm *local;
	struct link *link;
	struct nodes_place *place; /* by rank */
	int *number;		   /* by rank: what messages to users call it */
	int n_nodes, node;
	int *size;  /* ranks, by node */
	int **rank; /* by node and place in it */
	int least;  /* ranks of the smallest node: as many ranks of each have pieces of sums */
	struct messages messages;
	unsigned char *scratch; /* for each of NODES_AHEAD chunks: a part for each node */
	struct shm_piece *piece;
	const void **from;	/* by node */
	struct leaves_run *run; /* neighbours on one machine, from rank 0 on, */
	int *run_node;		/* and which machine that is */
	int n_runs;
	unsigned char **shown; /* by place on this machine: terms */
	unsigned char **roots; /* of each of NODES_AHEAD chunks, by node */
	bool broken;
	int sockets; /* and interface: for groups that are split from it */
	char interface[NODES_INTERFACE_BYTES];
};

static inline struct nodes *nodes_of(struct comm *c)
{
	return (struct nodes *)c;
}

/* ---- life ---- */

struct nodes_said { /* by a rank: its number in the job, which machine it is on, and how its link is reached */
	int number, node;
	const void *address;
	size_t bytes;
};

/* Of rank lo->rank of lo->world, with its link opened; local is taken over in any case. The caller sets comm.ops. */
int nodes_begin_life(struct nodes **ret, struct comm *local, const struct link_module *link,
		     const struct link_opts *lo, struct err *err);

/* With what all ranks said, in their order: places, memory, connections. */
int nodes_set_up(struct nodes *x, const struct nodes_said *said, struct err *err);

void nodes_free(struct nodes *x); /* NULL is fine */

/* Of one whose set-up failed: nobody waits for the others. Returns rc. */
int nodes_give_up(struct nodes *x, int rc);

/* ---- collectives ---- */

/* what: for messages. ERR_PEER: the ranks have lost each other before. */
int nodes_enter(struct nodes *x, const char *what, struct err *err);

/* The same of one beside which the rank computes: its waits rest. */
int nodes_enter_resting(struct nodes *x, const char *what, struct err *err);

/* Of a collective; returns rc. What has failed is not tried again, and the ranks beside this one are not left
 * waiting. */
int nodes_end(struct nodes *x, int rc);

/* A message, for nodes_finish: all that was begun is done. */
int nodes_message(struct nodes *x, bool sends, int peer, void *data, size_t bytes, struct err *err);
int nodes_finish(struct nodes *x, struct err *err);

/* Who has, on that node, what rank r has elsewhere. */
int nodes_holder(const struct nodes *x, int node, int r);

/* Every rank's slice as a piece, owned here by who has what that rank has elsewhere. */
struct shm_pieces nodes_slices(struct nodes *x, size_t bytes_each);

struct nodes_slice { /* elements */
	size_t first, count;
};

/* Part i of n. */
struct nodes_slice nodes_slice_of(size_t count, int i, int n);

/* A chunk of a piece, among its owners on all nodes: each adds a part of it, then all get all parts. */
struct nodes_chunk {
	unsigned char *data;
	size_t count;
	enum dtype dtype;
	size_t at; /* which one of its piece it is */
};

/* The scratch of chunk `at`: n_nodes x NODES_PART_BYTES. */
unsigned char *nodes_scratch(const struct nodes *x, size_t at);

/* Tells the others this rank's part of a chunk, or names places for theirs. */
int nodes_begin_gather(struct nodes *x, const struct nodes_chunk *c, bool sends, struct err *err);

struct nodes_turns { /* of chunks, one after another */
	int (*begin)(void *user, size_t at, struct err *err); /* messages that are due by `at` */
	int (*add)(void *user, size_t at, struct err *err);   /* they are there */
	void *user;
};

/* Several chunks are under way: the wire is never idle while a sum is added or a peer is a moment late. Returns when
 * all messages are done. */
int nodes_in_turns(struct nodes *x, size_t chunks, const struct nodes_turns *t, struct err *err);

/* ---- the files of collectives ---- */

int nodes_split(struct comm *c, int color, struct comm **ret, struct err *err); /* nodes_groups.c */

/* nodes_sums.c */
int nodes_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
int nodes_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);

/* nodes_leaves.c */
int nodes_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err);
int nodes_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err);

/* nodes_copies.c */
int nodes_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err);
int nodes_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err);
int nodes_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err);
int nodes_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err);
int nodes_barrier(struct comm *c, struct err *err);

#endif
