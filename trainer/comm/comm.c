/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c: communicators without a transport: of one rank, and around another communicator. */
#include "trainer/comm/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"

/* ---- one rank: every collective is complete before it starts ---- */

struct self {
	struct comm comm;
	void *blocks[64]; /* allocated by alloc */
	int n_blocks;
};

static int self_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	(void)c, (void)data, (void)count, (void)dtype, (void)err;
	return 0;
}

static int self_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	(void)c, (void)data, (void)bytes_each, (void)err;
	return 0;
}

static int self_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	(void)c, (void)data, (void)bytes, (void)root, (void)err;
	return 0;
}

static int self_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	(void)c, (void)data, (void)bytes;
	return err_set(err, ERR_UNSUPPORTED, "cannot send to rank %d: there is only rank 0", to);
}

static int self_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	(void)c, (void)data, (void)bytes;
	return err_set(err, ERR_UNSUPPORTED, "cannot receive from rank %d: there is only rank 0", from);
}

static int self_barrier(struct comm *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static int self_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct self *s = (struct self *)c;
	size_t rounded = round_up_bytes(bytes, 64);
	void *block;

	if (s->n_blocks == sizeof(s->blocks) / sizeof(s->blocks[0]))
		return err_set(err, ERR_LIMIT, "more than %d communication buffers", s->n_blocks);
	block = aligned_alloc(64, rounded ? rounded : 64);
	if (!block)
		return err_set(err, ERR_NOMEM, "out of memory: communication buffer of %zu bytes", bytes);
	memset(block, 0, rounded);
	s->blocks[s->n_blocks++] = block;
	*ret = block;
	return 0;
}

static int self_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	(void)c;
	(void)err;
	*ret = color >= 0 ? comm_self_new() : NULL;
	return 0;
}

static int self_check(struct comm *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static void self_abort(struct comm *c)
{
	(void)c;
}

static void self_limit(struct comm *c, double seconds)
{
	(void)c, (void)seconds;
}

static void self_close(struct comm *c)
{
	struct self *s = (struct self *)c;

	if (!s)
		return;
	while (s->n_blocks)
		free(s->blocks[--s->n_blocks]);
	free(s);
}

static const struct comm_ops self_ops = {
	.name = "self",
	.allreduce = self_allreduce,
	.reduce_scatter = self_allreduce,
	.all_gather = self_all_gather,
	.broadcast = self_broadcast,
	.send = self_send,
	.recv = self_recv,
	.barrier = self_barrier,
	.alloc = self_alloc,
	.split = self_split,
	.check = self_check,
	.limit = self_limit,
	.abort = self_abort,
	.close = self_close,
};

struct comm *comm_self_new(void)
{
	struct self *s = mem_zalloc(sizeof(*s));

	s->comm = (struct comm){ .ops = &self_ops, .rank = 0, .world = 1 };
	return &s->comm;
}

/* ---- a communicator around another one ---- */

int comm_wrap_run(struct comm_wrap *w, const struct comm_call *call, struct err *err)
{
	struct comm *c = w->inner;
	const struct comm_ops *ops = c->ops;
	int rc = 0;

	switch (call->op) {
	case COMM_ALLREDUCE:
		rc = call->terms ? ops->allreduce_terms(c, call->terms, err)
				 : ops->allreduce(c, call->data, call->count, (enum dtype)call->dtype, err);
		break;
	case COMM_REDUCE_SCATTER:
		rc = call->terms ? ops->reduce_scatter_terms(c, call->terms, err)
				 : ops->reduce_scatter(c, call->data, call->count, (enum dtype)call->dtype, err);
		break;
	case COMM_ALL_GATHER:
		rc = ops->all_gather(c, call->data, call->count, err);
		break;
	case COMM_BROADCAST:
		rc = ops->broadcast(c, call->data, call->bytes, call->peer, err);
		break;
	case COMM_SEND:
		rc = ops->send(c, call->data, call->bytes, call->peer, err);
		break;
	case COMM_RECV:
		rc = ops->recv(c, call->data, call->bytes, call->peer, err);
		break;
	case COMM_BARRIER:
		rc = ops->barrier(c, err);
		break;
	}
	w->comm.sent = c->sent;
	w->comm.sent_nodes = c->sent_nodes;
	return rc;
}

static struct comm_wrap *wrap_of(struct comm *c)
{
	return (struct comm_wrap *)c;
}

static int wrap_call(struct comm *c, const struct comm_call *call, struct err *err)
{
	return wrap_of(c)->ops->around(wrap_of(c), call, err);
}

static int wrap_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_ALLREDUCE, data, count, (int)dtype,
						 (size_t)count * dtype_bytes(dtype), -1, NULL }, err);
}

static int wrap_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	const size_t bytes = (size_t)count_each * (size_t)c->world * dtype_bytes(dtype);

	return wrap_call(c, &(struct comm_call){ COMM_REDUCE_SCATTER, data, count_each, (int)dtype, bytes, -1, NULL },
			 err);
}

static int wrap_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_ALLREDUCE, t->data, t->count, (int)t->dtype,
						 (size_t)t->count * dtype_bytes(t->dtype), -1, t }, err);
}

