/* hier_leaves.c: sums along the reduction tree over several machines. The ranks of a machine share their terms, add
 * what can be added without other machines into subtree roots, and send the roots, chunk by chunk, to the rank that
 * adds them all (hier_partial_sums.h knows where terms are stored). */
#include "trainer/comm/hier_base.h"
#include "trainer/comm/hier_partial_sums.h"

struct leaf_fold { /* a sum of terms in progress */
	struct hier_comm *x;
	struct hier_partial_sums s;
	/* of each term: what this rank and its counterparts on other machines add; of a scatter: one rank's slice */
	struct hier_slice piece;
	size_t most;		  /* elements of a chunk */
};

static struct leaf_fold make_leaf_fold(struct hier_comm *x, const struct comm_terms *t)
{
	return (struct leaf_fold){ .x = x, .s = { t, x->run, x->run_node, x->n_runs, x->comm.world, x->shown } };
}

/* Returns the elements of a chunk, when each machine sends its roots to that many ranks: all fit into the scratch of a
 * chunk. */
static size_t chunk_elements_max(const struct leaf_fold *f, int others)
{
	const size_t room = (size_t)f->x->n_nodes * HIER_PART_BYTES / dtype_bytes(f->s.t->dtype);
	size_t most = 1, all = 0, fit;

	for (int b = 0; b < f->x->n_nodes; b++) {
		const size_t roots = (size_t)hier_partial_sums_roots(&f->s, b);

		most = roots > most ? roots : most;
		all += roots;
	}
	fit = room / ((size_t)others * most + all);
	return fit < HIER_ALIGN ? HIER_ALIGN : fit / HIER_ALIGN * HIER_ALIGN;
}

/* Returns chunk `at` of the piece, counted from the piece's first element. */
static struct hier_slice leaf_chunk_at(const struct leaf_fold *f, size_t at)
{
	const size_t first = at * f->most;

	return (struct hier_slice){ first, f->piece.count - first < f->most ? f->piece.count - first : f->most };
}

struct root_buffer { /* roots of a chunk in progress */
	struct leaf_fold *f;
	size_t at;
	unsigned char *free; /* free part of the chunk's scratch */
};

static struct root_buffer begin_roots(struct leaf_fold *f, size_t at)
{
	return (struct root_buffer){ f, at, hier_scratch(f->x, at) };
}

/* Returns, by node, where the roots of a chunk are stored. */
static unsigned char **chunk_roots(const struct leaf_fold *f, size_t at)
{
	return f->x->roots + at % HIER_AHEAD * (size_t)f->x->n_nodes;
}

/* Computes this machine's roots of these elements and sends them; to: the rank that adds them, or this one. */
static int send_roots(struct root_buffer *r, struct hier_slice part, int to, struct err *err)
{
	struct hier_comm *x = r->f->x;
	const struct hier_partial_sums *s = &r->f->s;
	unsigned char *own = r->free;

	hier_partial_sums_fold(s, x->node, part.first, part.count, own);
	r->free += (size_t)hier_partial_sums_roots(s, x->node) * part.count * dtype_bytes(s->t->dtype);
	if (to != x->comm.rank)
		return requests_begin(&x->messages, &(struct message_opts){ to, true, own, (size_t)(r->free - own),
				      r->at }, err);
	chunk_roots(r->f, r->at)[x->node] = own;
	return 0;
}

/* Receives the roots of another machine. */
static int receive_roots(struct root_buffer *r, size_t count, int from, struct err *err)
{
	struct hier_comm *x = r->f->x;
	const int node = x->place[from].node;
	const struct hier_partial_sums *s = &r->f->s;
	const size_t bytes = (size_t)hier_partial_sums_roots(s, node) * count * dtype_bytes(s->t->dtype);
	unsigned char *to = r->free;

	chunk_roots(r->f, r->at)[node] = to;
	r->free += bytes;
	return requests_begin(&x->messages, &(struct message_opts){ from, false, to, bytes, r->at }, err);
}

/* ---- all-reduce: each chunk among the piece's owners on all nodes ---- */

static int begin_leaf_chunk(void *user, size_t at, struct err *err)
{
	struct leaf_fold *f = user;
	struct hier_comm *x = f->x;
	const struct hier_slice chunk = leaf_chunk_at(f, at);
	const size_t own = hier_slice_of(chunk.count, x->node, x->n_nodes).count;
	const int me = x->place[x->comm.rank].local;
	struct root_buffer roots = begin_roots(f, at);
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		struct hier_slice part = hier_slice_of(chunk.count, b, x->n_nodes);

		part.first += f->piece.first + chunk.first;
		rc = send_roots(&roots, part, x->rank[b][me], err);
		if (!rc && b != x->node)
			rc = receive_roots(&roots, own, x->rank[b][me], err);
	}
	return rc;
}

