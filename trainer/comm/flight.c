/* flight.c: wraps a communicator and records its calls; runs the heartbeat thread. */
#include "trainer/comm/flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"

struct watched {
	struct comm comm;
	struct comm *inner;
	struct flight *flight;
	char group[16];
	const char *node;
};

static const struct comm_ops watched_ops;

static struct watched *watched_of(struct comm *c)
{
	return (struct watched *)c;
}

static struct flight_entry *record_call(struct watched *w, const char *op, int dtype, size_t bytes)
{
	struct flight *f = w->flight;
	struct flight_entry *e = &f->entry[atomic_fetch_add(&f->n, 1) % FLIGHT_ENTRIES];

	*e = (struct flight_entry){ .dtype = dtype, .bytes = (int64_t)bytes, .step = atomic_load(&f->step),
				    .start_s = clock_mono_s() };
	snprintf(e->op, sizeof(e->op), "%s", op);
	snprintf(e->node, sizeof(e->node), "%s", w->node ? w->node : "");
	snprintf(e->group, sizeof(e->group), "%s", w->group);
	return e;
}

static int finish_call(struct watched *w, struct flight_entry *e, int rc)
{
	w->comm.sent = w->inner->sent;
	w->comm.sent_nodes = w->inner->sent_nodes;
	if (!rc)
		e->end_s = clock_mono_s();
	return rc;
}

static int watched_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "all-reduce", (int)dtype, (size_t)count * dtype_bytes(dtype));

	return finish_call(w, e, w->inner->ops->allreduce(w->inner, data, count, dtype, err));
}

static int watched_reduce_scatter(struct comm *c, void *data, int64_t count_each, enum dtype dtype, struct err *err)
{
	struct watched *w = watched_of(c);
	size_t bytes = (size_t)count_each * (size_t)c->world * dtype_bytes(dtype);
	struct flight_entry *e = record_call(w, "reduce-scatter", (int)dtype, bytes);

	return finish_call(w, e, w->inner->ops->reduce_scatter(w->inner, data, count_each, dtype, err));
}

static int watched_allreduce_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "all-reduce", (int)t->dtype, (size_t)t->count * dtype_bytes(t->dtype));

	return finish_call(w, e, w->inner->ops->allreduce_terms(w->inner, t, err));
}

static int watched_reduce_scatter_terms(struct comm *c, const struct comm_terms *t, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "reduce-scatter", (int)t->dtype,
					     (size_t)t->count * dtype_bytes(t->dtype));

	return finish_call(w, e, w->inner->ops->reduce_scatter_terms(w->inner, t, err));
}

static int watched_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "all-gather", -1, (size_t)bytes_each * (size_t)c->world);

	return finish_call(w, e, w->inner->ops->all_gather(w->inner, data, bytes_each, err));
}

static int watched_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "broadcast", -1, bytes);

	return finish_call(w, e, w->inner->ops->broadcast(w->inner, data, bytes, root, err));
}

static int watched_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "send", -1, bytes);

	return finish_call(w, e, w->inner->ops->send(w->inner, data, bytes, to, err));
}

static int watched_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "receive", -1, bytes);

	return finish_call(w, e, w->inner->ops->recv(w->inner, data, bytes, from, err));
}

static int watched_barrier(struct comm *c, struct err *err)
{
	struct watched *w = watched_of(c);
	struct flight_entry *e = record_call(w, "barrier", -1, 0);

	return finish_call(w, e, w->inner->ops->barrier(w->inner, err));
}

static int watched_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct comm *inner = watched_of(c)->inner;

	return inner->ops->alloc(inner, bytes, ret, err);
}

static int watched_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	struct watched *w = watched_of(c);
	struct comm *part = NULL;
	char group[16];
	int rc = w->inner->ops->split(w->inner, color, &part, err);

	if (rc || !part) {
		if (!rc)
			*ret = NULL;
		return rc;
	}
	snprintf(group, sizeof(group), "%d ranks", part->world);
	return flight_comm(ret, part, w->flight, part->world == c->world ? w->group : group, err);
}

static int watched_check(struct comm *c, struct err *err)
{
	struct comm *inner = watched_of(c)->inner;

	return inner->ops->check(inner, err);
}

static void watched_limit(struct comm *c, double seconds)
{
	struct comm *inner = watched_of(c)->inner;

	inner->ops->limit(inner, seconds);
}

