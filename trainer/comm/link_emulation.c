/* link_emulation.c: delays the return of each call. All ranks have met in the call by then: the emulated transfer
 * begins when the last rank arrives. */
#include "trainer/comm/link_emulation.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/clock.h"

#define NAP_S 0.05 /* between two checks that the job still runs */

struct emulated_comm {
	struct comm comm;
	struct comm *inner;
	struct link_emulation_link link;
};

static struct emulated_comm *emulated_of(struct comm *c)
{
	return (struct emulated_comm *)c;
}

static int delay_call(struct emulated_comm *h, double bytes, struct err *err)
{
	double until = clock_mono_s() + h->link.latency_s + (h->link.bytes_per_s > 0 ? bytes / h->link.bytes_per_s : 0);
	int rc = 0;

	for (double left; !rc && (left = until - clock_mono_s()) > 0;) {
		clock_sleep_s(fmin(left, NAP_S));
		rc = left > NAP_S ? h->inner->ops->check(h->inner, err) : 0;
	}
	return rc;
}

/* Updates the counters and delays a successful call for the larger of the bytes sent and received. */
static int finish_delayed_call(struct emulated_comm *h, int rc, double received, struct err *err)
{
	double sent = (double)(h->inner->sent - h->comm.sent);

	h->comm.sent = h->inner->sent;
	h->comm.sent_nodes = h->inner->sent_nodes;
	return rc ? rc : delay_call(h, fmax(sent, received), err);
}

static int emulated_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->allreduce(h->inner, data, count, dtype, err), 0, err);
}

static int emulated_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->reduce_scatter(h->inner, data, count_each, dtype, err), 0, err);
}

static int emulated_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->allreduce_terms(h->inner, t, err), 0, err);
}

static int emulated_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->reduce_scatter_terms(h->inner, t, err), 0, err);
}

static int emulated_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->all_gather(h->inner, data, bytes_each, err), 0, err);
}

static int emulated_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->broadcast(h->inner, data, bytes, root, err), (double)bytes, err);
}

static int emulated_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->send(h->inner, data, bytes, to, err), 0, err);
}

static int emulated_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->recv(h->inner, data, bytes, from, err), (double)bytes, err);
}

static int emulated_barrier(struct comm *c, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);

	return finish_delayed_call(h, h->inner->ops->barrier(h->inner, err), 0, err);
}

static int emulated_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct comm *inner = emulated_of(c)->inner;

	return inner->ops->alloc(inner, bytes, ret, err);
}

static int emulated_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct emulated_comm *h = emulated_of(c);
	struct comm *part = NULL;
	int rc = h->inner->ops->split(h->inner, color, &part, err);

	*ret = NULL;
	return rc || !part ? rc : link_emulation_comm(ret, part, &h->link, err);
}

static int emulated_check(struct comm *c, struct err *err)
{
	struct comm *inner = emulated_of(c)->inner;

	return inner->ops->check(inner, err);
}

static void emulated_limit(struct comm *c, double seconds)
{
	struct comm *inner = emulated_of(c)->inner;

	inner->ops->limit(inner, seconds);
}

static void emulated_abort(struct comm *c)
{
	struct comm *inner = emulated_of(c)->inner;

	inner->ops->abort(inner);
}

static void emulated_close(struct comm *c)
{
	if (!c)
		return;
	emulated_of(c)->inner->ops->close(emulated_of(c)->inner);
	free(c);
}

static const struct comm_ops emulated_ops = {
	.name = "held",
	.allreduce = emulated_allreduce,
	.reduce_scatter = emulated_reduce_scatter,
	.allreduce_terms = emulated_allreduce_terms,
	.reduce_scatter_terms = emulated_reduce_scatter_terms,
	.all_gather = emulated_all_gather,
	.broadcast = emulated_broadcast,
	.send = emulated_send,
	.recv = emulated_recv,
	.barrier = emulated_barrier,
	.alloc = emulated_alloc,
	.split = emulated_split,
	.check = emulated_check,
	.limit = emulated_limit,
	.abort = emulated_abort,
	.close = emulated_close,
};

int link_emulation_comm(struct comm **ret, struct comm *c, const struct link_emulation_link *link, struct err *err)
{
	struct emulated_comm *h = calloc(1, sizeof(*h));

	if (!h) {
		c->ops->close(c);
		return err_set(err, ERR_NOMEM, "out of memory: communicator");
	}
	*h = (struct emulated_comm){ .comm = { .ops = &emulated_ops, .rank = c->rank, .world = c->world,
					       .terms = c->terms,
					       .sent = c->sent, .sent_nodes = c->sent_nodes },
				     .inner = c,
				     .link = *link };
	*ret = &h->comm;
	return 0;
}
