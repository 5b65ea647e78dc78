/* nodes_leaves.c: sums along the tree of leaves over several machines: the ranks of a machine show each other their
 * terms, what can be added of them here is folded into roots, and the roots travel, chunk by chunk, to who adds them
 * all (nodes_terms.h knows where terms lie). */
#include "trainer/comm/nodes_base.h"
#include "trainer/comm/nodes_terms.h"

struct folds { /* a sum of terms, under way */
	struct nodes *x;
	struct nodes_terms s;
	struct nodes_slice piece; /* of each term: what this rank and its like elsewhere add; of a scatter: a slice */
	size_t most;		  /* elements of a chunk */
};

static struct folds folds_of(struct nodes *x, const struct comm_terms *t)
{
	return (struct folds){ .x = x, .s = { t, x->run, x->run_node, x->n_runs, x->comm.world, x->shown } };
}

/* Elements that travel at once where a machine tells so many others theirs: all fit into the scratch of a chunk. */
static size_t terms_at_once(const struct folds *f, int others)
{
	const size_t room = (size_t)f->x->n_nodes * NODES_PART_BYTES / dtype_bytes(f->s.t->dtype);
	size_t most = 1, all = 0, fit;

	for (int b = 0; b < f->x->n_nodes; b++) {
		const size_t roots = (size_t)nodes_terms_roots(&f->s, b);

		most = roots > most ? roots : most;
		all += roots;
	}
	fit = room / ((size_t)others * most + all);
	return fit < NODES_ALIGN ? NODES_ALIGN : fit / NODES_ALIGN * NODES_ALIGN;
}

/* Part `at` of the piece, from its begin. */
static struct nodes_slice chunk_of(const struct folds *f, size_t at)
{
	const size_t first = at * f->most;

	return (struct nodes_slice){ first, f->piece.count - first < f->most ? f->piece.count - first : f->most };
}

struct roots { /* of a chunk, on their way */
	struct folds *f;
	size_t at;
	unsigned char *free; /* of the chunk's scratch */
};

static struct roots roots_begin(struct folds *f, size_t at)
{
	return (struct roots){ f, at, nodes_scratch(f->x, at) };
}

/* By node: where the roots of a chunk lie. */
static unsigned char **roots_of(const struct folds *f, size_t at)
{
	return f->x->roots + at % NODES_AHEAD * (size_t)f->x->n_nodes;
}

/* This machine's roots of these elements; to: the rank that adds them, or this one. */
static int tell_roots(struct roots *r, struct nodes_slice part, int to, struct err *err)
{
	struct nodes *x = r->f->x;
	const struct nodes_terms *s = &r->f->s;
	unsigned char *own = r->free;

	nodes_terms_fold(s, x->node, part.first, part.count, own);
	r->free += (size_t)nodes_terms_roots(s, x->node) * part.count * dtype_bytes(s->t->dtype);
	if (to != x->comm.rank)
		return messages_begin(&x->messages, &(struct message_opts){ to, true, own, (size_t)(r->free - own),
				      r->at }, err);
	roots_of(r->f, r->at)[x->node] = own;
	return 0;
}

/* Those of another machine. */
static int hear_roots(struct roots *r, size_t count, int from, struct err *err)
{
	struct nodes *x = r->f->x;
	const int node = x->place[from].node;
	const struct nodes_terms *s = &r->f->s;
	const size_t bytes = (size_t)nodes_terms_roots(s, node) * count * dtype_bytes(s->t->dtype);
	unsigned char *to = r->free;

	roots_of(r->f, r->at)[node] = to;
	r->free += bytes;
	return messages_begin(&x->messages, &(struct message_opts){ from, false, to, bytes, r->at }, err);
}

/* ---- all-reduce: each chunk among the piece's owners on all nodes ---- */

static int begin_chunk(void *user, size_t at, struct err *err)
{
	struct folds *f = user;
	struct nodes *x = f->x;
	const struct nodes_slice chunk = chunk_of(f, at);
	const size_t own = nodes_slice_of(chunk.count, x->node, x->n_nodes).count;
	const int me = x->place[x->comm.rank].local;
	struct roots roots = roots_begin(f, at);
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		struct nodes_slice part = nodes_slice_of(chunk.count, b, x->n_nodes);

		part.first += f->piece.first + chunk.first;
		rc = tell_roots(&roots, part, x->rank[b][me], err);
		if (!rc && b != x->node)
			rc = hear_roots(&roots, own, x->rank[b][me], err);
	}
	return rc;
}

