/* SPDX-License-Identifier: Apache-2.0 */
/* shm_sums.c: sums of the ranks of one machine. Rank r adds slice r of every rank's buffer and stores the sum in all of
 * them, so an all-reduce is two meetings and no copy. Every slice is added in rank order, or along the reduction tree,
 * so its bits do not depend on the rank that computes it. */
#include <string.h>

#include "tracker/base/round.h"
#include "trainer/comm/shm_area.h"
#include "trainer/comm/sum.h"
#include "trainer/graph/reduction_tree.h"

#define SLICE_ALIGN 16 /* elements: ranks do not share a cache line of f32 */

struct slice {
	size_t first, count;
};

static struct slice rank_slice(size_t count, int rank, int world)
{
	size_t each = (count + (size_t)world - 1) / (size_t)world;
	size_t first;

	each = round_up_bytes(each, SLICE_ALIGN);
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
	size_t half = (s->small_turn++ & 1) * SHM_SMALL_BYTES;
	const void *from[SHM_WORLD_MAX];
	void *to[1] = { data };
	bool direct;
	int rc;

	memcpy(shm_area_stage(a, a->rank) + half, data, bytes);
	rc = shm_begin(a, call, &direct, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++)
		from[r] = shm_area_stage(a, r) + half;
	sum_run(&(struct sum_job){ from, to, a->world, 1, (size_t)call->count, (enum dtype)call->dtype, NULL });
	return 0;
}

