/* SPDX-License-Identifier: Apache-2.0 */
/* exec_stream.c: the executor of backends with streams. A schedule is enqueued, with an event wherever one stream waits
 * for another, and recorded once as a graph, so that a step costs one launch. Events are created at set-up. Every
 * program is rehearsed first, so that one-time work of libraries and drivers happens there. A watched step runs node by
 * node; graphs omit the nodes that watch.
 *
 * All other streams begin after the compute stream's start and end before its end, so one event stands for a whole run
 * (ring.h), and a run may be begun while the one before is in progress. Phases are timed by events of the compute
 * stream where the kind of work changes. A later run would record over the events of the run before, so each slot of
 * the ring has its own events, and a graph that records them. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tracker/mem/mem.h"

/* ---- ranges for profilers: the run of a program, a kind of work of the compute stream, a node ---- */

static void begin_profiler_range(const struct stream_executor *e, const char *name)
{
	if (e->ops->range_begin)
		e->ops->range_begin(name);
}

static void end_profiler_range(const struct stream_executor *e)
{
	if (e->ops->range_end)
		e->ops->range_end();
}

/* m: the mark of an item at which another kind of work begins. in: whether a range is open. */
static void switch_profiler_range(const struct stream_executor *e, const struct stream_mark *m, bool *in)
{
	if (!m)
		return;
	if (*in)
		end_profiler_range(e);
	begin_profiler_range(e, exec_time_name(m->kind));
	*in = true;
}

/* ---- one run ---- */

static int record_event(struct stream_executor *e, enum stream s, struct event_handle *event, struct err *err)
{
	return event ? e->ops->record(e->module, e->stream[s], event, err) : 0;
}

static int wait_stream_event(struct stream_executor *e, enum stream s, struct event_handle *event, struct err *err)
{
	return event ? e->ops->wait(e->module, e->stream[s], event, err) : 0;
}

static int record_mark(struct stream_executor *e, const struct stream_mark *m, struct err *err)
{
	return m ? record_event(e, STREAM_COMPUTE, m->event[e->slot], err) : 0;
}

/* Does nothing where the node watches in an unwatched step, or where the item's group has run. */
static int run_stream_item(const struct stream_executor *e, struct stream_item *it, struct err *err)
{
	const bool alone = !it->group || e->watched || e->looks;
	int rc = 0;

	if (it->node->op->watches && !e->watched)
		return 0;
	if (alone)
		rc = kernel_run(it->kernel, it->state, &it->args, err);
	else if (it->leads)
		it->kernel->run_many(it->group->states, it->group->args, it->group->n);
	return rc ? rc : backend_take_failure(e->prepared->opts.backend, e->module, it->node->name, err);
}

static int enqueue_item(struct stream_executor *e, struct stream_item *it, struct err *err)
{
	int rc = record_mark(e, it->before, err);

	for (int k = 0; !rc && k < STREAM_COUNT; k++)
		rc = wait_stream_event(e, it->stream, it->wait[k], err);
	if (!rc)
		rc = record_mark(e, it->begins, err);
	if (!rc && e->traced)
		rc = record_event(e, it->stream, it->from, err);
	if (!rc)
		rc = run_stream_item(e, it, err);
	if (rc)
		err_prefix(err, "enqueueing %s", it->node->name);
	if (!rc && e->traced)
		rc = record_event(e, it->stream, it->to, err);
	return rc ? rc : record_event(e, it->stream, it->event, err);
}

static int fork_streams(struct stream_executor *e, const struct stream_program *sp, struct err *err)
{
	int rc = 0, forked = 0;

	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++) {
		if (!sp->forks[s])
			continue;
		rc = forked++ ? 0 : record_event(e, STREAM_COMPUTE, e->begin, err);
		if (!rc)
			rc = wait_stream_event(e, (enum stream)s, e->begin, err);
	}
	return rc;
}