static int wrap_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_REDUCE_SCATTER, t->data, t->count, (int)t->dtype,
						 (size_t)t->count * dtype_bytes(t->dtype), -1, t }, err);
}

static int wrap_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_ALL_GATHER, data, bytes_each, -1,
						 (size_t)bytes_each * (size_t)c->world, -1, NULL }, err);
}

static int wrap_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_BROADCAST, data, (int64_t)bytes, -1, bytes, root, NULL }, err);
}

static int wrap_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	void *from = (void *)(uintptr_t)data;

	return wrap_call(c, &(struct comm_call){ COMM_SEND, from, (int64_t)bytes, -1, bytes, to, NULL }, err);
}

static int wrap_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_RECV, data, (int64_t)bytes, -1, bytes, from, NULL }, err);
}

static int wrap_barrier(struct comm *c, struct err *err)
{
	return wrap_call(c, &(struct comm_call){ COMM_BARRIER, NULL, 0, -1, 0, -1, NULL }, err);
}

static int wrap_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct comm *inner = wrap_of(c)->inner;

	return inner->ops->alloc(inner, bytes, ret, err);
}

static int wrap_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct comm_wrap *w = wrap_of(c);
	struct comm *part = NULL;
	int rc = w->inner->ops->split(w->inner, color, &part, err);

	if (!rc)
		*ret = part ? w->ops->split(w, part) : NULL;
	return rc;
}

static int wrap_check(struct comm *c, struct err *err)
{
	struct comm *inner = wrap_of(c)->inner;

	return inner->ops->check(inner, err);
}

static void wrap_limit(struct comm *c, double seconds)
{
	struct comm *inner = wrap_of(c)->inner;

	inner->ops->limit(inner, seconds);
}

static void wrap_abort(struct comm *c)
{
	struct comm *inner = wrap_of(c)->inner;

	inner->ops->abort(inner);
}

static void wrap_close(struct comm *c)
{
	if (!c)
		return;
	wrap_of(c)->inner->ops->close(wrap_of(c)->inner);
	free(c);
}

static const struct comm_ops wrap_ops = {
	.name = "wrap",
	.allreduce = wrap_allreduce,
	.reduce_scatter = wrap_reduce_scatter,
	.allreduce_terms = wrap_allreduce_terms,
	.reduce_scatter_terms = wrap_reduce_scatter_terms,
	.all_gather = wrap_all_gather,
	.broadcast = wrap_broadcast,
	.send = wrap_send,
	.recv = wrap_recv,
	.barrier = wrap_barrier,
	.alloc = wrap_alloc,
	.split = wrap_split,
	.check = wrap_check,
	.limit = wrap_limit,
	.abort = wrap_abort,
	.close = wrap_close,
};

struct comm_wrap *comm_wrap_new(size_t bytes, struct comm *c, const struct comm_wrap_ops *ops)
{
	struct comm_wrap *w = mem_zalloc(bytes);

	*w = (struct comm_wrap){ .comm = { .ops = &wrap_ops, .rank = c->rank, .world = c->world, .terms = c->terms,
					   .sent = c->sent, .sent_nodes = c->sent_nodes },
				 .inner = c,
				 .ops = ops };
	return w;
}

struct comm_wrap *comm_wrap_of(struct comm *c, const struct comm_wrap_ops *ops)
{
	return c && c->ops == &wrap_ops && wrap_of(c)->ops == ops ? wrap_of(c) : NULL;
}

/* ---- an emulated slower link ----
 *
 * Delays the return of each call. All ranks have met in the call by then: the emulated transfer begins when the last
 * rank arrives. */

#define NAP_S 0.05 /* between two checks that the job still runs */

struct emulated_comm {
	struct comm_wrap wrap;
	struct comm_slow_link link;
};

static int delay_call(const struct emulated_comm *h, double bytes, struct err *err)
{
	double until = clock_mono_s() + h->link.latency_s + (h->link.bytes_per_s > 0 ? bytes / h->link.bytes_per_s : 0);
	int rc = 0;

	for (double left; !rc && (left = until - clock_mono_s()) > 0;) {
		clock_sleep_s(fmin(left, NAP_S));
		rc = left > NAP_S ? h->wrap.inner->ops->check(h->wrap.inner, err) : 0;
	}
	return rc;
}

/* Delays a successful call for the larger of the bytes sent and received. */
static int run_delayed(struct comm_wrap *w, const struct comm_call *call, struct err *err)
{
	const double received = call->op == COMM_BROADCAST || call->op == COMM_RECV ? (double)call->bytes : 0;
	const int64_t before = w->comm.sent;
	int rc = comm_wrap_run(w, call, err);

	return rc ? rc : delay_call((struct emulated_comm *)w, fmax((double)(w->comm.sent - before), received), err);
}

static struct comm *split_delayed(struct comm_wrap *w, struct comm *part)
{
	return comm_emulate_link(part, &((struct emulated_comm *)w)->link);
}

struct comm *comm_emulate_link(struct comm *c, const struct comm_slow_link *link)
{
	static const struct comm_wrap_ops ops = { run_delayed, split_delayed };
	struct emulated_comm *h = (struct emulated_comm *)comm_wrap_new(sizeof(*h), c, &ops);

	h->link = *link;
	return &h->wrap.comm;
}
