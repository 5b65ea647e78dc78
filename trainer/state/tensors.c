/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c: moves parts of tensors between ranks. A request carries the tensor's name, because programs of the ranks
 * may have other batch sizes, and their tensors other numbers. */
#include "trainer/state/tensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/ops/cast/float16.h"

enum request_kind { REQUEST_END, REQUEST_GET, REQUEST_GIVE };

struct request { /* no pointers: rank 0 sends it to the others */
	enum request_kind kind;
	struct strategy_part part;
	char name[256];
	struct err failure; /* failure of rank 0, with REQUEST_END */
};

struct tensors tensors_of(const struct prepared *p, const struct rank *r)
{
	return (struct tensors){ .prepared = p, .comm = rank_comm(r) };
}

struct tensors tensors_over(const struct tensors *s, struct comm *c)
{
	struct tensors over = *s;

	if (c)
		over.comm = c;
	return over;
}

/* ---- ownership ---- */

struct strategy_part tensors_all(const struct tensor *t)
{
	return (struct strategy_part){ 0, shape_count(&t->shape) };
}

size_t tensors_bytes(const struct tensor *t)
{
	return (size_t)shape_count(&t->shape) * dtype_bytes(t->dtype);
}

struct strategy_part tensors_held(const struct tensors *s, const struct tensor *t, int rank)
{
	return prepared_held(s->prepared, t, rank);
}

static struct strategy_part intersect_parts(struct strategy_part a, struct strategy_part b)
{
	struct strategy_part c = { a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end };

	return c.begin < c.end ? c : (struct strategy_part){ 0, 0 };
}

/* Returns true if rank 0 owns everything. */
static bool tensors_at_root(const struct tensors *s)
{
	const struct tensor *t;
	int at = 0;

	if (!s->prepared->opts.strategy->holds)
		return true;
	while ((t = prepared_next(s->prepared, &at))) {
		struct strategy_part held = tensors_held(s, t, 0);

		if (held.begin > 0 || held.end < shape_count(&t->shape))
			return false;
	}
	return true;
}

struct held_piece { /* a piece of a tensor */
	int rank;   /* rank that holds the piece; -1: none */
	struct strategy_part part;
};

/* Finds the lowest rank that holds the first element of part, and how much of part it holds. */
static struct held_piece find_holder(const struct tensors *s, const struct tensor *t, struct strategy_part part)
{
	for (int r = 0; r < s->comm->world; r++) {
		struct strategy_part held = intersect_parts(tensors_held(s, t, r), part);

		if (held.begin == part.begin && held.end > held.begin)
			return (struct held_piece){ r, held };
	}
	return (struct held_piece){ -1, { 0, 0 } };
}

/* ---- this rank's memory ---- */

/* Returns this rank's tensor, or its gradient where those are saved. */
static const struct tensor *find_own_tensor(const struct tensors *s, const struct tensor *t)
{
	const struct tensor *own = s->grads ? graph_find(s->grads, t->name) : prepared_own(s->prepared, t->name);

	return s->grads && own->grad ? own->grad : own;
}

/* Returns the address of element i of t: a rank's memory of a tensor begins with the first element that it owns. */
static void *element_address(const struct tensors *s, const struct tensor *t, int64_t i)
{
	int64_t first = tensors_held(s, t, s->comm->rank).begin;
	const struct tensor *own = find_own_tensor(s, t);
	const size_t skipped = (size_t)(i - first) * dtype_bytes(own->dtype);

	if (s->copy)
		return (unsigned char *)s->copy + prepared_copy_at(s->prepared, t->name) + skipped;
	return (char *)prepared_address(s->prepared, own) + skipped;
}

static int copy_tensor_bytes(const struct tensors *s, void *to, const void *from, size_t bytes, struct err *err)
{
	return prepared_copy(s->prepared, to, from, bytes, err);
}

/* Reads elements of this rank in the type of t. A gradient in 16 bits is read to the end of `to`, then widened from its
 * first element on. */
static int read_elements(const struct tensors *s, const struct tensor *t, struct strategy_part part, void *to,
			 struct err *err)
{
	const struct tensor *own = find_own_tensor(s, t);
	const int64_t n = part.end - part.begin;
	const size_t bytes = (size_t)n * dtype_bytes(own->dtype), more = (size_t)n * dtype_bytes(t->dtype) - bytes;
	int rc = copy_tensor_bytes(s, (char *)to + more, element_address(s, t, part.begin), bytes, err);