static int join_streams(struct stream_executor *e, const struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++) {
		rc = record_event(e, (enum stream)s, sp->joins[s], err);
		if (!rc)
			rc = wait_stream_event(e, STREAM_COMPUTE, sp->joins[s], err);
	}
	return rc ? rc : record_mark(e, &sp->marks[sp->n_marks - 1], err);
}

static int enqueue_items(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	int rc = fork_streams(e, sp, err);
	bool in_turn = false;

	for (int i = 0; !rc && i < sp->n; i++) {
		switch_profiler_range(e, sp->items[i].begins, &in_turn);
		begin_profiler_range(e, sp->items[i].node->name);
		rc = enqueue_item(e, &sp->items[i], err);
		end_profiler_range(e);
	}
	if (in_turn)
		end_profiler_range(e);
	return rc ? rc : join_streams(e, sp, err);
}

/* Waits for the device and checks the ranks meanwhile: the device would wait forever for a dead rank. */
static int wait_host(struct stream_executor *e, struct event_handle *event, struct err *err)
{
	struct devices *devices = e->prepared->opts.devices;
	const struct timespec nap = { 0, 10000 };
	bool done = false;
	int rc;

	if (!devices)
		return e->ops->event_sync(e->module, event, err);
	for (;;) {
		rc = e->ops->event_done(e->module, event, &done, err);
		if (!rc && !done)
			rc = devices_watch(devices, err);
		if (rc || done)
			return rc;
		nanosleep(&nap, NULL);
	}
}

/* Enqueues an item; calls look after it has run, if it is on the compute stream. */
static int enqueue_observed_item(struct stream_executor *e, struct stream_program *sp, int index,
				 const struct exec_look *look, struct err *err)
{
	struct stream_item *it = &sp->items[index];
	const bool sees = it->stream == STREAM_COMPUTE;
	int rc = enqueue_item(e, it, err);

	if (!rc && sees)
		rc = record_event(e, it->stream, e->looked, err);
	if (!rc && sees)
		rc = wait_host(e, e->looked, err);
	if (!rc && sees)
		look->see(look->user, it->node, sp->program->schedule.items[index].slot, &it->args);
	return rc;
}

static int enqueue_observed(struct stream_executor *e, struct stream_program *sp, const struct exec_look *look,
			    struct err *err)
{
	int rc = fork_streams(e, sp, err);

	for (int i = 0; !rc && i < sp->n; i++)
		rc = enqueue_observed_item(e, sp, i, look, err);
	return rc ? rc : join_streams(e, sp, err);
}

/* Enqueues a run of the program after those in progress. */
static int enqueue_run(struct stream_executor *e, struct stream_program *sp, const struct exec_call *call,
		       struct err *err)
{
	struct graph_handle *graph = e->traced || e->watched ? NULL : sp->graph[e->slot];
	char name[80];
	int rc;

	snprintf(name, sizeof(name), "step %lld %s", (long long)call->page->step, sp->program->name);
	begin_profiler_range(e, name);
	rc = record_mark(e, &sp->marks[0], err);
	if (!rc)
		rc = ring_send(e->ring, e->slot, sp->program, call, err);
	if (!rc && call->look.see)
		rc = enqueue_observed(e, sp, &call->look, err);
	else if (!rc && graph)
		rc = e->ops->graph_launch(e->module, e->stream[STREAM_COMPUTE], graph, err);
	else if (!rc)
		rc = enqueue_items(e, sp, err);
	if (!rc)
		rc = ring_receive(e->ring, e->slot, sp->program, err);
	end_profiler_range(e);
	return rc;
}

static struct stream_program *find_stream_program(const struct stream_executor *e, const struct program *p)
{
	for (int i = 0; i < e->n_programs; i++)
		if (e->programs[i].program == p)
			return &e->programs[i];
	return NULL;
}

/* Aborts every wait for other ranks, here and on the device. */
static void abort_streams(struct stream_executor *e)
{
	struct comm *all = e->prepared->opts.comm;

	e->failed = true;
	devices_abort(e->prepared->opts.devices);
	if (all)
		all->ops->abort(all);
}