static int add_chunk(void *user, size_t at, struct err *err)
{
	struct folds *f = user;
	struct nodes *x = f->x;
	const size_t each = dtype_bytes(f->s.t->dtype);
	const struct nodes_slice chunk = chunk_of(f, at), own = nodes_slice_of(chunk.count, x->node, x->n_nodes);
	unsigned char *data = (unsigned char *)f->s.t->data + (f->piece.first + chunk.first) * each;
	const struct nodes_chunk sums = { data, chunk.count, f->s.t->dtype, at };
	int rc = nodes_begin_gather(x, &sums, false, err);

	if (rc)
		return rc;
	nodes_terms_add(&f->s, roots_of(f, at), own.count, data + own.first * each);
	return nodes_begin_gather(x, &sums, true, err);
}

static int in_turns(struct folds *f, const struct nodes_turns *t, struct err *err)
{
	return nodes_in_turns(f->x, (f->piece.count + f->most - 1) / f->most, t, err);
}

int nodes_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct nodes *x = nodes_of(c);
	struct folds f = folds_of(x, t);
	const size_t each = dtype_bytes(t->dtype), bytes = (size_t)t->count * each, all = bytes * (size_t)t->room;
	const struct shm_pieces p = { x->piece, all <= SHM_SHOWN_BYTES ? 1 : x->least, bytes };
	const struct leaves own = leaves_part(t->leaves, c->rank, c->world);
	const int me = x->place[c->rank].local;
	int rc = nodes_enter(x, "all-reduce", err);

	for (int i = 0; i < p.n; i++) {
		const struct nodes_slice part = nodes_slice_of((size_t)t->count, i, p.n);

		x->piece[i] = (struct shm_piece){ part.first * each, part.count * each, i };
		f.piece = i == me ? part : f.piece;
	}
	if (!rc)
		rc = shm_show(x->local, t->data, all, x->shown, err);
	x->local->sent += (int64_t)(bytes - f.piece.count * each) * leaves_roots(own.first, own.n, NULL);
	f.most = terms_at_once(&f, x->n_nodes) * (size_t)x->n_nodes;
	if (!rc)
		rc = in_turns(&f, &(struct nodes_turns){ begin_chunk, add_chunk, &f }, err);
	if (!rc)
		rc = shm_share_pieces(x->local, t->data, &p, err);
	return nodes_end(x, rc);
}

/* ---- reduce-scatter: each chunk of every rank's slice ---- */

/* Of other machines' ranks this machine's roots are told, of the own one they are heard. */
static int begin_slices(void *user, size_t at, struct err *err)
{
	struct folds *f = user;
	struct nodes *x = f->x;
	const struct nodes_slice part = chunk_of(f, at);
	const int me = x->place[x->comm.rank].local;
	struct roots roots = roots_begin(f, at);
	int rc = 0;

	for (int r = 0; !rc && r < x->comm.world; r++) {
		const struct nodes_slice its = { (size_t)r * f->piece.count + part.first, part.count };

		if (r == x->comm.rank || (x->place[r].node != x->node && nodes_holder(x, x->node, r) == me))
			rc = tell_roots(&roots, its, r, err);
	}
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = hear_roots(&roots, part.count, x->rank[b][nodes_holder(x, b, x->comm.rank)], err);
	return rc;
}

static int add_slice(void *user, size_t at, struct err *err)
{
	struct folds *f = user;
	const struct nodes_slice part = chunk_of(f, at);
	const size_t own = (size_t)f->x->comm.rank * f->piece.count + part.first;

	(void)err;
	nodes_terms_add(&f->s, roots_of(f, at), part.count,
			(unsigned char *)f->s.t->data + own * dtype_bytes(f->s.t->dtype));
	return 0;
}

int nodes_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct nodes *x = nodes_of(c);
	struct folds f = folds_of(x, t);
	const size_t slice = (size_t)t->count / (size_t)c->world, each = dtype_bytes(t->dtype);
	const struct leaves own = leaves_part(t->leaves, c->rank, c->world);
	int rc = nodes_enter_resting(x, "reduce-scatter", err);

	if (!rc)
		rc = shm_show(x->local, t->data, (size_t)t->count * (size_t)t->room * each, x->shown, err);
	x->local->sent += (int64_t)(slice * each) * (x->local->world - 1) * leaves_roots(own.first, own.n, NULL);
	f.piece.count = slice;
	f.most = terms_at_once(&f, c->world);
	if (!rc)
		rc = in_turns(&f, &(struct nodes_turns){ begin_slices, add_slice, &f }, err);
	if (!rc)
		rc = x->local->ops->barrier(x->local, err); /* the others may still read this rank's terms */
	return nodes_end(x, rc);
}
