/* SPDX-License-Identifier: Apache-2.0 */
/* hier_sums.c: sums over several machines. Every sum is cut into pieces that have one owner on each machine. The ranks
 * of a machine add theirs. The owners of a piece exchange their sums: each adds a part in the order of the machines and
 * sends the result to the others, so all get the same bits. Each owner then shares the piece with the ranks of its
 * machine. Every rank of a machine sends its share of the traffic. */
#include "trainer/comm/hier_base.h"
#include "trainer/comm/sum.h"

#define SMALL_BYTES ((size_t)16384) /* smaller sums have one owner */

struct node_sum { /* the sum of one piece; in a scatter, of each rank's slice */
	struct hier_comm *x;
	unsigned char *data;
	size_t count;
	enum dtype dtype;
};

static int check_node_sum_dtype(enum dtype dtype, struct err *err)
{
	return sum_takes(dtype) ? 0 : err_set(err, ERR_UNSUPPORTED, "cannot sum %s over ranks", dtype_name(dtype));
}

/* Adds the other nodes' sums of chunk or part `at` to this node's, in the order of the nodes. */
static void add_node_parts(const struct node_sum *s, void *sum, size_t count, size_t at)
{
	struct hier_comm *x = s->x;

	for (int b = 0; b < x->n_nodes; b++)
		x->from[b] = b == x->node ? sum : hier_scratch(x, at) + (size_t)b * HIER_PART_BYTES;
	sum_run(&(struct sum_job){ x->from, &sum, x->n_nodes, 1, count, s->dtype, NULL });
}

/* ---- all-reduce ---- */

static size_t chunk_elements(const struct node_sum *s)
{
	return (size_t)s->x->n_nodes * HIER_PART_BYTES / dtype_bytes(s->dtype);
}

static struct hier_chunk sum_chunk_at(const struct node_sum *s, size_t at)
{
	const size_t most = chunk_elements(s), first = at * most;

	return (struct hier_chunk){ s->data + first * dtype_bytes(s->dtype),
				    s->count - first < most ? s->count - first : most, s->dtype, at };
}

/* Receives this rank's part of the chunk from all other owners and sends them theirs. */
static int begin_sum_chunk(void *user, size_t at, struct err *err)
{
	const struct node_sum *s = user;
	struct hier_comm *x = s->x;
	const struct hier_chunk c = sum_chunk_at(s, at);
	const size_t each = dtype_bytes(c.dtype), own = hier_slice_of(c.count, x->node, x->n_nodes).count * each;
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int b = 0; !rc && b < x->n_nodes; b++) {
		const struct hier_slice part = hier_slice_of(c.count, b, x->n_nodes);
		const struct message_opts receive = { x->rank[b][me], false,
						      hier_scratch(x, at) + (size_t)b * HIER_PART_BYTES, own, at },
					  send = { x->rank[b][me], true, c.data + part.first * each, part.count * each,
						   at };

		if (b == x->node)
			continue;
		rc = requests_begin(&x->messages, &receive, err);
		if (!rc)
			rc = requests_begin(&x->messages, &send, err);
	}
	return rc;
}

/* Names the places for results before it adds its own part: a peer that is ahead already sends them. */
static int add_sum_chunk(void *user, size_t at, struct err *err)
{
	const struct node_sum *s = user;
	struct hier_comm *x = s->x;
	const struct hier_chunk c = sum_chunk_at(s, at);
	const struct hier_slice own = hier_slice_of(c.count, x->node, x->n_nodes);
	int rc = hier_begin_gather(x, &c, false, err);

	if (rc)
		return rc;
	add_node_parts(s, c.data + own.first * dtype_bytes(c.dtype), own.count, at);
	return hier_begin_gather(x, &c, true, err);
}

static int sum_between_nodes(struct node_sum *s, struct err *err)
{
	const size_t most = chunk_elements(s);

	return hier_in_turns(s->x, (s->count + most - 1) / most,
			     &(struct hier_turns){ begin_sum_chunk, add_sum_chunk, s }, err);
}

