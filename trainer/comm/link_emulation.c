/* link_emulation.c: waits behind each call, when all ranks have met in it: a link's time begins once the last one has come. */
#include "trainer/comm/link_emulation.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/clock.h"

#define NAP_S 0.05 /* after so long it is looked whether the job goes on */

struct held {
	struct comm comm;
	struct comm *inner;
	struct link_emulation_link link;
};

static struct held *held_of(struct comm *c)
{
	return (struct held *)c;
}

static int hold(struct held *h, double bytes, struct err *err)
{
	double until = clock_mono_s() + h->link.latency_s + (h->link.bytes_per_s > 0 ? bytes / h->link.bytes_per_s : 0);
	int rc = 0;

	for (double left; !rc && (left = until - clock_mono_s()) > 0;) {
		clock_sleep_s(fmin(left, NAP_S));
		rc = left > NAP_S ? h->inner->ops->check(h->inner, err) : 0;
	}
	return rc;
}

/* What a call came to, and received beside what it sent. */
static int done(struct held *h, int rc, double received, struct err *err)
{
	double sent = (double)(h->inner->sent - h->comm.sent);

	h->comm.sent = h->inner->sent;
	h->comm.sent_nodes = h->inner->sent_nodes;
	return rc ? rc : hold(h, fmax(sent, received), err);
}

static int held_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->allreduce(h->inner, data, count, dtype, err), 0, err);
}

static int held_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->reduce_scatter(h->inner, data, count_each, dtype, err), 0, err);
}

static int held_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->allreduce_terms(h->inner, t, err), 0, err);
}

static int held_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->reduce_scatter_terms(h->inner, t, err), 0, err);
}

static int held_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->all_gather(h->inner, data, bytes_each, err), 0, err);
}

static int held_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->broadcast(h->inner, data, bytes, root, err), (double)bytes, err);
}

static int held_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->send(h->inner, data, bytes, to, err), 0, err);
}

static int held_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->recv(h->inner, data, bytes, from, err), (double)bytes, err);
}

static int held_barrier(struct comm *c, struct err *err)
{
	struct held *h = held_of(c);

	return done(h, h->inner->ops->barrier(h->inner, err), 0, err);
}

static int held_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct comm *inner = held_of(c)->inner;

	return inner->ops->alloc(inner, bytes, ret, err);
}

static int held_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct held *h = held_of(c);
	struct comm *part = NULL;
	int rc = h->inner->ops->split(h->inner, color, &part, err);

	*ret = NULL;
	return rc || !part ? rc : link_emulation_comm(ret, part, &h->link, err);
}

static int held_check(struct comm *c, struct err *err)
{
	struct comm *inner = held_of(c)->inner;

	return inner->ops->check(inner, err);
}

static void held_limit(struct comm *c, double seconds)
{
	struct comm *inner = held_of(c)->inner;

	inner->ops->limit(inner, seconds);
}

static void held_abort(struct comm *c)
{
	struct comm *inner = held_of(c)->inner;

	inner->ops->abort(inner);
}

static void held_close(struct comm *c)
{
	if (!c)
		return;
	held_of(c)->inner->ops->close(held_of(c)->inner);
	free(c);
}

static const struct comm_ops held_ops = {
	.name = "held",
	.allreduce = held_allreduce,
	.reduce_scatter = held_reduce_scatter,
	.allreduce_terms = held_allreduce_terms,
	.reduce_scatter_terms = held_reduce_scatter_terms,
	.all_gather = held_all_gather,
	.broadcast = held_broadcast,
	.send = held_send,
	.recv = held_recv,
	.barrier = held_barrier,
	.alloc = held_alloc,
	.split = held_split,
	.check = held_check,
	.limit = held_limit,
	.abort = held_abort,
	.close = held_close,
};

int link_emulation_comm(struct comm **ret, struct comm *c, const struct link_emulation_link *link, struct err *err)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h) {
		c->ops->close(c);
		return err_set(err, ERR_NOMEM, "out of memory: communicator");
	}
	*h = (struct held){ .comm = { .ops = &held_ops, .rank = c->rank, .world = c->world, .terms = c->terms,
				      .sent = c->sent, .sent_nodes = c->sent_nodes },
			    .inner = c,
			    .link = *link };
	*ret = &h->comm;
	return 0;
}
