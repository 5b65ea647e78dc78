/* nodes.c: collectives over several machines, of shared memory within each and messages between them. Every sum is cut
 * into pieces that have one owner on each machine: the ranks of a machine add theirs, the owners of a piece tell each
 * other (each adds a part of it in the order of the machines and gives the others the result, so all get the same
 * bits), and hand it to the ranks beside them. What leaves a machine is spread over its ranks. */
#include "trainer/comm/nodes.h"
#include "trainer/comm/messages.h"
#include "trainer/comm/nodes_terms.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/comm/shm.h"
#include "trainer/comm/sum.h"

#define SMALL_BYTES ((size_t)16384)    /* sums that one owner adds whole */
#define PART_BYTES ((size_t)1 << 20)   /* of a sum that one message carries at most */
#define AHEAD 4			       /* chunks under way, so that the wire has some while others are added */
#define SCRATCH_BYTES (AHEAD * PART_BYTES) /* for each node */
#define ALIGN_ELEMENTS 16
#define NODES_INTERFACE_BYTES 64

struct place {
	int node, local;
};

struct nodes {
	struct comm comm;
	struct comm *local;
	struct link *link;
	struct place *place; /* by rank */
	int *number;	     /* by rank: what messages call it */
	int n_nodes, node;
	int *size;  /* ranks, by node */
	int **rank; /* by node and place in it */
	int least;  /* ranks of the smallest node: as many ranks of each have pieces of sums */
	struct messages messages;
	unsigned char *scratch; /* parts of AHEAD chunks for each node */
	struct shm_piece *piece;
	const void **from; /* by node */
	struct leaves_run *run; /* neighbours on one machine, from rank 0 on, */
	int *run_node;		/* and which machine that is */
	int n_runs;
	unsigned char **shown;	/* by place on this machine: terms */
	unsigned char **roots;	/* by node */
	bool broken;
	int sockets; /* and interface: for groups that are split from it */
	char interface[NODES_INTERFACE_BYTES];
};

static const struct comm_ops nodes_ops;

static struct nodes *nodes_of(struct comm *c)
{
	return (struct nodes *)c;
}

/* ---- messages ---- */

static int begin(struct nodes *x, bool sends, int peer, void *data, size_t bytes, struct err *err)
{
	return messages_begin(&x->messages, &(struct message_opts){ peer, sends, data, bytes, 0 }, err);
}

/* All that was begun is done. */
static int finish(struct nodes *x, struct err *err)
{
	return messages_await_all(&x->messages, err);
}

/* Of a collective. What has failed is not tried again, and the ranks beside this one are not left waiting. */
static int end(struct nodes *x, int rc)
{
	x->comm.sent_nodes = x->messages.sent;
	x->comm.sent = x->local->sent + x->comm.sent_nodes;
	if (rc) {
		x->broken = true;
		messages_drop(&x->messages);
		x->local->ops->abort(x->local);
	}
	return rc;
}

static int enter(struct nodes *x, const char *what, struct err *err)
{
	x->messages.what = what;
	if (!x->broken)
		return 0;
	return err_set(err, ERR_PEER, "%s: the job's ranks have lost each other", what);
}

/* Who has, on that node, what rank r has elsewhere. */
static int holder(const struct nodes *x, int node, int r)
{
	return x->place[r].node == node ? x->place[r].local : x->place[r].local % x->size[node];
}

/* ---- sums ---- */

struct slice {
	size_t first, count;
};

static struct slice slice_of(size_t count, int i, int n)
{
	size_t each = (count + (size_t)n - 1) / (size_t)n, first;

	each = (each + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
	first = each * (size_t)i;
	if (first >= count)
		return (struct slice){ count, 0 };
	return (struct slice){ first, count - first < each ? count - first : each };
}

/* A chunk of a piece, among its owners on all nodes: each adds a part of it, then all get all parts. */
struct chunk {
	unsigned char *data;
	size_t count;
	enum dtype dtype;
	size_t at; /* which one of its piece it is */
};

static size_t chunk_most(const struct nodes *x, enum dtype dtype)
{
	return (size_t)x->n_nodes * PART_BYTES / dtype_bytes(dtype);
}

static struct chunk chunk_of(const struct nodes *x, const struct chunk *piece, size_t at)
{
	const size_t most = chunk_most(x, piece->dtype), first = at * most;