int hier_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	size_t each = dtype_bytes(dtype), bytes = (size_t)count * each;
	struct shm_pieces p = { x->piece, bytes <= SMALL_BYTES ? 1 : x->least, bytes };
	int rc = check_node_sum_dtype(dtype, err), me = x->place[c->rank].local;

	if (rc || !count)
		return rc;
	for (int i = 0; i < p.n; i++) {
		struct hier_slice s = hier_slice_of((size_t)count, i, p.n);

		x->piece[i] = (struct shm_piece){ s.first * each, s.count * each, i };
	}
	rc = hier_enter(x, "all-reduce", err);
	if (!rc)
		rc = shm_reduce_pieces(x->local, data, &p, dtype, err);
	if (!rc && me < p.n)
		rc = sum_between_nodes(&(struct node_sum){ x, (unsigned char *)data + x->piece[me].at,
							   x->piece[me].bytes / each, dtype },
				       err);
	if (!rc)
		rc = shm_share_pieces(x->local, data, &p, err);
	return hier_end(x, rc);
}

/* ---- reduce-scatter ---- */

static struct hier_slice slice_part_at(const struct node_sum *s, size_t at)
{
	const size_t most = HIER_PART_BYTES / dtype_bytes(s->dtype), first = at * most;

	return (struct hier_slice){ first, s->count - first < most ? s->count - first : most };
}

/* Returns where the sums of a part of rank r's slice are stored. */
static unsigned char *slice_data(const struct node_sum *s, int r, struct hier_slice part)
{
	return s->data + ((size_t)r * s->count + part.first) * dtype_bytes(s->dtype);
}

/* Sends this machine's sums for ranks of other machines, and receives theirs for this rank. */
static int begin_sum_slices(void *user, size_t at, struct err *err)
{
	const struct node_sum *s = user;
	struct hier_comm *x = s->x;
	const struct hier_slice part = slice_part_at(s, at);
	const size_t bytes = part.count * dtype_bytes(s->dtype);
	const int me = x->place[x->comm.rank].local;
	int rc = 0;

	for (int r = 0; !rc && r < x->comm.world; r++)
		if (x->place[r].node != x->node && hier_holder(x, x->node, r) == me)
			rc = requests_begin(&x->messages,
					    &(struct message_opts){ r, true, slice_data(s, r, part), bytes, at }, err);
	for (int b = 0; !rc && b < x->n_nodes; b++)
		if (b != x->node)
			rc = requests_begin(&x->messages,
					    &(struct message_opts){ x->rank[b][hier_holder(x, b, x->comm.rank)], false,
						hier_scratch(x, at) + (size_t)b * HIER_PART_BYTES, bytes, at }, err);
	return rc;
}

static int add_sum_slice(void *user, size_t at, struct err *err)
{
	const struct node_sum *s = user;
	const struct hier_slice part = slice_part_at(s, at);

	(void)err;
	add_node_parts(s, slice_data(s, s->x->comm.rank, part), part.count, at);
	return 0;
}

static int scatter_between_nodes(struct node_sum *s, struct err *err)
{
	const size_t most = HIER_PART_BYTES / dtype_bytes(s->dtype);

	return hier_in_turns(s->x, (s->count + most - 1) / most,
			     &(struct hier_turns){ begin_sum_slices, add_sum_slice, s }, err);
}

int hier_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct hier_comm *x = hier_of(c);
	struct shm_pieces p = hier_slices(x, (size_t)count_each * dtype_bytes(dtype));
	int rc = check_node_sum_dtype(dtype, err);

	if (rc || !count_each)
		return rc;
	rc = hier_enter_resting(x, "reduce-scatter", err);
	if (!rc)
		rc = shm_reduce_pieces(x->local, data, &p, dtype, err);
	if (!rc)
		rc = scatter_between_nodes(&(struct node_sum){ x, data, (size_t)count_each, dtype }, err);
	return hier_end(x, rc);
}

/* ---- sums along the reduction tree: what a machine can add alone ----
 *
 * Adjacent ranks of a machine (a run) have adjacent leaves: their terms are added as far as possible without other
 * machines, and the remaining roots travel. A root has the same bits on every machine that adds its terms, so the roots
 * of all runs can be added like those of ranks. */

struct hier_partial_sums { /* the state of one sum */
	const struct comm_terms *t;
	const struct reduction_tree_run *run; /* in rank order */
	const int *node;		      /* machine of each run */
	int n_runs, world;
	unsigned char *const *rank; /* first term of each rank of this machine, in order */
};