	for (int64_t i = 0; !rc && own->dtype != t->dtype && i < n; i++)
		float_put(to, t->dtype, i, float_get((char *)to + more, own->dtype, i));
	return rc;
}

static size_t tensor_part_bytes(const struct tensor *t, struct strategy_part part)
{
	return (size_t)(part.end - part.begin) * dtype_bytes(t->dtype);
}

int tensors_put(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		struct err *err)
{
	struct strategy_part mine = intersect_parts(tensors_held(s, t, s->comm->rank), part);
	size_t skipped = (size_t)(mine.begin - part.begin) * dtype_bytes(t->dtype);

	if (mine.end <= mine.begin)
		return 0;
	return copy_tensor_bytes(s, element_address(s, t, mine.begin), (const char *)from + skipped,
				 tensor_part_bytes(t, mine), err);
}

/* ---- requests ---- */

static int send_request(const struct tensors *s, enum request_kind kind, const struct tensor *t,
			struct strategy_part part, struct err *err)
{
	struct request q = { .kind = kind, .part = part };

	if ((size_t)snprintf(q.name, sizeof(q.name), "%s", t->name) >= sizeof(q.name))
		return err_set(err, ERR_LIMIT, "%.200s…: the name is too long", t->name);
	return s->comm->ops->broadcast(s->comm, &q, sizeof(q), 0, err);
}

static int get_piece(const struct tensors *s, const struct tensor *t, struct held_piece piece, void *to,
		     struct err *err)
{
	const size_t bytes = tensor_part_bytes(t, piece.part);

	if (piece.rank == s->comm->rank)
		return read_elements(s, t, piece.part, to, err);
	return s->comm->ops->recv(s->comm, to, bytes, piece.rank, err);
}

/* Copies the pieces in the order of their elements. The other ranks are asked once, for all that is left. */
int tensors_get(const struct tensors *s, const struct tensor *t, struct strategy_part part, void *to, struct err *err)
{
	struct strategy_part rest = part;
	bool asked = false;
	int rc = 0;

	while (!rc && rest.begin < rest.end) {
		const struct held_piece piece = find_holder(s, t, rest);
		char *at = (char *)to + tensor_part_bytes(t, (struct strategy_part){ part.begin, rest.begin });

		if (piece.rank < 0)
			return err_set(err, ERR_UNSUPPORTED, "%s: no rank holds element %lld", t->name,
				       (long long)rest.begin);
		if (piece.rank > 0 && !asked)
			rc = send_request(s, REQUEST_GET, t, rest, err);
		asked |= piece.rank > 0;
		if (!rc)
			rc = get_piece(s, t, piece, at, err);
		rest.begin = piece.part.end;
	}
	return rc;
}

/* Sends rank 0 the pieces that it takes from this rank, in the order in which it takes them. */
static int answer_get(const struct tensors *s, const struct tensor *t, struct strategy_part rest, struct err *err)
{
	int rc = 0;

	while (!rc && rest.begin < rest.end) {
		const struct held_piece piece = find_holder(s, t, rest);
		const size_t bytes = tensor_part_bytes(t, piece.part);
		void *own;

		if (piece.rank < 0)
			return 0; /* rank 0 reports it */
		rest.begin = piece.part.end;
		if (piece.rank != s->comm->rank)
			continue;
		own = malloc(bytes);
		if (!own)
			return err_set(err, ERR_NOMEM, "out of memory: %s", t->name);
		rc = read_elements(s, t, piece.part, own, err);
		if (!rc)
			rc = s->comm->ops->send(s->comm, own, bytes, 0, err);
		free(own);
	}
	return rc;
}

/* Broadcasts the whole part, so that any strategy can keep what its rank owns. from: NULL on all ranks but 0. */
static int broadcast_part(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
			  struct err *err)
{
	const size_t bytes = tensor_part_bytes(t, part);
	void *data = malloc(bytes ? bytes : 1);
	int rc;

	if (!data)
		return err_set(err, ERR_NOMEM, "out of memory: %s", t->name);
	if (from)
		memcpy(data, from, bytes);
	rc = s->comm->ops->broadcast(s->comm, data, bytes, 0, err);
	if (!rc)
		rc = tensors_put(s, t, part, data, err);
	free(data);
	return rc;
}

int tensors_give(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		 struct err *err)
{
	int rc;

	if (s->comm->world == 1)
		return tensors_put(s, t, part, from, err);
	rc = send_request(s, REQUEST_GIVE, t, part, err);
	return rc ? rc : broadcast_part(s, t, part, from, err);
}

