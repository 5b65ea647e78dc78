/* SPDX-License-Identifier: Apache-2.0 */
/* shm.c: collectives between the ranks of one machine. Ranks read and write buffers of alloc directly: rank r adds
 * slice r of every rank's buffer and stores the sum in all of them, so an all-reduce is two meetings and no copy.
 * Private buffers go through a stage in shared memory, piece by piece. Every slice is added in rank order, so its bits
 * do not depend on the rank that computes it. */
#include <stdlib.h>
#include <string.h>

#include "trainer/comm/shm.h"
#include "trainer/comm/shm_area.h"
#include "trainer/comm/sum.h"
#include "trainer/graph/reduction_tree.h"

#define SMALL_BYTES ((size_t)16384) /* every rank adds the whole buffer itself: one meeting instead of two */
#define SLICE_ALIGN 16		    /* elements: ranks do not share a cache line of f32 */

struct shm {
	struct comm comm;
	struct shm_area area;
	unsigned small_turn; /* half of the stage for the next small sum */
};

enum shm_op { SHM_ALLREDUCE = 1, SHM_REDUCE_SCATTER, SHM_ALL_GATHER, SHM_BROADCAST, SHM_BARRIER, SHM_REDUCE_PIECES,
	      SHM_SHARE_PIECES, SHM_SHOW };

static struct shm_area *shm_area_of(struct comm *c)
{
	return &((struct shm *)c)->area;
}

/* Returns rank r's part of a buffer from the root's alloc. */
static unsigned char *region_part(const struct shm_area *a, int region, int r)
{
	const struct shm_region *g = &a->root->region[region];

	return g->base + (size_t)a->root_rank[r] * g->stride_bytes;
}

static int find_alloc_region(const struct shm_area *a, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	for (int i = 0; i < a->root->n_regions; i++) {
		const unsigned char *own = region_part(a, i, a->rank);

		if (p >= own && p + bytes <= own + a->root->region[i].stride_bytes)
			return i;
	}
	return -1;
}

static struct shm_call describe_call(const struct shm_area *a, const void *data, size_t bytes)
{
	struct shm_call call = { .region = find_alloc_region(a, data, bytes), .root = -1 };

	if (call.region >= 0)
		call.offset = (uint64_t)((const unsigned char *)data - region_part(a, call.region, a->rank));
	return call;
}

static unsigned char *peer_buffer(const struct shm_area *a, int r)
{
	const struct shm_call *call = shm_area_call(a, r);

	return region_part(a, call->region, r) + call->offset;
}

/* Enters a collective: meets the other ranks and checks that all call the same one. *ret_direct: all buffers are
 * shared. */
static int begin_collective(struct shm_area *a, const struct shm_call *own, bool *ret_direct, struct err *err)
{
	bool direct = true;
	int rc = shm_area_meet(a, own, err);

	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++) {
		const struct shm_call *peer = shm_area_call(a, r);

		direct = direct && peer->region >= 0 && peer->region < a->root->n_regions;
		if (peer->op == own->op && peer->count == own->count && peer->dtype == own->dtype &&
		    peer->root == own->root)
			continue;
		shm_area_abort(a, -1);
		return err_set(err, ERR_PEER,
			       "ranks disagree at meeting %u: rank %d calls %s of %lld elements, rank %d another "
			       "collective or size (%lld)",
			       a->meeting, shm_area_number(a, a->rank), own->what, (long long)own->count,
			       shm_area_number(a, r), (long long)peer->count);
	}
	*ret_direct = direct;
	return 0;
}

struct slice {
	size_t first, count;
};

static struct slice rank_slice(size_t count, int rank, int world)
{
	size_t each = (count + (size_t)world - 1) / (size_t)world;
	size_t first;

	each = (each + SLICE_ALIGN - 1) / SLICE_ALIGN * SLICE_ALIGN;
	first = each * (size_t)rank;
	if (first >= count)
		return (struct slice){ count, 0 };
	return (struct slice){ first, count - first < each ? count - first : each };
}