	return (struct chunk){ piece->data + first * dtype_bytes(piece->dtype),
			       piece->count - first < most ? piece->count - first : most, piece->dtype, at };
}

/* Where that node's share of what this rank adds of chunk or part `at` arrives. */
static unsigned char *scratch_of(const struct nodes *x, size_t at, int node)
{
	return x->scratch + (at % AHEAD * (size_t)x->n_nodes + (size_t)node) * PART_BYTES;
}

/* The part of a chunk that this rank adds is heard from all others, theirs are told to them. */
static int begin_scatter(struct nodes *x, struct chunk c, struct err *err)
{
	const size_t each = dtype_bytes(c.dtype), own = slice_of(c.count, x->node, x->n_nodes).count * each;
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		const struct slice s = slice_of(c.count, b, x->n_nodes);
		const struct message_opts hear = { x->rank[b][me], false, scratch_of(x, c.at, b), own, c.at },
					  tell = { x->rank[b][me], true, c.data + s.first * each, s.count * each,
						   c.at };

		if (b == x->node)
			continue;
		rc = messages_begin(&x->messages, &hear, err);
		if (!rc)
			rc = messages_begin(&x->messages, &tell, err);
	}
	return rc;
}

static void add_part(struct nodes *x, const struct chunk *c)
{
	struct slice own = slice_of(c->count, x->node, x->n_nodes);
	void *sum = c->data + own.first * dtype_bytes(c->dtype);

	for (int b = 0; b < x->n_nodes; b++)
		x->from[b] = b == x->node ? sum : scratch_of(x, c->at, b);
	sum_run(&(struct sum_job){ x->from, &sum, x->n_nodes, 1, own.count, c->dtype, NULL });
}

/* This rank's sums are told to the others, or places named for theirs. */
static int begin_gather(struct nodes *x, const struct chunk *c, bool sends, struct err *err)
{
	const size_t each = dtype_bytes(c->dtype);
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		const struct slice s = slice_of(c->count, sends ? x->node : b, x->n_nodes);

		if (b != x->node)
			rc = messages_begin(&x->messages, &(struct message_opts){ x->rank[b][me], sends,
					    c->data + s.first * each, s.count * each, c->at + AHEAD }, err);
	}
	return rc;
}

/* Several chunks are under way: the wire is never idle while a sum is added or a peer is a moment late. All begin their
 * messages in one order: scatter 0 to AHEAD - 1, gather 0, scatter AHEAD, gather 1, and so on. Places for sums are told
 * before the own ones are added: who is ahead already sends them. */
static int sum_between(struct nodes *x, const struct chunk *piece, struct err *err)
{
	const size_t most = chunk_most(x, piece->dtype), n = (piece->count + most - 1) / most;
	int rc = 0;

	for (size_t at = 0; !rc && at < n && at < AHEAD; at++)
		rc = begin_scatter(x, chunk_of(x, piece, at), err);
	for (size_t at = 0; !rc && at < n; at++) {
		const struct chunk c = chunk_of(x, piece, at);

		rc = messages_await(&x->messages, at, err);
		if (!rc)
			rc = begin_gather(x, &c, false, err);
		if (rc)
			break;
		add_part(x, &c);
		rc = begin_gather(x, &c, true, err);
		if (!rc && at + AHEAD < n)
			rc = begin_scatter(x, chunk_of(x, piece, at + AHEAD), err);
	}
	return rc ? rc : finish(x, err);
}

static int check_dtype(enum dtype dtype, struct err *err)
{
	return sum_takes(dtype) ? 0 : err_set(err, ERR_UNSUPPORTED, "ranks do not sum %s", dtype_name(dtype));
}

static int nodes_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct nodes *x = nodes_of(c);
	size_t each = dtype_bytes(dtype), bytes = (size_t)count * each;
	struct shm_pieces p = { x->piece, bytes <= SMALL_BYTES ? 1 : x->least, bytes };
	int rc = check_dtype(dtype, err), me = x->place[c->rank].local;

	if (rc || !count)
		return rc;
	for (int i = 0; i < p.n; i++) {
		struct slice s = slice_of((size_t)count, i, p.n);

		x->piece[i] = (struct shm_piece){ s.first * each, s.count * each, i };
	}
	rc = enter(x, "all-reduce", err);
	if (!rc)
		rc = shm_reduce_pieces(x->local, data, &p, dtype, err);
	if (!rc && me < p.n)
		rc = sum_between(x, &(struct chunk){ (unsigned char *)data + x->piece[me].at,
						     x->piece[me].bytes / each, dtype, 0 }, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &p, err);
	return end(x, rc);
}

/* Every rank's slice as a piece, owned here by who has what that rank has elsewhere. */
static struct shm_pieces slices(struct nodes *x, size_t bytes_each)
{
	for (int r = 0; r < x->comm.world; r++)
		x->piece[r] = (struct shm_piece){ (size_t)r * bytes_each, bytes_each, holder(x, x->node, r) };
	return (struct shm_pieces){ x->piece, x->comm.world, (size_t)x->comm.world * bytes_each };
}