static int count_run_roots(const struct hier_partial_sums *s, int run)
{
	int begin[REDUCTION_TREE_ROOTS_MAX + 1];

	return reduction_tree_order_run(s->t->adds, begin, s->t->leaves, s->world, s->run[run]);
}

/* Returns how many roots a machine has. */
static int hier_partial_sums_roots(const struct hier_partial_sums *s, int node)
{
	int n = 0;

	for (int i = 0; i < s->n_runs; i++)
		n += s->node[i] == node ? count_run_roots(s, i) : 0;
	return n;
}

/* Lists where the terms of a run are stored, from element `first` on; local: the place of its first rank on the
 * machine. */
static void list_run_terms(const struct hier_partial_sums *s, struct reduction_tree_run run, int local, size_t first)
{
	const size_t each = dtype_bytes(s->t->dtype), bytes = (size_t)s->t->count * each;
	int n = 0;

	for (int i = 0; i < run.n; i++) {
		const struct reduction_tree l = reduction_tree_part(s->t->leaves, run.first + i, s->world);
		const int roots = reduction_tree_roots(l.first, l.n, NULL);

		for (int k = 0; k < roots; k++)
			s->t->from[n++] = s->rank[local + i] + (size_t)k * bytes + first * each;
	}
}

/* Adds the terms of a run into its roots; returns how many there are. */
static int fold_node_run(const struct hier_partial_sums *s, struct reduction_tree_run run, size_t count,
			 unsigned char *to)
{
	int begin[REDUCTION_TREE_ROOTS_MAX + 1];
	const int roots = reduction_tree_order_run(s->t->adds, begin, s->t->leaves, s->world, run);

	for (int i = 0; i < roots; i++) {
		void *root = to + (size_t)i * count * dtype_bytes(s->t->dtype);

		sum_run(&(struct sum_job){ s->t->from + begin[i], &root, begin[i + 1] - begin[i], 1, count, s->t->dtype,
					   s->t->adds + begin[i] });
	}
	return roots;
}

/* Computes this machine's roots of elements [first, first + count) of every term, one after another. */
static void hier_partial_sums_fold(const struct hier_partial_sums *s, int node, size_t first, size_t count,
				   unsigned char *to)
{
	int local = 0;

	for (int i = 0; i < s->n_runs; i++) {
		if (s->node[i] != node)
			continue;
		list_run_terms(s, s->run[i], local, first);
		to += (size_t)fold_node_run(s, s->run[i], count, to) * count * dtype_bytes(s->t->dtype);
		local += s->run[i].n;
	}
}

/* Returns how many roots of machine `node` come before run i. */
static int count_roots_before(const struct hier_partial_sums *s, int node, int i)
{
	int n = 0;

	for (int k = 0; k < i; k++)
		n += s->node[k] == node ? count_run_roots(s, k) : 0;
	return n;
}

/* Adds all roots of count elements; roots: by machine, as hier_partial_sums_fold left them. */
static void hier_partial_sums_add(const struct hier_partial_sums *s, unsigned char *const *roots, size_t count,
				  void *to)
{
	const size_t bytes = count * dtype_bytes(s->t->dtype);
	int n = 0;

	for (int i = 0; i < s->n_runs; i++) {
		const int node = s->node[i], before = count_roots_before(s, node, i), own = count_run_roots(s, i);

		for (int k = 0; k < own; k++)
			s->t->from[n++] = roots[node] + (size_t)(before + k) * bytes;
	}
	reduction_tree_order_runs(s->t->adds, s->t->leaves, s->world, s->run, s->n_runs);
	sum_run(&(struct sum_job){ s->t->from, &to, n, 1, count, s->t->dtype, s->t->adds });
}

/* ---- sums along the reduction tree: between machines ----
 *
 * The ranks of a machine share their terms, add what can be added without other machines into subtree roots, and send
 * the roots, chunk by chunk, to the rank that adds them all. */

struct leaf_fold { /* a sum of terms in progress */
	struct hier_comm *x;
	struct hier_partial_sums s;
	/* of each term: what this rank and its counterparts on other machines add; of a scatter: one rank's slice */
	struct hier_slice piece;
	size_t most; /* elements of a chunk */
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
		return requests_begin(&x->messages,
				      &(struct message_opts){ to, true, own, (size_t)(r->free - own), r->at }, err);
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
