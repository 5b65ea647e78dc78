/* SPDX-License-Identifier: Apache-2.0 */
/* flight.c: records the calls of a communicator; runs the heartbeat thread. */
#include "trainer/comm/flight.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"

struct recorded_comm {
	struct comm_wrap wrap;
	struct flight *flight;
	char group[16];
	const char *node;
};

static struct flight_entry *begin_entry(struct recorded_comm *r, const struct comm_call *call)
{
	static const char *const names[] = {
		[COMM_ALLREDUCE] = "all-reduce", [COMM_REDUCE_SCATTER] = "reduce-scatter",
		[COMM_ALL_GATHER] = "all-gather", [COMM_BROADCAST] = "broadcast", [COMM_SEND] = "send",
		[COMM_RECV] = "receive", [COMM_BARRIER] = "barrier",
	};
	struct flight *f = r->flight;
	struct flight_entry *e = &f->entry[atomic_fetch_add(&f->n, 1) % FLIGHT_ENTRIES];

	*e = (struct flight_entry){ .dtype = call->dtype, .bytes = (int64_t)call->bytes,
				    .step = atomic_load(&f->step), .start_s = clock_mono_s() };
	snprintf(e->op, sizeof(e->op), "%s", names[call->op]);
	snprintf(e->node, sizeof(e->node), "%s", r->node ? r->node : "");
	snprintf(e->group, sizeof(e->group), "%s", r->group);
	return e;
}

static int run_recorded(struct comm_wrap *w, const struct comm_call *call, struct err *err)
{
	struct flight_entry *e = begin_entry((struct recorded_comm *)w, call);
	int rc = comm_wrap_run(w, call, err);

	if (!rc)
		e->end_s = clock_mono_s();
	return rc;
}

static struct comm *split_recorded(struct comm_wrap *w, struct comm *part)
{
	struct recorded_comm *r = (struct recorded_comm *)w;
	char group[16];

	snprintf(group, sizeof(group), "%d ranks", part->world);
	return flight_comm(part, r->flight, part->world == w->comm.world ? r->group : group);
}

static const struct comm_wrap_ops recorded_ops = { run_recorded, split_recorded };

struct comm *flight_comm(struct comm *c, struct flight *f, const char *group)
{
	struct recorded_comm *r = (struct recorded_comm *)comm_wrap_new(sizeof(*r), c, &recorded_ops);

	r->flight = f;
	snprintf(r->group, sizeof(r->group), "%s", group);
	return &r->wrap.comm;
}

void flight_node(struct comm *c, const char *node)
{
	struct recorded_comm *r = (struct recorded_comm *)comm_wrap_of(c, &recorded_ops);

	if (r)
		r->node = node;
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
	struct flight_pulse *p = mem_zalloc(sizeof(*p));
	int rc;

	p->flight = f;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->wake);
	rc = thread_start(&p->thread, run_pulse, p);
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