/* Part `at` of every rank's slice (c: all of them): the sums of this machine for ranks of others go to them, those of
 * others for this rank come. */
static int begin_slices(struct nodes *x, const struct chunk *c, struct slice part, size_t at, struct err *err)
{
	const size_t each = dtype_bytes(c->dtype), bytes = part.count * each;
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int r = 0; !rc && r < x->comm.world; r++)
		if (x->place[r].node != x->node && holder(x, x->node, r) == me)
			rc = messages_begin(&x->messages, &(struct message_opts){ r, true,
					    c->data + ((size_t)r * c->count + part.first) * each, bytes, at }, err);
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = messages_begin(&x->messages,
					    &(struct message_opts){ x->rank[b][holder(x, b, x->comm.rank)], false,
								    scratch_of(x, at, b), bytes, at }, err);
	return rc;
}

static struct slice part_of(size_t count, enum dtype dtype, size_t at)
{
	const size_t most = PART_BYTES / dtype_bytes(dtype), first = at * most;

	return (struct slice){ first, count - first < most ? count - first : most };
}

static void add_slice(struct nodes *x, const struct chunk *c, struct slice part, size_t at)
{
	void *sum = c->data + ((size_t)x->comm.rank * c->count + part.first) * dtype_bytes(c->dtype);

	for (int b = 0; b < x->n_nodes; b++)
		x->from[b] = b == x->node ? sum : scratch_of(x, at, b);
	sum_run(&(struct sum_job){ x->from, &sum, x->n_nodes, 1, part.count, c->dtype, NULL });
}

/* c: of each rank's slice. Added in the order of the machines. */
static int scatter_sums(struct nodes *x, const struct chunk *c, struct err *err)
{
	const size_t most = PART_BYTES / dtype_bytes(c->dtype), n = (c->count + most - 1) / most;
	int rc = 0;

	for (size_t at = 0; !rc && at < n && at < AHEAD; at++)
		rc = begin_slices(x, c, part_of(c->count, c->dtype, at), at, err);
	for (size_t at = 0; !rc && at < n; at++) {
		rc = messages_await(&x->messages, at, err);
		if (rc)
			break;
		add_slice(x, c, part_of(c->count, c->dtype, at), at);
		if (at + AHEAD < n)
			rc = begin_slices(x, c, part_of(c->count, c->dtype, at + AHEAD), at + AHEAD, err);
	}
	return rc;
}

static int nodes_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct nodes *x = nodes_of(c);
	struct shm_pieces p = slices(x, (size_t)count_each * dtype_bytes(dtype));
	int rc = check_dtype(dtype, err);

	if (rc || !count_each)
		return rc;
	rc = enter(x, "reduce-scatter", err);
	if (!rc)
		rc = shm_reduce_pieces(x->local, data, &p, dtype, err);
	if (!rc)
		rc = scatter_sums(x, &(struct chunk){ data, (size_t)count_each, dtype, 0 }, err);
	return end(x, rc);
}

/* ---- sums along the tree of leaves ---- */

static struct nodes_terms terms_of(const struct nodes *x, const struct comm_terms *t)
{
	return (struct nodes_terms){ t, x->run, x->run_node, x->n_runs, x->comm.world, x->shown };
}

