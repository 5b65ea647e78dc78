/* SPDX-License-Identifier: Apache-2.0 */
/* hier_base.h: the hierarchical communicator as its own files see it: the place of every rank, the messages in
 * progress, and what all its collectives begin and end with. Private to hier*.c. */
#ifndef DPT_COMM_HIER_BASE_H
#define DPT_COMM_HIER_BASE_H

#include "trainer/comm/link.h"
#include "trainer/comm/shm.h"
#include "trainer/graph/reduction_tree.h"

/* ---- requests.c ----
 * The messages of a collective between machines that are in progress. Both peers begin them in the same order. Each
 * message has a number by which it is due: a collective waits for what it needs next while the rest travels. Knows the
 * link and the machine's own ranks, not sums.  A thread that polls for long messages takes time from a thread that
 * computes on the same core, once for every arriving piece. With sleeps_while_waiting the thread sleeps through a part
 * of the expected wait, at most a few milliseconds at once, while the system's buffers take the bytes. */

struct message;

struct requests {
	struct link *link;    /* borrowed, as all pointers but the list */
	struct comm *local;   /* the machine's communicator: the death of one of its ranks ends a wait */
	const int *number;    /* indexed by rank: its number in messages to users */
	const char *what;     /* name of the running collective in messages to users */
	double timeout_s;     /* limit of a wait; 0: none */
	int64_t sent;	      /* bytes sent so far */
	struct message *list; /* messages in progress */
	int n, room;
	bool sleeps_while_waiting;
	struct requests_pace { /* measured since the list was last empty */
		double began_s;
		size_t requested; /* bytes to receive */
		double rate;	  /* bytes per second of former long messages; 0: unknown */
	} pace;
};

/* room: most messages in progress at once. */
void requests_take_memory(struct requests *m, int room);

struct message_opts {
	int peer;
	bool sends;
	void *data; /* untouched until requests_await returns */
	size_t bytes;
	size_t due; /* compared by requests_await */
};

int requests_begin(struct requests *m, const struct message_opts *o, struct err *err);

/* Waits for all messages with a due of at most `due`. ERR_PEER: a rank is gone or late. */
int requests_await(struct requests *m, size_t due, struct err *err);

int requests_await_all(struct requests *m, struct err *err);

/* After a failure: forgets the messages in progress. */
void requests_drop(struct requests *m);

void requests_free(struct requests *m);

/* ---- hier_base.c ---- */

#define HIER_AHEAD 4			  /* chunks in progress, so that the link is busy while others are added */
#define HIER_PART_BYTES ((size_t)1 << 20) /* most bytes of a sum in one message */
#define HIER_ALIGN 16			  /* elements */
#define HIER_INTERFACE_BYTES 64

struct hier_place {
	int node, local;
};

struct hier_comm {
	struct comm comm;
	struct comm *local;
	struct link *link;
	struct hier_place *place; /* by rank */
	int *number;		  /* indexed by rank: its number in messages to users */
	int n_nodes, node;
	int *size;  /* ranks, by node */
	int **rank; /* ranks by node and place on it */
	int least;  /* ranks of the smallest node: that many ranks of each node own pieces of sums */
	struct requests messages;
	unsigned char *scratch; /* one part per node for each of HIER_AHEAD chunks */
	struct shm_piece *piece;
	const void **from;		/* by node */
	struct reduction_tree_run *run; /* adjacent ranks on one machine, from rank 0 on */
	int *run_node;			/* indexed by run: its machine */
	int n_runs;
	unsigned char **shown; /* indexed by local rank: the rank's terms */
	unsigned char **roots; /* subtree roots of each of HIER_AHEAD chunks, by node */
	bool broken;
	int sockets; /* sockets and interface of links of split groups */
	char interface[HIER_INTERFACE_BYTES];
};

static inline struct hier_comm *hier_of(struct comm *c)
{
	return (struct hier_comm *)c;
}

/* ---- life ---- */

struct hier_said { /* announced by a rank: its number in the job, its machine, the address of its link */
	int number, node;
	const void *address;
	size_t bytes;
};

/* Makes the communicator of rank lo->rank of lo->world and opens its link. Owns local in any case. The caller sets
 * comm.ops. */
int hier_begin_life(struct hier_comm **ret, struct comm *local, const struct link_module *link,
		    const struct link_opts *lo, struct err *err);

/* Completes it with the announcements of all ranks, in rank order: places, memory, connections. */
int hier_set_up(struct hier_comm *x, const struct hier_said *said, struct err *err);

void hier_free(struct hier_comm *x); /* NULL is fine */

/* Frees one whose set-up failed, without waiting for other ranks. Returns rc. */
int hier_give_up(struct hier_comm *x, int rc);

/* ---- collectives ---- */

/* Begins a collective; what: its name in messages. ERR_PEER: a collective failed before. */
int hier_enter(struct hier_comm *x, const char *what, struct err *err);

/* The same for a collective during which the rank computes: its waits sleep. */
int hier_enter_resting(struct hier_comm *x, const char *what, struct err *err);

/* Ends a collective; returns rc. After a failure no later collective is tried, and the other ranks of this machine do
 * not wait for this one. */
int hier_end(struct hier_comm *x, int rc);

/* Waits until all messages that were begun are done. */
int hier_finish(struct hier_comm *x, struct err *err);

/* Returns the place, on that node, of the rank that handles what rank r has elsewhere. */
int hier_holder(const struct hier_comm *x, int node, int r);

/* Lists every rank's slice as a piece. Its owner here is the rank that handles it on this machine. */
struct shm_pieces hier_slices(struct hier_comm *x, size_t bytes_each);

struct hier_slice { /* elements */
	size_t first, count;
};

/* Returns part i of n of count elements. */
struct hier_slice hier_slice_of(size_t count, int i, int n);

/* A chunk of a piece. Each of the piece's owners, one on each node, adds a part of the chunk; then all get all
 * parts. */
struct hier_chunk {
	unsigned char *data;
	size_t count;
	enum dtype dtype;
	size_t at; /* number of the chunk in its piece */
};

/* The scratch of chunk `at`: n_nodes x HIER_PART_BYTES. */
unsigned char *hier_scratch(const struct hier_comm *x, size_t at);

/* Sends this rank's part of a chunk to the other owners, or names the places for theirs. */
int hier_begin_gather(struct hier_comm *x, const struct hier_chunk *c, bool sends, struct err *err);

struct hier_turns {					      /* callbacks for one chunk after another */
	int (*begin)(void *user, size_t at, struct err *err); /* begins the messages that are due by `at` */
	int (*add)(void *user, size_t at, struct err *err);   /* called when they have arrived */
	void *user;
};

/* Runs all chunks, several in progress at a time: the link stays busy while a sum is added or a peer is late. Returns
 * when all messages are done. */
int hier_in_turns(struct hier_comm *x, size_t chunks, const struct hier_turns *t, struct err *err);

/* ---- sums: hier_sums.c ---- */

int hier_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err);
int hier_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err);
int hier_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err);
int hier_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err);

#endif
