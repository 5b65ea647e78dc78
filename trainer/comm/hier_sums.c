/* hier_sums.c: sums over several machines. Every sum is cut into pieces that have one owner on each machine. The ranks
 * of a machine add theirs. The owners of a piece exchange their sums: each adds a part in the order of the machines and
 * sends the result to the others, so all get the same bits. Each owner then shares the piece with the ranks of its
 * machine. Every rank of a machine sends its share of the traffic. */
#include "trainer/comm/hier_base.h"
#include "trainer/comm/sum.h"

#define SMALL_BYTES ((size_t)16384) /* smaller sums have one owner */

struct node_sum { /* of a piece; of a scatter: of each rank's slice */
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
			      &(struct hier_turns){ begin_sum_chunk, add_sum_chunk, s },
			      err);
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
							   x->piece[me].bytes / each,
							   dtype }, err);
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
					    &(struct message_opts){ r, true, slice_data(s, r, part), bytes,
						at }, err);
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
			      &(struct hier_turns){ begin_sum_slices, add_sum_slice, s },
			      err);
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