/* Elements of a piece that travel at once where a machine tells so many others theirs: all fit into the scratch. */
static size_t terms_at_once(const struct nodes *x, const struct nodes_terms *s, int others)
{
	size_t most = 1, all = 0, fit;

	for (int b = 0; b < x->n_nodes; b++) {
		const size_t roots = (size_t)nodes_terms_roots(s, b);

		most = roots > most ? roots : most;
		all += roots;
	}
	fit = (size_t)x->n_nodes * SCRATCH_BYTES / dtype_bytes(s->t->dtype) / ((size_t)others * most + all);
	return fit < ALIGN_ELEMENTS ? ALIGN_ELEMENTS : fit / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

struct roots { /* on their way */
	struct nodes *x;
	const struct nodes_terms *s;
	unsigned char *at; /* of the scratch, what is free */
};

/* This machine's roots of a piece; to: the rank that adds it, or this one. */
static int tell_roots(struct roots *r, struct slice piece, int to, struct err *err)
{
	struct nodes *x = r->x;
	const size_t count = (size_t)nodes_terms_roots(r->s, x->node) * piece.count;
	unsigned char *own = r->at;

	nodes_terms_fold(r->s, x->node, piece.first, piece.count, own);
	r->at += count * dtype_bytes(r->s->t->dtype);
	if (to != x->comm.rank)
		return begin(x, true, to, own, (size_t)(r->at - own), err);
	x->roots[x->node] = own;
	return 0;
}

/* Those of another machine. */
static int hear_roots(struct roots *r, size_t count, int from, struct err *err)
{
	const int node = r->x->place[from].node;
	const size_t bytes = (size_t)nodes_terms_roots(r->s, node) * count * dtype_bytes(r->s->t->dtype);

	r->x->roots[node] = r->at;
	r->at += bytes;
	return begin(r->x, false, from, r->x->roots[node], bytes, err);
}

/* A chunk of a piece of the sum, among its owners on all nodes. */
static int add_terms_between(struct nodes *x, const struct nodes_terms *s, struct slice chunk, struct err *err)
{
	const size_t each = dtype_bytes(s->t->dtype);
	const struct slice own = slice_of(chunk.count, x->node, x->n_nodes);
	const int me = x->place[x->comm.rank].local;
	unsigned char *data = (unsigned char *)s->t->data + chunk.first * each;
	const struct chunk sums = { data, chunk.count, s->t->dtype, 0 };
	struct roots roots = { x, s, x->scratch };
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		const struct slice part = slice_of(chunk.count, b, x->n_nodes);

		rc = tell_roots(&roots, (struct slice){ chunk.first + part.first, part.count }, x->rank[b][me], err);
		if (!rc && b != x->node)
			rc = hear_roots(&roots, own.count, x->rank[b][me], err);
	}
	if (!rc)
		rc = finish(x, err);
	if (rc)
		return rc;
	nodes_terms_add(s, x->roots, own.count, data + own.first * each);
	rc = begin_gather(x, &sums, false, err);
	if (!rc)
		rc = begin_gather(x, &sums, true, err);
	return rc ? rc : finish(x, err);
}

static int nodes_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct nodes *x = nodes_of(c);
	const struct nodes_terms s = terms_of(x, t);
	const size_t each = dtype_bytes(t->dtype), bytes = (size_t)t->count * each, all = bytes * (size_t)t->room;
	const struct shm_pieces p = { x->piece, all <= SHM_SHOWN_BYTES ? 1 : x->least, bytes };
	const struct leaves own = leaves_part(t->leaves, c->rank, c->world);
	const int me = x->place[c->rank].local;
	struct slice piece = { 0, 0 };
	size_t most;
	int rc = enter(x, "all-reduce", err);

	for (int i = 0; i < p.n; i++) {
		const struct slice part = slice_of((size_t)t->count, i, p.n);

		x->piece[i] = (struct shm_piece){ part.first * each, part.count * each, i };
		piece = i == me ? part : piece;
	}
	if (!rc)
		rc = shm_show(x->local, t->data, all, x->shown, err);
	x->local->sent += (int64_t)(bytes - piece.count * each) * leaves_roots(own.first, own.n, NULL);
	most = terms_at_once(x, &s, x->n_nodes) * (size_t)x->n_nodes;
	for (size_t at = 0; !rc && at < piece.count; at += most) {
		const size_t n = piece.count - at < most ? piece.count - at : most;

		rc = add_terms_between(x, &s, (struct slice){ piece.first + at, n }, err);
	}
	if (!rc)
		rc = shm_share_pieces(x->local, t->data, &p, err);
	return end(x, rc);
}

/* Of every rank's slice of so many elements those from part.first on: of others on other machines they are told, of the
 * own one they are heard and added. */
static int scatter_terms(struct nodes *x, const struct nodes_terms *s, size_t slice, struct slice part, struct err *err)
{
	const int me = x->place[x->comm.rank].local;
	const size_t own = (size_t)x->comm.rank * slice + part.first;
	struct roots roots = { x, s, x->scratch };
	int rc = 0;

	for (int r = 0; !rc && r < x->comm.world; r++)
		if (r == x->comm.rank || (x->place[r].node != x->node && holder(x, x->node, r) == me))
			rc = tell_roots(&roots, (struct slice){ (size_t)r * slice + part.first, part.count }, r, err);
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = hear_roots(&roots, part.count, x->rank[b][holder(x, b, x->comm.rank)], err);
	if (!rc)
		rc = finish(x, err);
	if (!rc)
		nodes_terms_add(s, x->roots, part.count,
				(unsigned char *)s->t->data + own * dtype_bytes(s->t->dtype));
	return rc;
}