static int add_leaf_chunk(void *user, size_t at, struct err *err)
{
	struct leaf_fold *f = user;
	struct hier_comm *x = f->x;
	const size_t each = dtype_bytes(f->s.t->dtype);
	const struct hier_slice chunk = leaf_chunk_at(f, at), own = hier_slice_of(chunk.count, x->node, x->n_nodes);
	unsigned char *data = (unsigned char *)f->s.t->data + (f->piece.first + chunk.first) * each;
	const struct hier_chunk sums = { data, chunk.count, f->s.t->dtype, at };
	int rc = hier_begin_gather(x, &sums, false, err);

	if (rc)
		return rc;
	hier_partial_sums_add(&f->s, chunk_roots(f, at), own.count, data + own.first * each);
	return hier_begin_gather(x, &sums, true, err);
}

static int run_leaf_chunks(struct leaf_fold *f, const struct hier_turns *t, struct err *err)
{
	return hier_in_turns(f->x, (f->piece.count + f->most - 1) / f->most, t, err);
}

int hier_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	struct leaf_fold f = make_leaf_fold(x, t);
	const size_t each = dtype_bytes(t->dtype), bytes = (size_t)t->count * each, all = bytes * (size_t)t->room;
	const struct shm_pieces p = { x->piece, all <= SHM_SHOWN_BYTES ? 1 : x->least, bytes };
	const struct reduction_tree own = reduction_tree_part(t->leaves, c->rank, c->world);
	const int me = x->place[c->rank].local;
	int rc = hier_enter(x, "all-reduce", err);

	for (int i = 0; i < p.n; i++) {
		const struct hier_slice part = hier_slice_of((size_t)t->count, i, p.n);

		x->piece[i] = (struct shm_piece){ part.first * each, part.count * each, i };
		f.piece = i == me ? part : f.piece;
	}
	if (!rc)
		rc = shm_show(x->local, t->data, all, x->shown, err);
	x->local->sent += (int64_t)(bytes - f.piece.count * each) * reduction_tree_roots(own.first, own.n, NULL);
	f.most = chunk_elements_max(&f, x->n_nodes) * (size_t)x->n_nodes;
	if (!rc)
		rc = run_leaf_chunks(&f, &(struct hier_turns){ begin_leaf_chunk, add_leaf_chunk, &f }, err);
	if (!rc)
		rc = shm_share_pieces(x->local, t->data, &p, err);
	return hier_end(x, rc);
}

/* ---- reduce-scatter: each chunk of every rank's slice ---- */

/* Sends this machine's roots to the ranks of other machines that this rank handles, and receives theirs for its own
 * slice. */
static int begin_leaf_slices(void *user, size_t at, struct err *err)
{
	struct leaf_fold *f = user;
	struct hier_comm *x = f->x;
	const struct hier_slice part = leaf_chunk_at(f, at);
	const int me = x->place[x->comm.rank].local;
	struct root_buffer roots = begin_roots(f, at);
	int rc = 0;

	for (int r = 0; !rc && r < x->comm.world; r++) {
		const struct hier_slice its = { (size_t)r * f->piece.count + part.first, part.count };

		if (r == x->comm.rank || (x->place[r].node != x->node && hier_holder(x, x->node, r) == me))
			rc = send_roots(&roots, its, r, err);
	}
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = receive_roots(&roots, part.count, x->rank[b][hier_holder(x, b, x->comm.rank)], err);
	return rc;
}

static int add_leaf_slice(void *user, size_t at, struct err *err)
{
	struct leaf_fold *f = user;
	const struct hier_slice part = leaf_chunk_at(f, at);
	const size_t own = (size_t)f->x->comm.rank * f->piece.count + part.first;

	(void)err;
	hier_partial_sums_add(&f->s, chunk_roots(f, at), part.count,
			(unsigned char *)f->s.t->data + own * dtype_bytes(f->s.t->dtype));
	return 0;
}

int hier_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	struct leaf_fold f = make_leaf_fold(x, t);
	const size_t slice = (size_t)t->count / (size_t)c->world, each = dtype_bytes(t->dtype);
	const struct reduction_tree own = reduction_tree_part(t->leaves, c->rank, c->world);
	int rc = hier_enter_resting(x, "reduce-scatter", err);

	if (!rc)
		rc = shm_show(x->local, t->data, (size_t)t->count * (size_t)t->room * each, x->shown, err);
	x->local->sent +=
		(int64_t)(slice * each) * (x->local->world - 1) * reduction_tree_roots(own.first, own.n, NULL);
	f.piece.count = slice;
	f.most = chunk_elements_max(&f, c->world);
	if (!rc)
		rc = run_leaf_chunks(&f, &(struct hier_turns){ begin_leaf_slices, add_leaf_slice, &f }, err);
	if (!rc)
		rc = x->local->ops->barrier(x->local, err); /* the other ranks may still read this rank's terms */
	return hier_end(x, rc);
}