static int allreduce_staged(struct shm_area *a, unsigned char *data, size_t bytes, enum dtype dtype, struct err *err)
{
	unsigned char *stage[SHM_WORLD_MAX];

	for (int r = 0; r < a->world; r++)
		stage[r] = shm_stage(a, r);
	for (size_t at = 0; at < bytes; at += SHM_PIECE_BYTES) {
		size_t n = bytes - at < SHM_PIECE_BYTES ? bytes - at : SHM_PIECE_BYTES;
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

int shm_check_sum(enum dtype dtype, struct err *err)
{
	return sum_takes(dtype) ? 0
				: err_set(err, ERR_UNSUPPORTED, "cannot sum %s in shared memory", dtype_name(dtype));
}

/* Returns the bytes that leave the rank: its slices for the other ranks and the sum of its own slice; of a small sum,
 * its whole buffer. */
static size_t allreduce_sent_bytes(const struct comm *c, size_t count, enum dtype dtype)
{
	const size_t bytes = count * dtype_bytes(dtype), others = (size_t)c->world - 1;
	const size_t own = rank_slice(count, c->rank, c->world).count * dtype_bytes(dtype);

	return bytes <= SHM_SMALL_BYTES ? bytes * others : bytes - own + own * others;
}

/* Small buffers are copied to the stage, shared buffers are added in place, private ones go through the stage. */
int shm_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	size_t bytes = (size_t)count * dtype_bytes(dtype);
	struct shm_call call = shm_describe_call(a, data, bytes);
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc = shm_check_sum(dtype, err);

	call.what = "allreduce", call.op = SHM_ALLREDUCE, call.count = count, call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	c->sent += (int64_t)allreduce_sent_bytes(c, (size_t)count, dtype);
	if (bytes <= SHM_SMALL_BYTES)
		return allreduce_small((struct shm *)c, data, bytes, &call, err);
	rc = shm_begin(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return allreduce_staged(a, data, bytes, dtype, err);
	for (int r = 0; r < a->world; r++)
		buffer[r] = shm_peer_buffer(a, r);
	sum_slice(buffer, a->world, rank_slice((size_t)count, a->rank, a->world), dtype);
	return shm_area_meet(a, NULL, err);
}

/* Copies pieces of all slices to the stage. Rank r adds its pieces from there straight into its private slice. */
static int reduce_scatter_staged(struct shm_area *a, unsigned char *data, size_t bytes_each, enum dtype dtype,
				 struct err *err)
{
	size_t piece = SHM_PIECE_BYTES / (size_t)a->world / 64 * 64;
	const void *from[SHM_WORLD_MAX];
	void *to[1];

	for (size_t at = 0; at < bytes_each; at += piece) {
		size_t n = bytes_each - at < piece ? bytes_each - at : piece;
		int rc;

		for (int r = 0; r < a->world; r++)
			memcpy(shm_stage(a, a->rank) + (size_t)r * piece, data + (size_t)r * bytes_each + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		for (int r = 0; r < a->world; r++)
			from[r] = shm_stage(a, r) + (size_t)a->rank * piece;
		to[0] = data + (size_t)a->rank * bytes_each + at;
		sum_run(&(struct sum_job){ from, to, a->world, 1, n / dtype_bytes(dtype), dtype, NULL });
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Adds this rank's slice of all shared buffers, or goes through the stage. */
int shm_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	size_t bytes_each = (size_t)count_each * dtype_bytes(dtype);
	struct shm_call call = shm_describe_call(a, data, bytes_each * (size_t)c->world);
	const void *from[SHM_WORLD_MAX];
	void *to[1] = { (unsigned char *)data + bytes_each * (size_t)c->rank };
	bool direct;
	int rc = shm_check_sum(dtype, err);

	call.what = "reduce-scatter", call.op = SHM_REDUCE_SCATTER, call.count = count_each,
	call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	c->sent += (int64_t)bytes_each * (c->world - 1);
	rc = shm_begin(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return reduce_scatter_staged(a, data, bytes_each, dtype, err);
	for (int r = 0; r < a->world; r++)
		from[r] = shm_peer_buffer(a, r) + bytes_each * (size_t)c->rank;
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
	size_t half = (s->small_turn++ & 1) * SHM_SMALL_BYTES;
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc, n;

	memcpy(shm_area_stage(a, a->rank) + half, t->data, bytes * (size_t)count_rank_roots(t, a->rank, a->world));
	rc = shm_begin(a, call, &direct, err);
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
	int rc = shm_check_sum(t->dtype, err);

	if (!rc)
		rc = shm_begin(a, call, &direct, err);
	if (rc || direct)
		return rc;
	shm_area_abort(a, -1);
	return err_set(err, ERR_UNSUPPORTED, "%s: the terms must be in memory of the communicator", call->what);
}

/* Each rank adds its slice of all terms and stores the sum in the first term of every rank. */
int shm_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	const size_t each = dtype_bytes(t->dtype), bytes = (size_t)t->count * each;
	const struct slice s = rank_slice((size_t)t->count, c->rank, c->world);
	struct shm_call call = shm_describe_call(a, t->data, bytes * (size_t)t->room);
	unsigned char *buffer[SHM_WORLD_MAX];
	void *to[SHM_WORLD_MAX];
	const int own = count_rank_roots(t, c->rank, c->world);
	int rc, n;

	call.what = "allreduce", call.op = SHM_ALLREDUCE, call.count = t->count, call.dtype = (uint32_t)t->dtype;
	if (bytes * (size_t)t->room <= SHM_SMALL_BYTES) {
		c->sent += (int64_t)bytes * own * (c->world - 1);
		return allreduce_terms_small((struct shm *)c, t, &call, err);
	}
	c->sent += (int64_t)((bytes - s.count * each) * (size_t)own + s.count * each * (size_t)(c->world - 1));
	rc = begin_terms(a, t, &call, err);
	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++) {
		buffer[r] = shm_peer_buffer(a, r);
		to[r] = buffer[r] + s.first * each;
	}
	n = list_terms(t, buffer, s.first * each, a->world);
	sum_run(&(struct sum_job){ t->from, to, n, a->world, s.count, t->dtype, t->adds });
	return shm_area_meet(a, NULL, err);
}

int shm_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	const size_t bytes = (size_t)t->count * dtype_bytes(t->dtype), slice = bytes / (size_t)c->world;
	struct shm_call call = shm_describe_call(a, t->data, bytes * (size_t)t->room);
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
		buffer[r] = shm_peer_buffer(a, r);
	n = list_terms(t, buffer, slice * (size_t)c->rank, a->world);
	sum_run(&(struct sum_job){ t->from, &to, n, 1, (size_t)t->count / (size_t)c->world, t->dtype, t->adds });
	return shm_area_meet(a, NULL, err);
}