static int nodes_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct nodes *x = nodes_of(c);
	const struct nodes_terms s = terms_of(x, t);
	const size_t slice = (size_t)t->count / (size_t)c->world, each = dtype_bytes(t->dtype);
	const struct leaves own = leaves_part(t->leaves, c->rank, c->world);
	size_t most;
	int rc = enter(x, "reduce-scatter", err);

	if (!rc)
		rc = shm_show(x->local, t->data, (size_t)t->count * (size_t)t->room * each, x->shown, err);
	x->local->sent += (int64_t)(slice * each) * (x->local->world - 1) * leaves_roots(own.first, own.n, NULL);
	most = terms_at_once(x, &s, c->world);
	for (size_t at = 0; !rc && at < slice; at += most)
		rc = scatter_terms(x, &s, slice, (struct slice){ at, slice - at < most ? slice - at : most }, err);
	if (!rc)
		rc = x->local->ops->barrier(x->local, err); /* the others may still read this rank's terms */
	return end(x, rc);
}

/* ---- copies ---- */

static int nodes_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct nodes *x = nodes_of(c);
	struct shm_pieces p = slices(x, (size_t)bytes_each);
	int rc = enter(x, "all-gather", err), me = x->place[c->rank].local;

	if (rc || !bytes_each)
		return rc;
	for (int r = 0; !rc && r < c->world; r++)
		if (x->place[r].node != x->node && holder(x, x->node, r) == me)
			rc = begin(x, false, r, (char *)data + r * bytes_each, (size_t)bytes_each, err);
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = begin(x, true, x->rank[b][holder(x, b, c->rank)], (char *)data + c->rank * bytes_each,
				   (size_t)bytes_each, err);
	if (!rc)
		rc = finish(x, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &p, err);
	return end(x, rc);
}

static int nodes_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct nodes *x = nodes_of(c);
	struct shm_piece all = { 0, bytes, holder(x, x->node, root) };
	int rc = enter(x, "broadcast", err);

	if (rc || !bytes)
		return rc;
	for (int b = 0; !rc && c->rank == root && b < x->n_nodes; b++)
		if (b != x->node)
			rc = begin(x, true, x->rank[b][holder(x, b, root)], data, bytes, err);
	if (!rc && x->node != x->place[root].node && x->place[c->rank].local == all.owner)
		rc = begin(x, false, root, data, bytes, err);
	if (!rc)
		rc = finish(x, err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &(struct shm_pieces){ &all, 1, bytes }, err);
	return end(x, rc);
}

static int check_peer(const struct comm *c, int peer, struct err *err)
{
	if (peer >= 0 && peer < c->world && peer != c->rank)
		return 0;
	return err_set(err, ERR_USAGE, "message between rank %d and rank %d of %d", c->rank, peer, c->world);
}

static int nodes_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct nodes *x = nodes_of(c);
	int rc = check_peer(c, to, err);

	if (!rc)
		rc = enter(x, "send", err);
	if (rc)
		return rc;
	if (x->place[to].node == x->node)
		return end(x, x->local->ops->send(x->local, data, bytes, x->place[to].local, err));
	rc = begin(x, true, to, (void *)(uintptr_t)data, bytes, err);
	return end(x, rc ? rc : finish(x, err));
}

static int nodes_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct nodes *x = nodes_of(c);
	int rc = check_peer(c, from, err);

	if (!rc)
		rc = enter(x, "receive", err);
	if (rc)
		return rc;
	if (x->place[from].node == x->node)
		return end(x, x->local->ops->recv(x->local, data, bytes, x->place[from].local, err));
	rc = begin(x, false, from, data, bytes, err);
	return end(x, rc ? rc : finish(x, err));
}

static int nodes_barrier(struct comm *c, struct err *err)
{
	struct nodes *x = nodes_of(c);
	char here = 0;
	int rc = enter(x, "barrier", err);

	if (rc)
		return rc;
	rc = x->local->ops->barrier(x->local, err);
	for (int b = 0; !rc && x->place[c->rank].local == 0 && b < x->n_nodes; b++) {
		if (b == x->node)
			continue;
		rc = begin(x, false, x->rank[b][0], x->scratch + b, 1, err);
		if (!rc)
			rc = begin(x, true, x->rank[b][0], &here, 1, err);
	}
	if (!rc)
		rc = finish(x, err);
	if (!rc)
		rc = x->local->ops->barrier(x->local, err);
	return end(x, rc);
}

static int nodes_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct nodes *x = nodes_of(c);

	return x->local->ops->alloc(x->local, bytes, ret, err);
}

static int nodes_check(struct comm *c, struct err *err)
{
	struct nodes *x = nodes_of(c);

	return x->local->ops->check(x->local, err);
}

static void nodes_limit(struct comm *c, double seconds)
{
	struct nodes *x = nodes_of(c);

	x->messages.timeout_s = seconds;
	x->local->ops->limit(x->local, seconds);
}

static void nodes_abort(struct comm *c)
{
	struct nodes *x = nodes_of(c);

	x->local->ops->abort(x->local);
}