/* Adds one slice of all buffers and stores the sum in all of them. */
static void sum_slice(unsigned char *const *buffer, int world, struct slice s, enum dtype dtype)
{
	size_t at = s.first * dtype_bytes(dtype);
	const void *from[SHM_WORLD_MAX];
	void *to[SHM_WORLD_MAX];

	for (int r = 0; r < world; r++) {
		from[r] = buffer[r] + at;
		to[r] = buffer[r] + at;
	}
	sum_run(&(struct sum_job){ from, to, world, world, s.count, dtype, NULL });
}

static int allreduce_small(struct shm *s, void *data, size_t bytes, const struct shm_call *call, struct err *err)
{
	struct shm_area *a = &s->area;
	size_t half = (s->small_turn++ & 1) * SMALL_BYTES;
	const void *from[SHM_WORLD_MAX];
	void *to[1] = { data };
	bool direct;
	int rc;

	memcpy(shm_area_stage(a, a->rank) + half, data, bytes);
	rc = begin_collective(a, call, &direct, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++)
		from[r] = shm_area_stage(a, r) + half;
	sum_run(&(struct sum_job){ from, to, a->world, 1, (size_t)call->count, (enum dtype)call->dtype, NULL });
	return 0;
}

/* Returns the part of the stage after the two halves for small sums. */
static unsigned char *piece_stage(const struct shm_area *a, int r)
{
	return shm_area_stage(a, r) + 2 * SMALL_BYTES;
}

#define PIECE_BYTES (SHM_STAGE_BYTES - 2 * SMALL_BYTES)

static int allreduce_staged(struct shm_area *a, unsigned char *data, size_t bytes, enum dtype dtype, struct err *err)
{
	unsigned char *stage[SHM_WORLD_MAX];

	for (int r = 0; r < a->world; r++)
		stage[r] = piece_stage(a, r);
	for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
		size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
		int rc;

		memcpy(stage[a->rank], data + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		sum_slice(stage, a->world, rank_slice(n / dtype_bytes(dtype), a->rank, a->world), dtype);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		memcpy(data + at, stage[a->rank], n);
	}
	return 0;
}

static int check_shm_sum_dtype(enum dtype dtype, struct err *err)
{
	return sum_takes(dtype) ? 0 : err_set(err, ERR_UNSUPPORTED, "cannot sum %s in shared memory",
					      dtype_name(dtype));
}

/* Returns the bytes that leave the rank: its slices for the other ranks and the sum of its own slice; of a small sum,
 * its whole buffer. */
static size_t allreduce_sent_bytes(const struct comm *c, size_t count, enum dtype dtype)
{
	const size_t bytes = count * dtype_bytes(dtype), others = (size_t)c->world - 1;
	const size_t own = rank_slice(count, c->rank, c->world).count * dtype_bytes(dtype);

	return bytes <= SMALL_BYTES ? bytes * others : bytes - own + own * others;
}

/* Small buffers are copied to the stage, shared buffers are added in place, private ones go through the stage. */
static int shm_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	size_t bytes = (size_t)count * dtype_bytes(dtype);
	struct shm_call call = describe_call(a, data, bytes);
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc = check_shm_sum_dtype(dtype, err);

	call.what = "allreduce", call.op = SHM_ALLREDUCE, call.count = count, call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	c->sent += (int64_t)allreduce_sent_bytes(c, (size_t)count, dtype);
	if (bytes <= SMALL_BYTES)
		return allreduce_small((struct shm *)c, data, bytes, &call, err);
	rc = begin_collective(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return allreduce_staged(a, data, bytes, dtype, err);
	for (int r = 0; r < a->world; r++)
		buffer[r] = peer_buffer(a, r);
	sum_slice(buffer, a->world, rank_slice((size_t)count, a->rank, a->world), dtype);
	return shm_area_meet(a, NULL, err);
}