int tensors_end(const struct tensors *s, const struct err *failure, struct err *err)
{
	struct request q = { .kind = REQUEST_END };

	if (s->comm->world == 1)
		return 0;
	if (failure)
		q.failure = *failure;
	return s->comm->ops->broadcast(s->comm, &q, sizeof(q), 0, err);
}

int tensors_follow(const struct tensors *s, struct err *err)
{
	struct request q;
	int rc = 0;

	while (!rc && s->comm->world > 1) {
		const struct tensor *t;

		rc = s->comm->ops->broadcast(s->comm, &q, sizeof(q), 0, err);
		if (!rc && q.kind == REQUEST_END)
			return q.failure.code ? err_set(err, q.failure.code, "%s", q.failure.text) : 0;
		t = rc ? NULL : graph_find(s->prepared->model, q.name);
		if (!rc && !t)
			rc = err_set(err, ERR_UNSUPPORTED,
				     "rank 0 requests a tensor that this rank does not have: %.200s", q.name);
		else if (!rc)
			rc = q.kind == REQUEST_GET ? answer_get(s, t, q.part, err)
						   : broadcast_part(s, t, q.part, NULL, err);
	}
	return rc;
}

int tensors_helped(const struct tensors *s, int rc, struct err *err)
{
	struct err ignored = ERR_INIT;
	int ended = tensors_at_root(s) ? 0 : tensors_end(s, NULL, rc ? &ignored : err);

	return rc ? rc : ended;
}

int tensors_help(const struct tensors *s, struct err *err)
{
	return tensors_at_root(s) ? 0 : tensors_follow(s, err);
}

/* ---- statistics ---- */

const struct tensor *tensors_average(const struct tensors *s, const struct tensor *t)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.ema", t->name);
	return graph_find(s->prepared->model, name);
}

static int share_one(const struct tensors *s, const struct tensor *t, struct err *err)
{
	void *whole = malloc(tensors_bytes(t) + 1);
	int rc = whole ? tensors_get(s, t, tensors_all(t), whole, err)
		       : err_set(err, ERR_NOMEM, "out of memory: %s", t->name);

	if (!rc)
		rc = tensors_give(s, t, tensors_all(t), whole, err);
	free(whole);
	return rc;
}

int tensors_share_stats(const struct tensors *s, struct err *err)
{
	const bool averages = s->prepared->opts.optimizer.ema_decay > 0; /* evaluation reads averages of statistics */
	const struct tensor *t;
	int rc = 0, at = 0;

	if (s->comm->rank > 0)
		return tensors_follow(s, err);
	while (!rc && (t = prepared_next(s->prepared, &at))) {
		const struct tensor *average = averages ? tensors_average(s, t) : NULL;

		if (t->kind != TENSOR_STAT)
			continue;
		rc = share_one(s, t, err);
		if (!rc && average)
			rc = share_one(s, average, err);
	}
	return rc ? rc : tensors_end(s, NULL, err);
}

/* ---- the snapshot ---- */

static unsigned char *snapshot_base(const struct prepared *p)
{
	return p->slab[SPACE_PINNED] + p->snapshot_offset;
}

/* Copies the private slab in one piece where possible; else the parts that the rank owns, one after another. */
int snapshot_take(const struct tensors *s, struct err *err)
{
	const struct prepared *p = s->prepared;
	const struct tensor *t;
	int rc = 0, at = 0;

	if (prepared_in_one_piece(p))
		return prepared_copy(p, snapshot_base(p), p->slab[SPACE_PRIVATE], p->snapshot_bytes, err);
	while (!rc && (t = prepared_next(p, &at))) {
		struct strategy_part held = prepared_held(p, t, s->comm->rank);
		size_t bytes = (size_t)(held.end - held.begin) * dtype_bytes(t->dtype);

		if (bytes)
			rc = prepared_get(p, prepared_own(p, t->name),
					  snapshot_base(p) + prepared_copy_at(p, t->name), bytes,
					  err);
	}
	return rc;
}

struct tensors snapshot_tensors(const struct tensors *s, struct comm *c)
{
	return (struct tensors){ .prepared = s->prepared, .comm = c, .copy = snapshot_base(s->prepared) };
}

const void *snapshot_peek(const struct tensors *s, const struct tensor *t)
{
	return snapshot_base(s->prepared) + prepared_copy_at(s->prepared, t->name);
}