static void nodes_close(struct comm *c)
{
	struct nodes *x = nodes_of(c);
	struct err ignored;

	if (!x)
		return;
	if (x->link) /* where the job was aborted nobody waits for what is still under way */
		x->link->module->close(x->link, !x->broken && x->local && !shm_check(x->local, &ignored));
	if (x->local)
		x->local->ops->close(x->local);
	for (int b = 0; x->rank && b < x->n_nodes; b++)
		free(x->rank[b]);
	free(x->rank);
	free(x->size);
	free(x->place);
	free(x->number);
	messages_free(&x->messages);
	free(x->scratch);
	free(x->piece);
	free(x->from);
	free(x->run);
	free(x->run_node);
	free(x->shown);
	free(x->roots);
	free(x);
}

/* ---- set-up ---- */

struct said { /* by a rank: its number in the job, which machine it is on, and how its link is reached */
	int number, node;
	const void *address;
	size_t bytes;
};

/* Machines are numbered in the order of their first rank. */
static int find_places(struct nodes *x, const struct said *said, struct err *err)
{
	int world = x->comm.world;

	x->place = calloc((size_t)world, sizeof(*x->place));
	x->size = calloc((size_t)world, sizeof(*x->size));
	x->rank = calloc((size_t)world, sizeof(*x->rank));
	x->number = calloc((size_t)world, sizeof(*x->number));
	if (!x->place || !x->size || !x->rank || !x->number)
		return err_set(err, ERR_NOMEM, "out of memory: %d ranks", world);
	for (int r = 0; r < world; r++) {
		int like = 0, b;

		while (said[like].node != said[r].node)
			like++;
		b = like == r ? x->n_nodes++ : x->place[like].node;
		if (like == r)
			x->rank[b] = calloc((size_t)world, sizeof(*x->rank[b]));
		if (!x->rank[b])
			return err_set(err, ERR_NOMEM, "out of memory: %d ranks", world);
		x->place[r] = (struct place){ b, x->size[b] };
		x->number[r] = said[r].number;
		x->rank[b][x->size[b]++] = r;
	}
	x->node = x->place[x->comm.rank].node;
	x->least = x->size[0];
	for (int b = 0; b < x->n_nodes; b++)
		x->least = x->size[b] < x->least ? x->size[b] : x->least;
	if (x->size[x->node] != x->local->world || x->place[x->comm.rank].local != x->local->rank)
		return err_set(err, ERR_USAGE,
			       "rank %d is number %d of %d on this machine, but of those that have come it is number "
			       "%d of %d: does another machine bear the same name?",
			       x->comm.rank, x->local->rank, x->local->world, x->place[x->comm.rank].local,
			       x->size[x->node]);
	return 0;
}

static int take_memory(struct nodes *x, struct err *err)
{
	size_t world = (size_t)x->comm.world;

	x->piece = calloc(world, sizeof(*x->piece));
	x->from = calloc((size_t)x->n_nodes, sizeof(*x->from));
	x->roots = calloc((size_t)x->n_nodes, sizeof(*x->roots));
	x->shown = calloc(world, sizeof(*x->shown));
	x->run = calloc(world, sizeof(*x->run));
	x->run_node = calloc(world, sizeof(*x->run_node));
	x->scratch = malloc((size_t)x->n_nodes * SCRATCH_BYTES);
	x->messages.link = x->link;
	x->messages.local = x->local;
	x->messages.number = x->number;
	if (x->piece && x->from && x->scratch && x->roots && x->shown && x->run && x->run_node)
		return messages_take_memory(&x->messages, AHEAD * x->comm.world + (4 * AHEAD + 2) * x->n_nodes, err);
	return err_set(err, ERR_NOMEM, "out of memory: communicator between %d machines", x->n_nodes);
}

/* Neighbours that are on one machine. */
static void find_runs(struct nodes *x)
{
	for (int r = 0; r < x->comm.world; r++) {
		const int node = x->place[r].node;

		if (!x->n_runs || x->run_node[x->n_runs - 1] != node) {
			x->run_node[x->n_runs] = node;
			x->run[x->n_runs++] = (struct leaves_run){ r, 0 };
		}
		x->run[x->n_runs - 1].n++;
	}
}

static int set_up(struct nodes *x, const struct said *said, struct err *err)
{
	int rc = find_places(x, said, err);

	if (!rc)
		rc = take_memory(x, err);
	if (!rc)
		find_runs(x);
	for (int r = 0; !rc && r < x->comm.world; r++)
		if (x->place[r].node != x->node)
			rc = x->link->module->connect(x->link, r, said[r].address, said[r].bytes, err);
	return rc;
}

