/* SPDX-License-Identifier: Apache-2.0 */
/* exec_host.c: the executor of host backends: a thread and a counter for each stream. The compute stream runs in the
 * caller's thread; every other stream that a program uses has a thread. An item that depends on another stream waits
 * until that stream's counter has passed the item. The clock is read only where the kind of work changes. */

#include <stdlib.h>

#include "tracker/mem/mem.h"

#include "trainer/run/exec/exec_inside.h"

#define SPINS 400

struct host_executor;

struct host_lane { /* a stream and its thread; the compute stream's is the caller */
	struct host_executor *host;
	enum stream stream;
	pthread_t thread;
	bool runs;
	pthread_cond_t wake;		/* signals that an awaited item may be done */
	_Atomic int done;		/* index after the last complete item */
	const struct host_program *job; /* program in progress; NULL: none */
	struct err err;
	double comm_s; /* seconds in collectives, of the last program */
};

struct host_executor {
	struct exec exec;
	const struct prepared *prepared;
	struct host_program *programs;
	int n_programs;
	struct step_page *page;	       /* page of each slot */
	int slots;		       /* most slots of a program */
	const struct program *program; /* program that is running */
	struct exec_call call;	       /* arguments of the run in progress */
	struct exec_done done;	       /* results of the run in progress */
	double *losses;
	struct trace_span open; /* open span of the compute stream; name NULL: none */

	struct host_lane lane[STREAM_COUNT];
	pthread_mutex_t lock;
	_Atomic bool failed;
	bool quit;
};

/* Wakes the streams in the mask. */
static void wake_streams(struct host_executor *e, unsigned streams)
{
	pthread_mutex_lock(&e->lock);
	for (int s = 0; s < STREAM_COUNT; s++)
		if (streams & 1u << s)
			pthread_cond_broadcast(&e->lane[s].wake);
	pthread_mutex_unlock(&e->lock);
}

static void publish_item_done(struct host_executor *e, enum stream s, const struct host_item *it)
{
	atomic_store_explicit(&e->lane[s].done, it->index + 1, memory_order_release);
	if (it->signal)
		wake_streams(e, it->signal);
}

static bool streams_reached(const struct host_executor *e, const int *wait)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		if (atomic_load_explicit(&e->lane[s].done, memory_order_acquire) < wait[s])
			return atomic_load(&e->failed);
	return true;
}

/* Returns the kind of a wait of the compute stream: that of the first stream that it waits for. */
static enum exec_time host_wait_kind(const struct host_executor *e, const int *wait)
{
	for (int s = STREAM_COMPUTE + 1; s < STREAM_COUNT; s++)
		if (atomic_load_explicit(&e->lane[s].done, memory_order_acquire) < wait[s])
			return exec_time_of_wait((enum stream)s);
	return EXEC_COMM_EXPOSED;
}