static void watched_abort(struct comm *c)
{
	struct comm *inner = watched_of(c)->inner;

	inner->ops->abort(inner);
}

static void watched_close(struct comm *c)
{
	if (!c)
		return;
	watched_of(c)->inner->ops->close(watched_of(c)->inner);
	free(c);
}

static const struct comm_ops watched_ops = {
	.name = "watched",
	.allreduce = watched_allreduce,
	.reduce_scatter = watched_reduce_scatter,
	.allreduce_terms = watched_allreduce_terms,
	.reduce_scatter_terms = watched_reduce_scatter_terms,
	.all_gather = watched_all_gather,
	.broadcast = watched_broadcast,
	.send = watched_send,
	.recv = watched_recv,
	.barrier = watched_barrier,
	.alloc = watched_alloc,
	.split = watched_split,
	.check = watched_check,
	.limit = watched_limit,
	.abort = watched_abort,
	.close = watched_close,
};

int flight_comm(struct comm **ret, struct comm *c, struct flight *f, const char *group, struct err *err)
{
	struct watched *w = calloc(1, sizeof(*w));

	if (!w) {
		c->ops->close(c);
		return err_set(err, ERR_NOMEM, "out of memory: communicator");
	}
	*w = (struct watched){ .comm = { .ops = &watched_ops, .rank = c->rank, .world = c->world,
				       .terms = c->terms },
			       .inner = c,
			       .flight = f };
	snprintf(w->group, sizeof(w->group), "%s", group);
	*ret = &w->comm;
	return 0;
}

void flight_node(struct comm *c, const char *node)
{
	if (c && c->ops == &watched_ops)
		watched_of(c)->node = node;
}

/* ---- reading the record ---- */

bool flight_last(const struct flight *f, unsigned i, struct flight_entry *ret)
{
	uint32_t n = atomic_load(&f->n);

	if (i >= n || i >= FLIGHT_ENTRIES)
		return false;
	*ret = f->entry[(n - 1 - i) % FLIGHT_ENTRIES];
	ret->op[sizeof(ret->op) - 1] = ret->node[sizeof(ret->node) - 1] = ret->group[sizeof(ret->group) - 1] = '\0';
	return true;
}

void flight_describe(const struct flight_entry *e, double now_s, char ret[FLIGHT_LINE_BYTES])
{
	bool typed = e->dtype >= 0 && e->dtype <= DTYPE_U8;
	int n = snprintf(ret, FLIGHT_LINE_BYTES, "%s%s%s (%s%s%lld bytes, group of %s, step %lld), ", e->op,
			 e->node[0] ? " of " : "", e->node, typed ? dtype_name((enum dtype)e->dtype) : "",
			 typed ? ", " : "", (long long)e->bytes, e->group, (long long)e->step);

	if (n < 0 || n >= FLIGHT_LINE_BYTES)
		return;
	if (e->end_s > 0)
		snprintf(ret + n, FLIGHT_LINE_BYTES - (size_t)n, "done %.1f s ago after %.4f s", now_s - e->end_s,
			 e->end_s - e->start_s);
	else
		snprintf(ret + n, FLIGHT_LINE_BYTES - (size_t)n, "in progress for %.1f s", now_s - e->start_s);
}

/* ---- the heartbeat ---- */

struct flight_pulse {
	struct flight *flight;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool quit;
};

static void *run_pulse(void *arg)
{
	struct flight_pulse *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->quit) {
		atomic_fetch_add(&p->flight->beats, 1);
		cond_wait_until(&p->wake, &p->lock, clock_mono_s() + FLIGHT_BEAT_S);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int flight_pulse_start(struct flight_pulse **ret, struct flight *f, struct err *err)
{
	struct flight_pulse *p = calloc(1, sizeof(*p));
	sigset_t all, before;
	int rc;

	if (!p)
		return err_set(err, ERR_NOMEM, "out of memory: heartbeat");
	p->flight = f;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->wake);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&p->thread, NULL, run_pulse, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		free(p);
		return err_set_errno(err, rc, "cannot start a thread");
	}
	*ret = p;
	return 0;
}

void flight_pulse_stop(struct flight_pulse *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	atomic_store(&p->flight->beats, 0);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->wake);
	free(p);
}