/* Of rank `rank` of `world`, with its link opened; local is taken over in any case. */
static int begin_nodes(struct nodes **ret, struct comm *local, const struct link_module *link,
		       const struct link_opts *lo, struct err *err)
{
	struct nodes *x = calloc(1, sizeof(*x));
	int rc;

	if (!x) {
		local->ops->close(local);
		return err_set(err, ERR_NOMEM, "out of memory: communicator");
	}
	x->comm = (struct comm){ .ops = &nodes_ops, .rank = lo->rank, .world = lo->world, .terms = true };
	x->local = local;
	x->sockets = lo->sockets;
	snprintf(x->interface, sizeof(x->interface), "%s", lo->interface);
	rc = link->open(&x->link, lo, err);
	if (rc) {
		x->broken = true;
		nodes_close(&x->comm);
		return rc;
	}
	*ret = x;
	return 0;
}

static int give_up(struct nodes *x, int rc)
{
	if (x) {
		x->broken = true;
		nodes_close(&x->comm);
	}
	return rc;
}

/* ---- of all ranks: by bootstrap.h ---- */

struct saying { /* in front of the link's address */
	char node[NODES_NAME_BYTES];
	char link[LINK_NAME_BYTES]; /* by which it reaches the others */
};

static int tell(const struct nodes *x, const struct comm_nodes_opts *o, const struct err *failure, struct err *err)
{
	size_t n = 0;
	const void *address = x ? x->link->module->address(x->link, &n) : NULL;
	struct saying *s = calloc(1, sizeof(*s) + n);
	int rc;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory: addresses");
	memcpy(s->node, o->node, strnlen(o->node, sizeof(s->node) - 1));
	memcpy(s->link, o->link->name, strnlen(o->link->name, sizeof(s->link) - 1));
	if (n)
		memcpy(s + 1, address, n);
	rc = bootstrap_round(o->bootstrap, s, sizeof(*s) + n, failure, err);
	free(s);
	return rc;
}

static int check_link(const struct saying *first, const struct saying *s, int rank, struct err *err)
{
	if (!strncmp(first->link, s->link, LINK_NAME_BYTES))
		return 0;
	return err_set(err, ERR_USAGE,
		       "rank %d reaches other machines by %.*s, rank 0 by %.*s: give all the same --comm", rank,
		       LINK_NAME_BYTES - 1, s->link, LINK_NAME_BYTES - 1, first->link);
}

/* Who has the same name is on the same machine: said[].node is the first rank of that name. */
static int hear(struct said *said, const struct bootstrap *b, struct err *err)
{
	for (int r = 0; r < bootstrap_count(b); r++) {
		size_t n, other;
		const struct saying *s = bootstrap_said(b, r, &n);

		if (n < sizeof(*s))
			return err_set(err, ERR_PEER, "rank %d does not say where it is", r);
		if (check_link(bootstrap_said(b, 0, &other), s, r, err))
			return ERR_USAGE;
		said[r] = (struct said){ .number = r, .address = s + 1, .bytes = n - sizeof(*s) };
		while (strncmp(((const struct saying *)bootstrap_said(b, said[r].node, &other))->node, s->node,
			       NODES_NAME_BYTES))
			said[r].node++;
	}
	return 0;
}

int comm_nodes_open(struct comm **ret, const struct comm_nodes_opts *o, struct err *err)
{
	struct link_opts lo = { .rank = bootstrap_self(o->bootstrap), .world = bootstrap_count(o->bootstrap),
				.sockets = o->sockets };
	struct said *said = calloc((size_t)lo.world, sizeof(*said));
	struct err failure = ERR_INIT;
	struct nodes *x = NULL;
	char interface[NODES_INTERFACE_BYTES];
	int rc;

	bootstrap_interface(o->bootstrap, interface, sizeof(interface));
	lo.interface = interface;
	if (!said)
		err_set(&failure, ERR_NOMEM, "out of memory: %d ranks", lo.world);
	begin_nodes(&x, o->local, o->link, &lo, failure.code ? &(struct err)ERR_INIT : &failure);
	rc = tell(x, o, &failure, err);
	if (!rc)
		rc = hear(said, o->bootstrap, err);
	if (!rc)
		rc = set_up(x, said, err);
	free(said);
	if (rc)
		return give_up(x, rc);
	x->messages.timeout_s = o->timeout_s;
	*ret = &x->comm;
	return 0;
}

/* ---- of groups: by the communicator that they are split from ---- */

struct ticket { /* of each rank of the whole */
	int32_t color, bytes;
};