/* Copies pieces of all slices to the stage. Rank r adds its pieces from there straight into its private slice. */
static int reduce_scatter_staged(struct shm_area *a, unsigned char *data, size_t bytes_each, enum dtype dtype,
				 struct err *err)
{
	size_t piece = PIECE_BYTES / (size_t)a->world / 64 * 64;
	const void *from[SHM_WORLD_MAX];
	void *to[1];

	for (size_t at = 0; at < bytes_each; at += piece) {
		size_t n = bytes_each - at < piece ? bytes_each - at : piece;
		int rc;

		for (int r = 0; r < a->world; r++)
			memcpy(piece_stage(a, a->rank) + (size_t)r * piece, data + (size_t)r * bytes_each + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		for (int r = 0; r < a->world; r++)
			from[r] = piece_stage(a, r) + (size_t)a->rank * piece;
		to[0] = data + (size_t)a->rank * bytes_each + at;
		sum_run(&(struct sum_job){ from, to, a->world, 1, n / dtype_bytes(dtype), dtype, NULL });
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Adds this rank's slice of all shared buffers, or goes through the stage. */
static int shm_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	size_t bytes_each = (size_t)count_each * dtype_bytes(dtype);
	struct shm_call call = describe_call(a, data, bytes_each * (size_t)c->world);
	const void *from[SHM_WORLD_MAX];
	void *to[1] = { (unsigned char *)data + bytes_each * (size_t)c->rank };
	bool direct;
	int rc = check_shm_sum_dtype(dtype, err);

	call.what = "reduce-scatter", call.op = SHM_REDUCE_SCATTER, call.count = count_each,
	call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	c->sent += (int64_t)bytes_each * (c->world - 1);
	rc = begin_collective(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return reduce_scatter_staged(a, data, bytes_each, dtype, err);
	for (int r = 0; r < a->world; r++)
		from[r] = peer_buffer(a, r) + bytes_each * (size_t)c->rank;
	sum_run(&(struct sum_job){ from, to, a->world, 1, (size_t)count_each, dtype, NULL });
	return shm_area_meet(a, NULL, err);
}

/* ---- sums along the reduction tree ---- */

/* Returns how many roots the leaves of one rank have. */
static int count_rank_roots(const struct comm_terms *t, int rank, int world)
{
	const struct reduction_tree l = reduction_tree_part(t->leaves, rank, world);

	return reduction_tree_roots(l.first, l.n, NULL);
}

/* Lists all terms and their order; buffer: the first term of each rank. Returns how many there are. */
static int list_terms(const struct comm_terms *t, unsigned char *const *buffer, size_t at, int world)
{
	const size_t bytes = (size_t)t->count * dtype_bytes(t->dtype);
	int n = 0;

	for (int r = 0; r < world; r++)
		for (int k = 0; k < count_rank_roots(t, r, world); k++)
			t->from[n++] = buffer[r] + (size_t)k * bytes + at;
	return reduction_tree_order(t->adds, t->leaves, world);
}

static int allreduce_terms_small(struct shm *s, const struct comm_terms *t, const struct shm_call *call,
				 struct err *err)
{
	struct shm_area *a = &s->area;
	const size_t bytes = (size_t)t->count * dtype_bytes(t->dtype);
	size_t half = (s->small_turn++ & 1) * SMALL_BYTES;
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc, n;

	memcpy(shm_area_stage(a, a->rank) + half, t->data, bytes * (size_t)count_rank_roots(t, a->rank, a->world));
	rc = begin_collective(a, call, &direct, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++)
		buffer[r] = shm_area_stage(a, r) + half;
	n = list_terms(t, buffer, 0, a->world);
	sum_run(&(struct sum_job){ t->from, (void *const[]){ t->data }, n, 1, (size_t)t->count, t->dtype, t->adds });
	return 0;
}

/* Enters a sum of terms, which must be in shared buffers. */
static int begin_terms(struct shm_area *a, const struct comm_terms *t, struct shm_call *call, struct err *err)
{
	bool direct;
	int rc = check_shm_sum_dtype(t->dtype, err);

	if (!rc)
		rc = begin_collective(a, call, &direct, err);
	if (rc || direct)
		return rc;
	shm_area_abort(a, -1);
	return err_set(err, ERR_UNSUPPORTED, "%s: the terms must be in memory of the communicator", call->what);
}

/* Each rank adds its slice of all terms and stores the sum in the first term of every rank. */
static int shm_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	const size_t each = dtype_bytes(t->dtype), bytes = (size_t)t->count * each;
	const struct slice s = rank_slice((size_t)t->count, c->rank, c->world);
	struct shm_call call = describe_call(a, t->data, bytes * (size_t)t->room);
	unsigned char *buffer[SHM_WORLD_MAX];
	void *to[SHM_WORLD_MAX];
	const int own = count_rank_roots(t, c->rank, c->world);
	int rc, n;

	call.what = "allreduce", call.op = SHM_ALLREDUCE, call.count = t->count, call.dtype = (uint32_t)t->dtype;
	if (bytes * (size_t)t->room <= SMALL_BYTES) {
		c->sent += (int64_t)bytes * own * (c->world - 1);
		return allreduce_terms_small((struct shm *)c, t, &call, err);
	}
	c->sent += (int64_t)((bytes - s.count * each) * (size_t)own + s.count * each * (size_t)(c->world - 1));
	rc = begin_terms(a, t, &call, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++) {
		buffer[r] = peer_buffer(a, r);
		to[r] = buffer[r] + s.first * each;
	}
	n = list_terms(t, buffer, s.first * each, a->world);
	sum_run(&(struct sum_job){ t->from, to, n, a->world, s.count, t->dtype, t->adds });
	return shm_area_meet(a, NULL, err);
}

static int shm_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	const size_t bytes = (size_t)t->count * dtype_bytes(t->dtype), slice = bytes / (size_t)c->world;
	struct shm_call call = describe_call(a, t->data, bytes * (size_t)t->room);
	unsigned char *buffer[SHM_WORLD_MAX];
	void *to = (unsigned char *)t->data + slice * (size_t)c->rank;
	int rc, n;

	call.what = "reduce-scatter", call.op = SHM_REDUCE_SCATTER, call.count = t->count,
	call.dtype = (uint32_t)t->dtype;
	c->sent += (int64_t)(bytes - slice) * count_rank_roots(t, c->rank, c->world);
	rc = begin_terms(a, t, &call, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++)
		buffer[r] = peer_buffer(a, r);
	n = list_terms(t, buffer, slice * (size_t)c->rank, a->world);
	sum_run(&(struct sum_job){ t->from, &to, n, 1, (size_t)t->count / (size_t)c->world, t->dtype, t->adds });
	return shm_area_meet(a, NULL, err);
}

static int all_gather_staged(struct shm_area *a, unsigned char *data, size_t bytes_each, struct err *err)
{
	for (size_t at = 0; at < bytes_each; at += PIECE_BYTES) {
		size_t n = bytes_each - at < PIECE_BYTES ? bytes_each - at : PIECE_BYTES;
		int rc;

		memcpy(piece_stage(a, a->rank), data + (size_t)a->rank * bytes_each + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		for (int r = 0; r < a->world; r++)
			if (r != a->rank)
				memcpy(data + (size_t)r * bytes_each + at, piece_stage(a, r), n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int shm_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = describe_call(a, data, (size_t)bytes_each * (size_t)c->world);
	bool direct;
	int rc;

	call.what = "all-gather", call.op = SHM_ALL_GATHER, call.count = bytes_each;
	if (c->world == 1)
		return 0;
	c->sent += bytes_each * (c->world - 1);
	rc = begin_collective(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return all_gather_staged(a, data, (size_t)bytes_each, err);
	for (int r = 0; r < a->world; r++)
		if (r != a->rank)
			memcpy((unsigned char *)data + r * bytes_each, peer_buffer(a, r) + r * bytes_each,
			       (size_t)bytes_each);
	return shm_area_meet(a, NULL, err);
}

/* Copies through the root's stage, piece by piece. */
static int shm_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = {
		.what = "broadcast", .op = SHM_BROADCAST, .count = (int64_t)bytes, .root = root, .region = -1
	};
	bool direct;
	int rc;

	if (c->world == 1)
		return 0;
	c->sent += c->rank == root ? (int64_t)bytes * (c->world - 1) : 0;
	rc = begin_collective(a, &call, &direct, err);
	for (size_t at = 0; !rc && at < bytes; at += PIECE_BYTES) {
		size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;

		if (c->rank == root)
			memcpy(piece_stage(a, root), (unsigned char *)data + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		if (c->rank != root)
			memcpy((unsigned char *)data + at, piece_stage(a, root), n);
		rc = shm_area_meet(a, NULL, err);
	}
	return rc;
}

/* ---- pieces ---- */

/* Returns the part of a piece inside the window of n bytes at `at`; bytes is 0 when there is none. */
static struct shm_piece clip_piece(const struct shm_piece *p, size_t at, size_t n)
{
	size_t from = p->at > at ? p->at : at;
	size_t end = p->at + p->bytes < at + n ? p->at + p->bytes : at + n;

	return (struct shm_piece){ from, end > from ? end - from : 0, p->owner };
}

static void sum_piece(unsigned char *const *buffer, int world, const struct shm_piece *p, void *to, enum dtype dtype)
{
	const void *from[SHM_WORLD_MAX];

	for (int r = 0; r < world; r++)
		from[r] = buffer[r] + p->at;
	sum_run(&(struct sum_job){ from, &to, world, 1, p->bytes / dtype_bytes(dtype), dtype, NULL });
}

/* Copies all buffers to the stages, window by window. The owner of a piece adds its part of the window into its
 * buffer. */
static int reduce_pieces_staged(struct shm_area *a, unsigned char *data, const struct shm_pieces *p, enum dtype dtype,
				struct err *err)
{
	unsigned char *stage[SHM_WORLD_MAX];

	for (int r = 0; r < a->world; r++)
		stage[r] = piece_stage(a, r);
	for (size_t at = 0; at < p->bytes; at += PIECE_BYTES) {
		size_t n = p->bytes - at < PIECE_BYTES ? p->bytes - at : PIECE_BYTES;
		int rc;

		memcpy(stage[a->rank], data + at, n);
		rc = shm_area_meet(a, NULL, err);
		for (int i = 0; !rc && i < p->n; i++) {
			struct shm_piece part = clip_piece(&p->piece[i], at, n);
			void *to = data + part.at;

			if (part.owner != a->rank || !part.bytes)
				continue;
			part.at -= at;
			sum_piece(stage, a->world, &part, to, dtype);
		}
		if (!rc)
			rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

int shm_reduce_pieces(struct comm *c, void *data, const struct shm_pieces *p, enum dtype dtype, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = describe_call(a, data, p->bytes);
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc = check_shm_sum_dtype(dtype, err);

	call.what = "reduce", call.op = SHM_REDUCE_PIECES, call.count = (int64_t)p->bytes, call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	for (int i = 0; i < p->n; i++)
		c->sent += p->piece[i].owner == c->rank ? 0 : (int64_t)p->piece[i].bytes;
	rc = begin_collective(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return reduce_pieces_staged(a, data, p, dtype, err);
	for (int r = 0; r < a->world; r++)
		buffer[r] = peer_buffer(a, r);
	for (int i = 0; i < p->n; i++)
		if (p->piece[i].owner == a->rank && p->piece[i].bytes)
			sum_piece(buffer, a->world, &p->piece[i], (unsigned char *)data + p->piece[i].at, dtype);
	return shm_area_meet(a, NULL, err);
}

/* Owners copy their pieces to their stages, window by window; then the other ranks copy them from there. */
static int share_pieces_staged(struct shm_area *a, unsigned char *data, const struct shm_pieces *p, struct err *err)
{
	for (size_t at = 0; at < p->bytes; at += PIECE_BYTES) {
		size_t n = p->bytes - at < PIECE_BYTES ? p->bytes - at : PIECE_BYTES;
		int rc = 0;

		for (int give = 1; !rc && give >= 0; give--) {
			for (int i = 0; i < p->n; i++) {
				struct shm_piece part = clip_piece(&p->piece[i], at, n);
				unsigned char *stage = piece_stage(a, part.owner);

				if (!part.bytes)
					continue;
				if (give && part.owner == a->rank)
					memcpy(stage + (part.at - at), data + part.at, part.bytes);
				else if (!give && part.owner != a->rank)
					memcpy(data + part.at, stage + (part.at - at), part.bytes);
			}
			rc = shm_area_meet(a, NULL, err);
		}
		if (rc)
			return rc;
	}
	return 0;
}

int shm_share_pieces(struct comm *c, void *data, const struct shm_pieces *p, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = describe_call(a, data, p->bytes);
	bool direct;
	int rc;

	call.what = "share", call.op = SHM_SHARE_PIECES, call.count = (int64_t)p->bytes;
	if (c->world == 1)
		return 0;
	for (int i = 0; i < p->n; i++)
		c->sent += p->piece[i].owner == c->rank ? (int64_t)p->piece[i].bytes * (c->world - 1) : 0;
	rc = begin_collective(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return share_pieces_staged(a, data, p, err);
	for (int i = 0; i < p->n; i++)
		if (p->piece[i].owner != a->rank)
			memcpy((unsigned char *)data + p->piece[i].at,
			       peer_buffer(a, p->piece[i].owner) + p->piece[i].at, p->piece[i].bytes);
	return shm_area_meet(a, NULL, err);
}

static int show_staged(struct shm_area *a, const void *data, size_t bytes, unsigned char **ret, struct err *err)
{
	if (bytes > SHM_SHOWN_BYTES) {
		shm_area_abort(a, -1);
		return err_set(err, ERR_UNSUPPORTED,
			       "cannot share %zu bytes: more than fits outside the memory of the communicator", bytes);
	}
	memcpy(piece_stage(a, a->rank), data, bytes);
	for (int r = 0; r < a->world; r++)
		ret[r] = piece_stage(a, r);
	return shm_area_meet(a, NULL, err);
}

int shm_show(struct comm *c, void *data, size_t bytes, unsigned char **ret, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = describe_call(a, data, bytes);
	bool direct;
	int rc;

	ret[0] = data;
	if (c->world == 1)
		return 0;
	call.what = "show", call.op = SHM_SHOW, call.count = (int64_t)bytes;
	rc = begin_collective(a, &call, &direct, err);
	if (rc || !direct)
		return rc ? rc : show_staged(a, data, bytes, ret, err);
	for (int r = 0; r < a->world; r++)
		ret[r] = peer_buffer(a, r);
	return 0;
}

void shm_while_waiting(struct comm *c, void (*fn)(void *user), void *user)
{
	struct shm_area *a = shm_area_of(c);

	a->idle_fn = fn;
	a->idle_user = user;
}

int shm_check(struct comm *c, struct err *err)
{
	return shm_area_check(shm_area_of(c), err);
}

/* Sends through the pair's mailbox, which has room for one part at a time. */
static int shm_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_mail *m;

	if (to < 0 || to >= c->world || to == c->rank)
		return err_set(err, ERR_USAGE,
			       "rank %d cannot send to rank %d in a job of %d ranks", c->rank, to, c->world);
	m = shm_area_mail(a, c->rank, to);
	c->sent += (int64_t)bytes;
	for (size_t at = 0; at < bytes; at += SHM_MAIL_BYTES) {
		size_t n = bytes - at < SHM_MAIL_BYTES ? bytes - at : SHM_MAIL_BYTES;
		uint32_t sent = atomic_load(&m->sent.value), taken;

		while ((taken = atomic_load(&m->taken.value)) != sent) {
			int rc = shm_area_wait(a, &m->taken, taken, to, err);

			if (rc)
				return rc;
		}
		memcpy(m->bytes, (const unsigned char *)data + at, n);
		shm_area_count(&m->sent);
	}
	return 0;
}

/* Receives the parts from the pair's mailbox. */
static int shm_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_mail *m;

	if (from < 0 || from >= c->world || from == c->rank)
		return err_set(err, ERR_USAGE,
			       "rank %d cannot receive from rank %d in a job of %d ranks", c->rank, from, c->world);
	m = shm_area_mail(a, from, c->rank);
	for (size_t at = 0; at < bytes; at += SHM_MAIL_BYTES) {
		size_t n = bytes - at < SHM_MAIL_BYTES ? bytes - at : SHM_MAIL_BYTES;
		uint32_t taken = atomic_load(&m->taken.value), sent;

		while ((sent = atomic_load(&m->sent.value)) == taken) {
			int rc = shm_area_wait(a, &m->sent, sent, from, err);

			if (rc)
				return rc;
		}
		memcpy((unsigned char *)data + at, m->bytes, n);
		shm_area_count(&m->taken);
	}
	return 0;
}

static int shm_barrier(struct comm *c, struct err *err)
{
	struct shm_call call = { .what = "barrier", .op = SHM_BARRIER, .root = -1, .region = -1 };
	bool direct;

	return c->world == 1 ? 0 : begin_collective(shm_area_of(c), &call, &direct, err);
}

static int shm_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	int region;
	int rc = shm_area_grow(a, bytes, &region, err);

	if (!rc)
		*ret = region_part(a, region, c->rank);
	return rc;
}

static const struct comm_ops shm_ops;

static int shm_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct shm *s = calloc(1, sizeof(*s));
	bool in = false;
	int rc;

	if (!s)
		return err_nomem(err, "communicator of a group");
	rc = shm_area_split(&s->area, shm_area_of(c), color, &in, err);
	s->comm = (struct comm){ .ops = &shm_ops, .rank = s->area.rank, .world = s->area.world,
				 .terms = true };
	if (rc || !in)
		free(s);
	if (!rc)
		*ret = in ? &s->comm : NULL;
	return rc;
}

static void shm_limit(struct comm *c, double seconds)
{
	shm_area_of(c)->timeout_s = seconds;
}

static void shm_abort(struct comm *c)
{
	shm_area_abort(shm_area_of(c), -1);
}

/* Not of a root: a rank that fails while the others wait in its collectives must end them. */
static bool shm_outlive(struct comm *c)
{
	struct shm_area *a = shm_area_of(c);

	a->outlives = a->root != a;
	return a->outlives;
}

static bool shm_decide(struct comm *c, int64_t turn, bool value)
{
	_Atomic uint64_t *word = &shm_area_of(c)->head->decision;
	uint64_t seen = atomic_load(word);

	while (seen >> 1 != (uint64_t)turn)
		if (atomic_compare_exchange_weak(word, &seen, (uint64_t)turn << 1 | value))
			return value;
	return seen & 1;
}

static void shm_close(struct comm *c)
{
	if (!c)
		return;
	shm_area_close(shm_area_of(c));
	free(c);
}

static const struct comm_ops shm_ops = {
	.name = "shm",
	.allreduce = shm_allreduce,
	.reduce_scatter = shm_reduce_scatter,
	.allreduce_terms = shm_allreduce_terms,
	.reduce_scatter_terms = shm_reduce_scatter_terms,
	.all_gather = shm_all_gather,
	.broadcast = shm_broadcast,
	.send = shm_send,
	.recv = shm_recv,
	.barrier = shm_barrier,
	.alloc = shm_alloc,
	.split = shm_split,
	.check = shm_check,
	.limit = shm_limit,
	.abort = shm_abort,
	.outlive = shm_outlive,
	.decide = shm_decide,
	.close = shm_close,
};

int comm_shm_open(struct comm **ret, const struct comm_shm_opts *o, struct err *err)
{
	struct shm *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(err, "communicator");
	s->comm = (struct comm){ .ops = &shm_ops, .rank = o->rank, .world = o->world, .terms = true };
	rc = shm_area_open(&s->area, o, err);
	if (rc) {
		free(s);
		return rc;
	}
	*ret = &s->comm;
	return 0;
}
