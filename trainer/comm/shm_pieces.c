/* SPDX-License-Identifier: Apache-2.0 */
/* shm_pieces.c: sums and copies of pieces that have one owner each, window by window of the stage where a buffer is
 * private. */
#include <string.h>

#include "trainer/comm/shm.h"
#include "trainer/comm/shm_area.h"
#include "trainer/comm/sum.h"

/* Returns the part of a piece inside the window of n bytes at `at`; outside of it, bytes is 0. */
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
		stage[r] = shm_stage(a, r);
	for (size_t at = 0; at < p->bytes; at += SHM_PIECE_BYTES) {
		size_t n = p->bytes - at < SHM_PIECE_BYTES ? p->bytes - at : SHM_PIECE_BYTES;
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
	struct shm_call call = shm_describe_call(a, data, p->bytes);
	unsigned char *buffer[SHM_WORLD_MAX];
	bool direct;
	int rc = shm_check_sum(dtype, err);

	call.what = "reduce", call.op = SHM_REDUCE_PIECES, call.count = (int64_t)p->bytes, call.dtype = (uint32_t)dtype;
	if (rc || c->world == 1)
		return rc;
	for (int i = 0; i < p->n; i++)
		c->sent += p->piece[i].owner == c->rank ? 0 : (int64_t)p->piece[i].bytes;
	rc = shm_begin(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return reduce_pieces_staged(a, data, p, dtype, err);
	for (int r = 0; r < a->world; r++)
		buffer[r] = shm_peer_buffer(a, r);
	for (int i = 0; i < p->n; i++)
		if (p->piece[i].owner == a->rank && p->piece[i].bytes)
			sum_piece(buffer, a->world, &p->piece[i], (unsigned char *)data + p->piece[i].at, dtype);
	return shm_area_meet(a, NULL, err);
}

/* Owners copy their pieces to their stages, window by window; then the other ranks copy them from there. */
static int share_pieces_staged(struct shm_area *a, unsigned char *data, const struct shm_pieces *p, struct err *err)
{
	for (size_t at = 0; at < p->bytes; at += SHM_PIECE_BYTES) {
		size_t n = p->bytes - at < SHM_PIECE_BYTES ? p->bytes - at : SHM_PIECE_BYTES;
		int rc = 0;

		for (int give = 1; !rc && give >= 0; give--) {
			for (int i = 0; i < p->n; i++) {
				struct shm_piece part = clip_piece(&p->piece[i], at, n);
				unsigned char *stage = shm_stage(a, part.owner);

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
	struct shm_call call = shm_describe_call(a, data, p->bytes);
	bool direct;
	int rc;

	call.what = "share", call.op = SHM_SHARE_PIECES, call.count = (int64_t)p->bytes;
	if (c->world == 1)
		return 0;
	for (int i = 0; i < p->n; i++)
		c->sent += p->piece[i].owner == c->rank ? (int64_t)p->piece[i].bytes * (c->world - 1) : 0;
	rc = shm_begin(a, &call, &direct, err);
	if (rc)
		return rc;
	if (!direct)
		return share_pieces_staged(a, data, p, err);
	for (int i = 0; i < p->n; i++)
		if (p->piece[i].owner != a->rank)
			memcpy((unsigned char *)data + p->piece[i].at,
			       shm_peer_buffer(a, p->piece[i].owner) + p->piece[i].at, p->piece[i].bytes);
	return shm_area_meet(a, NULL, err);
}

static int show_staged(struct shm_area *a, const void *data, size_t bytes, unsigned char **ret, struct err *err)
{
	if (bytes > SHM_SHOWN_BYTES) {
		shm_area_abort(a, -1);
		return err_set(err, ERR_UNSUPPORTED,
			       "cannot share %zu bytes: more than fits outside the memory of the communicator", bytes);
	}
	memcpy(shm_stage(a, a->rank), data, bytes);
	for (int r = 0; r < a->world; r++)
		ret[r] = shm_stage(a, r);
	return shm_area_meet(a, NULL, err);
}

int shm_show(struct comm *c, void *data, size_t bytes, unsigned char **ret, struct err *err)
{
	struct shm_area *a = shm_area_of(c);
	struct shm_call call = shm_describe_call(a, data, bytes);
	bool direct;
	int rc;

	ret[0] = data;
	if (c->world == 1)
		return 0;
	call.what = "show", call.op = SHM_SHOW, call.count = (int64_t)bytes;
	rc = shm_begin(a, &call, &direct, err);
	if (rc || !direct)
		return rc ? rc : show_staged(a, data, bytes, ret, err);
	for (int r = 0; r < a->world; r++)
		ret[r] = shm_peer_buffer(a, r);
	return 0;
}