/* Colors of all, and the length of the longest address. */
static int call_roll(struct nodes *all, struct ticket *t, const struct ticket *own, size_t *ret_most, struct err *err)
{
	int rc;

	t[all->comm.rank] = *own;
	rc = nodes_all_gather(&all->comm, t, sizeof(*t), err);
	*ret_most = 0;
	for (int r = 0; r < all->comm.world; r++)
		*ret_most = t[r].bytes > 0 && (size_t)t[r].bytes > *ret_most ? (size_t)t[r].bytes : *ret_most;
	for (int r = 0; !rc && r < all->comm.world; r++)
		if (t[r].bytes < 0)
			rc = err_set(err, ERR_PEER, "rank %d could not open a communicator for its group", r);
	return rc;
}

/* The group's link addresses, told to all; said: of the members, in their order. *ret_bytes is what they point into. */
static int swap_addresses(struct nodes *all, const struct nodes *x, const struct ticket *t, size_t most,
			  struct said *said, unsigned char **ret_bytes, struct err *err)
{
	unsigned char *bytes = calloc((size_t)all->comm.world, most ? most : 1);
	size_t n = 0;
	const void *own = x ? x->link->module->address(x->link, &n) : NULL;
	int rc, members = 0, color = t[all->comm.rank].color;

	if (!bytes)
		return err_set(err, ERR_NOMEM, "out of memory: addresses");
	if (n)
		memcpy(bytes + (size_t)all->comm.rank * most, own, n);
	rc = nodes_all_gather(&all->comm, bytes, (int64_t)most, err);
	for (int r = 0; r < all->comm.world; r++)
		if (t[r].color == color && color >= 0)
			said[members++] = (struct said){ all->number[r], all->place[r].node,
							 bytes + (size_t)r * most, (size_t)t[r].bytes };
	*ret_bytes = bytes;
	return rc;
}

struct members {
	struct comm *local; /* its ranks of this machine */
	int rank, world, nodes;
};

/* Who is in the group of that color; colors: of all ranks. */
static void count_members(const struct nodes *all, const struct ticket *t, struct members *g)
{
	int color = t[all->comm.rank].color, last = -1;

	for (int r = 0; r < all->comm.world; r++) {
		if (color < 0 || t[r].color != color)
			continue;
		if (r == all->comm.rank)
			g->rank = g->world;
		g->world++;
		g->nodes += all->place[r].node != last;
		last = all->place[r].node;
	}
}

/* Opens the group's link where it is on several machines; negative bytes in own tell that it failed. */
static void open_group(struct nodes *all, struct members *g, struct nodes **ret, struct ticket *own, struct err *err)
{
	struct link_opts lo = { .rank = g->rank, .world = g->world, .sockets = all->sockets,
				.interface = all->interface };
	size_t n = 0;

	own->bytes = 0;
	if (g->nodes <= 1)
		return;
	if (begin_nodes(ret, g->local, all->link->module, &lo, err)) {
		own->bytes = -1;
		return;
	}
	(*ret)->messages.timeout_s = all->messages.timeout_s;
	(*ret)->link->module->address((*ret)->link, &n);
	own->bytes = (int32_t)n;
}

static int nodes_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct nodes *all = nodes_of(c), *x = NULL;
	struct ticket *t = calloc((size_t)c->world, sizeof(*t)), own = { .color = color };
	struct said *said = calloc((size_t)c->world, sizeof(*said));
	struct members g = { .local = NULL };
	unsigned char *bytes = NULL;
	size_t most;
	int rc = t && said ? all->local->ops->split(all->local, color, &g.local, err)
		: err_set(err, ERR_NOMEM, "out of memory: communicator of a group");

	if (!rc)
		rc = call_roll(all, t, &own, &most, err);
	if (!rc) {
		count_members(all, t, &g);
		open_group(all, &g, &x, &own, err);
		rc = call_roll(all, t, &own, &most, err);
	}
	if (!rc)
		rc = swap_addresses(all, x, t, most, said, &bytes, err);
	if (!rc && x)
		rc = set_up(x, said, err);
	free(t);
	free(said);
	free(bytes);
	if (rc)
		return end(all, give_up(x, rc));
	*ret = x ? &x->comm : g.local;
	return 0;
}

static const struct comm_ops nodes_ops = {
	.name = "nodes",
	.allreduce = nodes_allreduce,
	.reduce_scatter = nodes_reduce_scatter,
	.allreduce_terms = nodes_allreduce_terms,
	.reduce_scatter_terms = nodes_reduce_scatter_terms,
	.all_gather = nodes_all_gather,
	.broadcast = nodes_broadcast,
	.send = nodes_send,
	.recv = nodes_recv,
	.barrier = nodes_barrier,
	.alloc = nodes_alloc,
	.split = nodes_split,
	.check = nodes_check,
	.limit = nodes_limit,
	.abort = nodes_abort,
	.close = nodes_close,
};