static int refuse_after_failure(struct err *err)
{
	return err_set(err, ERR_IO, "the device failed earlier");
}

/* A run without others in progress always uses the first slot: programs that never run ahead need one graph. */
static int streams_begin(struct exec *exec, const struct program *p, const struct exec_call *call, struct err *err)
{
	struct stream_executor *e = (struct stream_executor *)exec;
	struct stream_program *sp = find_stream_program(e, p);
	int rc;

	if (e->failed)
		return refuse_after_failure(err);
	if (!e->n)
		e->first = 0;
	e->slot = (e->first + e->n) % RING_SLOTS;
	e->run[e->slot] = (struct stream_run){ sp, trace_on(call->trace) ? call->trace : NULL };
	e->traced = e->run[e->slot].trace || e->profiled;
	e->watched = call->page->watch;
	e->looks = call->look.see != NULL;
	rc = e->traced ? stream_trace_begin(e, sp, err) : 0;
	if (!rc && call->look.see)
		rc = stream_event(e, &e->looked, false, err);
	if (!rc)
		rc = enqueue_run(e, sp, call, err);
	if (rc)
		abort_streams(e);
	else
		e->n++;
	return rc;
}

static int streams_fed(struct exec *exec, struct err *err)
{
	struct stream_executor *e = (struct stream_executor *)exec;
	int rc = e->failed ? refuse_after_failure(err) : wait_host(e, ring_fed(e->ring), err);

	if (rc && !e->failed)
		abort_streams(e);
	return rc;
}

static int end_stream_run(struct stream_executor *e, int slot, struct exec_done *ret, struct err *err)
{
	const struct stream_run *run = &e->run[slot];
	int rc = wait_host(e, ring_over(e->ring, slot), err);

	if (!rc && run->trace)
		rc = stream_trace_end(e, slot, err);
	if (!rc && e->profiled)
		rc = stream_node_seconds(e, run->program, err);
	if (!rc)
		rc = stream_times(e, run->program, slot, &ret->times, err);
	if (!rc)
		ring_read(e->ring, slot, run->program->program, ret);
	return rc;
}

static int streams_end(struct exec *exec, struct exec_done *ret, struct err *err)
{
	struct stream_executor *e = (struct stream_executor *)exec;
	const int slot = e->first;
	int rc;

	if (e->failed)
		return refuse_after_failure(err);
	rc = end_stream_run(e, slot, ret, err);
	if (rc) {
		abort_streams(e);
		return rc;
	}
	e->first = (slot + 1) % RING_SLOTS;
	e->n--;
	return 0;
}

static int streams_ahead(const struct exec *exec)
{
	const struct stream_executor *e = (const struct stream_executor *)exec;

	return e->profiled ? 0 : EXEC_AHEAD_MAX;
}

/* ---- life ---- */

static int capture_graph(struct stream_executor *e, struct stream_program *sp, int slot, struct err *err)
{
	struct stream_handle *s = e->stream[STREAM_COMPUTE];
	int rc = e->ops->capture_begin(e->module, s, err);

	e->slot = slot;
	e->watched = e->looks = false;
	if (!rc)
		rc = enqueue_items(e, sp, err);
	return rc ? rc : e->ops->capture_end(e->module, s, &sp->graph[slot], err);
}

static int clear_input(const struct stream_executor *e, const struct tensor *t, int slots, struct err *err)
{
	const size_t bytes = tensor_bytes(t);
	void *zeros = mem_zalloc(bytes);
	int rc = 0;

	for (int slot = 0; !rc && bytes && slot < slots; slot++)
		rc = prepared_copy(e->prepared, prepared_slot(e->prepared, t, slot), zeros, bytes, err);
	free(zeros);
	return rc;
}

