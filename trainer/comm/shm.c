/* SPDX-License-Identifier: Apache-2.0 */
/* shm.c: the communicator of the ranks of one machine. Ranks read and write buffers of alloc directly. Private buffers
 * go through a stage in shared memory, piece by piece. shm_sums.c adds, shm_pieces.c is for several machines. */
#include <stdlib.h>
#include <string.h>

#include "trainer/comm/shm.h"
#include "tracker/mem/mem.h"
#include "trainer/comm/shm_area.h"

static int all_gather_staged(struct shm_area *a, unsigned char *data, size_t bytes_each, struct err *err)
{
	for (size_t at = 0; at < bytes_each; at += SHM_PIECE_BYTES) {
		size_t n = bytes_each - at < SHM_PIECE_BYTES ? bytes_each - at : SHM_PIECE_BYTES;
		int rc;

		memcpy(shm_stage(a, a->rank), data + (size_t)a->rank * bytes_each + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		for (int r = 0; r < a->world; r++)
			if (r != a->rank)
				memcpy(data + (size_t)r * bytes_each + at, shm_stage(a, r), n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int shm_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = shm_describe_call(a, data, (size_t)bytes_each * (size_t)c->world);
	bool direct;
	int rc;

	call.what = "all-gather", call.op = SHM_ALL_GATHER, call.count = bytes_each;
	if (c->world == 1)
		return 0;
	c->sent += bytes_each * (c->world - 1);
	rc = shm_begin(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return all_gather_staged(a, data, (size_t)bytes_each, err);
	for (int r = 0; r < a->world; r++)
		if (r != a->rank)
			memcpy((unsigned char *)data + r * bytes_each, shm_peer_buffer(a, r) + r * bytes_each,
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
	rc = shm_begin(a, &call, &direct, err);
	for (size_t at = 0; !rc && at < bytes; at += SHM_PIECE_BYTES) {
		size_t n = bytes - at < SHM_PIECE_BYTES ? bytes - at : SHM_PIECE_BYTES;

		if (c->rank == root)
			memcpy(shm_stage(a, root), (unsigned char *)data + at, n);
		rc = shm_area_meet(a, NULL, err);
		if (rc)
			return rc;
		if (c->rank != root)
			memcpy((unsigned char *)data + at, shm_stage(a, root), n);
		rc = shm_area_meet(a, NULL, err);
	}
	return rc;
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
		return err_set(err, ERR_USAGE, "rank %d cannot send to rank %d in a job of %d ranks", c->rank, to,
			       c->world);
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
		return err_set(err, ERR_USAGE, "rank %d cannot receive from rank %d in a job of %d ranks", c->rank,
			       from, c->world);
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

	return c->world == 1 ? 0 : shm_begin(shm_area_of(c), &call, &direct, err);
}

static int shm_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	int region;
	int rc = shm_area_grow(a, bytes, &region, err);

	if (!rc)
		*ret = shm_region_part(a, region, c->rank);
	return rc;
}

static const struct comm_ops shm_ops;

static int shm_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct shm *s = mem_zalloc(sizeof(*s));
	bool in = false;
	int rc;

	rc = shm_area_split(&s->area, shm_area_of(c), color, &in, err);
	s->comm = (struct comm){ .ops = &shm_ops, .rank = s->area.rank, .world = s->area.world, .terms = true };
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
	.close = shm_close,
};

int comm_shm_open(struct comm **ret, const struct comm_shm_opts *o, struct err *err)
{
	struct shm *s = mem_zalloc(sizeof(*s));
	int rc;

	s->comm = (struct comm){ .ops = &shm_ops, .rank = o->rank, .world = o->world, .terms = true };
	rc = shm_area_open(&s->area, o, err);
	if (rc) {
		free(s);
		return rc;
	}
	*ret = &s->comm;
	return 0;
}