/* Waits in the thread of stream s until the awaited items are done or something failed. */
static void await_streams(struct host_executor *e, enum stream s, const int *wait)
{
	for (int i = 0; i < SPINS; i++) {
		if (streams_reached(e, wait))
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	pthread_mutex_lock(&e->lock);
	while (!streams_reached(e, wait))
		pthread_cond_wait(&e->lane[s].wake, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* Stops all threads; aborting the job makes a collective in progress fail. */
static void fail_host_run(struct host_executor *e)
{
	struct comm *job = e->prepared->opts.comm;

	atomic_store(&e->failed, true);
	if (job)
		job->ops->abort(job);
	wake_streams(e, ~0u);
}

static void trace_lane_item(const struct host_lane *l, const struct host_item *it, double from_s)
{
	struct trace *t = l->host->call.trace;

	if (trace_on(t))
		trace_add(t, &(struct trace_span){ stream_name(l->stream), 0, it->node->name,
						   it->collective ? "comm" : phase_name(it->node->phase), it->node->id,
						   from_s, clock_mono_s() });
}

/* Times collectives, on the compute stream too, where the rank waits in them. */
static int run_timed(struct host_lane *l, struct host_item *it, struct err *err)
{
	double start;
	int rc;

	if (!it->collective)
		return host_item_run(it, err);
	flight_node(l->host->prepared->opts.lane[it->node->stream][it->node->group], it->node->name);
	start = clock_mono_s();
	rc = host_item_run(it, err);
	l->comm_s += clock_mono_s() - start;
	return rc;
}

static void run_lane_items(struct host_lane *l)
{
	struct host_executor *e = l->host;
	const struct host_program *ep = l->job;

	for (int i = 0; i < ep->n[l->stream]; i++) {
		struct host_item *it = &ep->items[l->stream][i];
		double start;

		if (it->wait)
			await_streams(e, l->stream, it->wait);
		if (atomic_load(&e->failed))
			return;
		start = trace_on(e->call.trace) ? clock_mono_s() : 0;
		if (run_timed(l, it, &l->err)) {
			fail_host_run(e);
			return;
		}
		trace_lane_item(l, it, start);
		publish_item_done(e, l->stream, it);
	}
}

static void *run_host_lane(void *arg)
{
	struct host_lane *l = arg;
	struct host_executor *e = l->host;

	pthread_setname_np(pthread_self(), "dptrain-comm");
	pthread_mutex_lock(&e->lock);
	while (!e->quit) {
		if (!l->job) {
			pthread_cond_wait(&l->wake, &e->lock);
			continue;
		}
		pthread_mutex_unlock(&e->lock);
		run_lane_items(l);
		pthread_mutex_lock(&e->lock);
		l->job = NULL;
		pthread_cond_broadcast(&e->lane[STREAM_COMPUTE].wake);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

static int start_lane(struct host_lane *l, struct err *err)
{
	int rc;

	if (l->runs)
		return 0;
	rc = thread_start(&l->thread, run_host_lane, l);
	if (rc)
		return err_set_errno(err, rc, "cannot start the thread of stream %s", stream_name(l->stream));
	l->runs = true;
	return 0;
}

/* Stops the threads and frees the executor. */
static void host_close(struct exec *exec)
{
	struct host_executor *e = (struct host_executor *)exec;

	pthread_mutex_lock(&e->lock);
	e->quit = true;
	pthread_mutex_unlock(&e->lock);
	wake_streams(e, ~0u);
	for (int s = 0; s < STREAM_COUNT; s++)
		if (e->lane[s].runs)
			pthread_join(e->lane[s].thread, NULL);
	for (int i = 0; i < e->n_programs; i++)
		host_program_done(&e->programs[i]);
	free(e->programs);
	free(e->page);
	free(e->losses);
	for (int s = 0; s < STREAM_COUNT; s++)
		pthread_cond_destroy(&e->lane[s].wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static struct host_executor *host_new(const struct prepared *p)
{
	struct host_executor *e = mem_zalloc(sizeof(*e));

	for (int i = 0; i < p->n_programs; i++)
		e->slots = p->program[i]->schedule.slots > e->slots ? p->program[i]->schedule.slots : e->slots;
	e->page = mem_array((size_t)e->slots + 1, sizeof(*e->page));
	e->programs = mem_array((size_t)p->n_programs + 1, sizeof(*e->programs));
	e->losses = mem_array((size_t)exec_losses_most(p) + 1, sizeof(*e->losses));
	e->exec.ops = &exec_host;
	e->prepared = p;
	pthread_mutex_init(&e->lock, NULL);
	for (int s = 0; s < STREAM_COUNT; s++) {
		e->lane[s].host = e;
		e->lane[s].stream = (enum stream)s;
		pthread_cond_init(&e->lane[s].wake, NULL);
	}
	return e;
}

static int add_host_program(struct host_executor *e, const struct program *p, struct err *err)
{
	struct host_program *ep = &e->programs[e->n_programs++];
	int rc = 0;

	host_program_fill(ep, p, &(struct host_places){ e->prepared, e->page });
	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++)
		if (ep->n[s])
			rc = start_lane(&e->lane[s], err);
	return rc;
}

static int host_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	struct host_executor *e = host_new(p);
	int rc = 0;

	for (int i = 0; !rc && i < p->n_programs; i++)
		rc = add_host_program(e, p->program[i], err);
	if (rc) {
		host_close(&e->exec);
		return rc;
	}
	*ret = &e->exec;
	return 0;
}

struct stopwatch {
	struct exec_times *times;
	enum exec_time kind;
	double since;
};

/* Ends the open span of the compute stream and begins one of that name (NULL: none). */
static void switch_trace_span(struct host_executor *e, const char *name, enum exec_time kind, int node, double now)
{
	if (e->open.name) {
		e->open.to_s = now;
		trace_add(e->call.trace, &e->open);
	}
	e->open = (struct trace_span){ TRACE_STEP_ROW, 0, name, exec_time_name(kind), node, now, now };
}

/* Switches the kind of work of the compute stream, for a node (NULL: none). Spans and times change at the same
 * moments. */
static void switch_time_kind(struct host_executor *e, struct stopwatch *w, enum exec_time kind, const struct node *n)
{
	bool traced = trace_on(e->call.trace);
	double now;

	if (kind == w->kind && !traced)
		return;
	now = clock_mono_s();
	if (kind != w->kind) {
		w->times->by[w->kind] += now - w->since;
		w->kind = kind;
		w->since = now;
	}
	if (traced)
		switch_trace_span(e, n ? n->name : kind == EXEC_H2D ? "h2d" : "wait", kind, n ? n->id : -1, now);
}

/* Copies the inputs of a micro-batch into its slot. */
static int copy_samples(struct host_executor *e, int slot, struct err *err)
{
	const struct program *p = e->program;
	const size_t inputs = tensor_bytes(p->inputs), targets = tensor_bytes(p->targets);
	int rc = prepared_copy(e->prepared, prepared_slot(e->prepared, p->inputs, slot),
			       (const char *)e->call.inputs + (size_t)slot * inputs, inputs, err);

	return rc ? rc : prepared_copy(e->prepared, prepared_slot(e->prepared, p->targets, slot),
				       (const char *)e->call.targets + (size_t)slot * targets, targets, err);
}

/* Sets the values that nodes read before the first node runs. */
static int put_first_values(struct host_executor *e, struct err *err)
{
	const struct program *p = e->program;
	const double none[XENT_RESULTS] = { 0 };
	int rc = 0;

	for (int slot = 0; !rc && e->call.inputs && !p->schedule.fed && slot < p->schedule.slots; slot++)
		rc = copy_samples(e, slot, err);
	if (!rc && p->vote)
		rc = prepared_put(e->prepared, p->vote, &e->call.vote, sizeof(e->call.vote), err);
	return rc || !exec_clears(p) ? rc : prepared_put(e->prepared, p->result, none, sizeof(none), err);
}

/* Copies the inputs of an item's micro-batch, if the item begins one. */
static int feed_host_item(struct host_executor *e, const struct host_item *it, struct stopwatch *w, struct err *err)
{
	if (!it->feeds)
		return 0;
	switch_time_kind(e, w, EXEC_H2D, NULL);
	return copy_samples(e, it->slot, err);
}

/* Runs the items of the compute stream in the caller's thread. */
static int run_compute_items(struct host_executor *e, const struct host_program *ep, struct stopwatch *w,
			     struct err *err)
{
	struct host_lane *own = &e->lane[STREAM_COMPUTE];

	for (int i = 0; i < ep->n[STREAM_COMPUTE]; i++) {
		struct host_item *it = &ep->items[STREAM_COMPUTE][i];
		int rc;

		if (it->wait && !streams_reached(e, it->wait)) {
			switch_time_kind(e, w, host_wait_kind(e, it->wait), NULL);
			await_streams(e, STREAM_COMPUTE, it->wait);
		}
		if (atomic_load_explicit(&e->failed, memory_order_relaxed))
			return ERR_PEER; /* gather_errors reports the reason */
		rc = feed_host_item(e, it, w, err);
		switch_time_kind(e, w, it->kind, it->node);
		if (!rc)
			rc = run_timed(own, it, err);
		if (!rc)
			rc = backend_take_failure(e->prepared->opts.backend, e->prepared->opts.module, it->node->name,
						  err);
		if (rc) {
			err_prefix(err, "%s", it->node->name);
			fail_host_run(e);
			return rc;
		}
		if (e->call.look.see)
			e->call.look.see(e->call.look.user, it->node, it->slot, &it->args);
		publish_item_done(e, STREAM_COMPUTE, it);
	}
	return 0;
}

static const struct host_program *find_host_program(const struct host_executor *e, const struct program *p)
{
	for (int i = 0; i < e->n_programs; i++)
		if (e->programs[i].program == p)
			return &e->programs[i];
	return NULL;
}

/* Starts the other streams. Returns true if the program uses any. */
static bool start_job(struct host_executor *e, const struct host_program *ep)
{
	bool helped = false;

	pthread_mutex_lock(&e->lock);
	for (int s = 0; s < STREAM_COUNT; s++) {
		struct host_lane *l = &e->lane[s];

		atomic_store(&l->done, 0);
		l->comm_s = 0;
		if (s == STREAM_COMPUTE || !ep->n[s])
			continue;
		l->job = ep;
		pthread_cond_broadcast(&l->wake);
		helped = true;
	}
	pthread_mutex_unlock(&e->lock);
	return helped;
}

static void finish_job(struct host_executor *e)
{
	pthread_mutex_lock(&e->lock);
	for (int s = 0; s < STREAM_COUNT; s++)
		while (e->lane[s].job)
			pthread_cond_wait(&e->lane[STREAM_COMPUTE].wake, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* Reports the error of a stream's thread, unless the compute stream failed itself. */
static int gather_errors(const struct host_executor *e, int rc, struct err *err)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		if (e->lane[s].err.code && (rc == 0 || !err->code)) {
			*err = e->lane[s].err;
			rc = err->code;
		}
	return rc;
}

/* Runs the program with its inputs on all streams. */
static int run_streams(struct host_executor *e, const struct host_program *ep, struct stopwatch *w, struct err *err)
{
	int rc = put_first_values(e, err);

	if (rc)
		return rc;
	if (!start_job(e, ep))
		return run_compute_items(e, ep, w, err);
	rc = run_compute_items(e, ep, w, err);
	switch_time_kind(e, w, EXEC_COMM_EXPOSED, NULL);
	finish_job(e);
	return rc;
}

static int read_results(struct host_executor *e, struct err *err)
{
	const struct program *p = e->program;
	const size_t bytes = p->losses ? tensor_bytes(p->losses) : 0;
	struct exec_value values[EXEC_VALUES];
	int rc = 0;

	exec_values(values, p);
	for (int i = 0; !rc && i < EXEC_VALUES; i++)
		if (values[i].tensor)
			rc = prepared_get(e->prepared, values[i].tensor, (char *)&e->done.results + values[i].offset,
					  values[i].bytes, err);
	for (int slot = 0; !rc && bytes && slot < p->schedule.slots; slot++)
		rc = prepared_copy(e->prepared, (char *)e->losses + (size_t)slot * bytes,
				   prepared_slot(e->prepared, p->losses, slot), bytes, err);
	e->done.losses = bytes ? e->losses : NULL;
	return rc;
}

/* Runs the whole program; host_end only reads its results. */
static int host_begin(struct exec *exec, const struct program *p, const struct exec_call *call, struct err *err)
{
	struct host_executor *e = (struct host_executor *)exec;
	struct stopwatch w = { .times = &e->done.times, .kind = EXEC_H2D };
	double now;
	int rc;

	if (atomic_load(&e->failed))
		return err_set(err, ERR_PEER, "an earlier collective failed");
	for (int i = 0; i < p->schedule.slots; i++)
		e->page[i] = exec_page(p, call->page, i);
	e->program = p;
	e->call = *call;
	e->done = (struct exec_done){ .losses = NULL };
	e->open.name = NULL;
	w.since = clock_mono_s();
	if (trace_on(call->trace))
		switch_trace_span(e, "h2d", w.kind, -1, w.since);
	rc = run_streams(e, find_host_program(e, p), &w, err);
	now = clock_mono_s();
	e->done.times.by[w.kind] += now - w.since;
	if (trace_on(call->trace))
		switch_trace_span(e, NULL, w.kind, -1, now);
	for (int s = 0; s < STREAM_COUNT; s++)
		e->done.times.comm_total += e->lane[s].comm_s;
	return gather_errors(e, rc, err);
}

static int host_end(struct exec *exec, struct exec_done *ret, struct err *err)
{
	struct host_executor *e = (struct host_executor *)exec;
	int rc = read_results(e, err);

	if (!rc)
		*ret = e->done;
	return rc;
}

static int host_fed(struct exec *exec, struct err *err)
{
	(void)exec, (void)err;
	return 0;
}

static int host_ahead(const struct exec *exec)
{
	(void)exec;
	return 0;
}

static void host_profile(struct exec *exec)
{
	struct host_executor *e = (struct host_executor *)exec;

	for (int i = 0; i < e->n_programs; i++)
		host_program_profile(&e->programs[i]);
}

static const double *host_node_seconds(const struct exec *exec, const struct program *p)
{
	const struct host_program *ep = find_host_program((const struct host_executor *)exec, p);

	return ep ? ep->node_seconds : NULL;
}

const struct exec_ops exec_host = {
	.open = host_open,
	.close = host_close,
	.ahead = host_ahead,
	.begin = host_begin,
	.fed = host_fed,
	.end = host_end,
	.profile = host_profile,
	.node_seconds = host_node_seconds,
};