/* Tokens and labels are row numbers: values that another run left in their memory may be out of range. */
static int clear_inputs(const struct stream_executor *e, const struct program *p, struct err *err)
{
	const struct graph *g = p->graph;
	int rc = 0;

	for (int i = 0; !rc && i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			rc = clear_input(e, g->tensors[i], g->tensors[i]->life == LIFE_MICRO ? p->schedule.slots : 1,
					 err);
	return rc;
}

/* Runs the program with and without watching on zeroed inputs, then captures its graphs. */
static int rehearse_program(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	const int slots = sp->program->kind == PROGRAM_EVAL ? 1 : RING_SLOTS;
	int rc = 0;

	for (int watch = 1; !rc && watch >= 0; watch--) {
		const struct step_page page = { .rehearsal = 1, .watch = watch, .inv_count = 1, .loss_scale = 1 };
		struct exec_done ignored;

		rc = clear_inputs(e, sp->program, err);
		if (!rc)
			rc = streams_begin(&e->exec, sp->program, &(struct exec_call){ .page = &page }, err);
		if (!rc)
			rc = streams_end(&e->exec, &ignored, err);
	}
	for (int slot = 0; !rc && e->graphs && slot < slots; slot++)
		rc = capture_graph(e, sp, slot, err);
	return rc;
}

/* The device may still use memory that is about to be freed. */
static void wait_device_idle(struct stream_executor *e)
{
	struct err ignored = ERR_INIT;

	if (!e->begin || record_event(e, STREAM_COMPUTE, e->begin, &ignored))
		return;
	wait_host(e, e->begin, &ignored);
}

static void streams_close(struct exec *exec)
{
	struct stream_executor *e = (struct stream_executor *)exec;
	struct event_handle *const own[] = { e->begin, e->looked };

	if (e->failed || e->n)
		wait_device_idle(e);
	for (int i = 0; i < e->n_programs; i++)
		stream_program_free(e, &e->programs[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i])
			e->ops->event_free(e->module, own[i]);
	ring_close(e->ring);
	for (int s = 0; s < STREAM_COUNT; s++)
		if (e->stream[s])
			e->ops->stream_free(e->module, e->stream[s]);
	free(e->programs);
	free(e);
}

static int open_stream_executor(struct stream_executor *e, struct err *err)
{
	const struct prepared *p = e->prepared;
	int rc = stream_make(e, STREAM_COMPUTE, err);

	if (!rc)
		rc = ring_open(&e->ring, p, e->stream[STREAM_COMPUTE], err);
	if (!rc)
		rc = stream_event(e, &e->begin, false, err);
	for (int i = 0; !rc && i < p->n_programs; i++)
		rc = stream_program_fill(e, &e->programs[e->n_programs++], p->program[i], err);
	for (int i = 0; !rc && i < p->n_programs; i++)
		rc = rehearse_program(e, &e->programs[i], err);
	return rc;
}

/* Opens the streams, the ring and all programs. */
static int streams_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	struct stream_executor *e = mem_zalloc(sizeof(*e));
	int rc;

	e->programs = mem_array((size_t)p->n_programs, sizeof(*e->programs));
	e->exec.ops = &exec_stream;
	e->prepared = p;
	e->ops = p->opts.backend->streams;
	e->module = p->opts.module;
	e->graphs = !p->opts.node_by_node;
	rc = open_stream_executor(e, err);
	if (rc) {
		abort_streams(e);
		streams_close(&e->exec);
		return rc;
	}
	*ret = &e->exec;
	return 0;
}

static void streams_profile(struct exec *exec)
{
	struct stream_executor *e = (struct stream_executor *)exec;

	for (int i = 0; i < e->n_programs; i++)
		exec_time_begin(&e->programs[i].node_seconds, e->programs[i].program);
	e->profiled = true;
}

static const double *streams_node_seconds(const struct exec *exec, const struct program *p)
{
	const struct stream_program *sp = find_stream_program((const struct stream_executor *)exec, p);

	return sp ? sp->node_seconds : NULL;
}

const struct exec_ops exec_stream = {
	.open = streams_open,
	.close = streams_close,
	.ahead = streams_ahead,
	.begin = streams_begin,
	.fed = streams_fed,
	.end = streams_end,
	.profile = streams_profile,
	.node_seconds = streams_node_seconds,
};
