/* exec_stream.c: the executor of backends with streams: a schedule is enqueued, with an event wherever one stream waits
 * for another, and recorded once as a graph, so that a step costs one launch. Events are made at set-up. Every program
 * is rehearsed first: what libraries and drivers do at a first time happens there.
 *
 * All other streams begin behind the compute stream's start and end in front of its end, so one event stands for a
 * whole run (ring.h), and a run may be begun while the one before is under way. Phases are timed by events of the
 * compute stream, at the places where the kind of work changes; as a device would record over those of the run before,
 * each slot of the ring has events of its own, and a graph that records them. */
#include "trainer/run/exec_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/clock.h"
#include "trainer/run/exec_time.h"
#include "trainer/run/ring.h"

struct stream_mark { /* the kind of work that begins there; the last one ends a run */
	struct event_handle *event[RING_SLOTS];
	enum exec_time kind;
};

struct stream_item {
	const struct kernel *kernel;
	void *state;
	struct kernel_args args;
	enum stream stream;
	struct event_handle *wait[STREAM_COUNT]; /* borrowed from the items waited for; NULL: none */
	struct event_handle *event;		 /* behind it; NULL: nobody waits */
	struct stream_mark *before, *begins;	 /* in front of its waits and behind them; NULL: no turn there */
	struct event_handle *from, *to;		 /* timed, behind its waits and itself; NULL: never traced */
	const struct node *node;
};

struct stream_program {
	const struct program *program;
	struct stream_item *items;
	int n;
	bool forks[STREAM_COUNT];		  /* beside the compute stream: its first item waits for no other */
	struct event_handle *joins[STREAM_COUNT]; /* likewise, of those whose last item no other waits for */
	struct stream_mark *marks;
	int n_marks;
	struct graph_handle *graph[RING_SLOTS]; /* NULL: node by node */
	double *node_seconds;	    /* by node id; NULL: never asked for */
};

struct stream_run { /* that has not ended */
	struct stream_program *program;
	struct trace *trace; /* NULL: it is not traced */
};

struct streams {
	struct exec exec;
	const struct prepared *prepared;
	const struct backend_streams *ops;
	void *module;
	struct stream_handle *stream[STREAM_COUNT]; /* NULL where no program uses one */
	struct stream_program *programs;
	int n_programs;
	struct event_handle *begin; /* of a run, for streams that fork */
	struct event_handle *node_from, *node_to; /* of node_events; NULL until somebody asks */
	struct ring *ring;
	struct stream_run run[RING_SLOTS]; /* by slot */
	int first, n;			   /* slots of those under way */
	int slot;			   /* of the run that is being enqueued or recorded */
	bool traced;			   /* … node by node, with an event at both ends of each */
	bool graphs, profiled, failed;
};

/* ---- set-up ---- */

static int stream_of(struct streams *e, enum stream s, struct err *err)
{
	return e->stream[s] ? 0 : e->ops->stream_new(e->module, &e->stream[s], err);
}

static int event_of(struct streams *e, struct event_handle **ret, bool timed, struct err *err)
{
	return *ret ? 0 : e->ops->event_new(e->module, timed, ret, err);
}

static int fill_item(struct streams *e, struct stream_item *it, const struct program *p, int index, struct err *err)
{
	const struct schedule_item *s = &p->schedule.items[index];
	const struct node *n = s->node;
	void **operands = arena_array(p->graph->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*operands));
	unsigned char *workspace = e->prepared->slab[SPACE_PRIVATE];

	if (!operands)
		return err_set(err, ERR_NOMEM, "out of memory: operands of %s", n->name);
	for (int i = 0; i < n->n_in; i++)
		operands[i] = prepared_slot(e->prepared, n->in[i], s->slot);
	for (int i = 0; i < n->n_out; i++)
		operands[n->n_in + i] = prepared_slot(e->prepared, n->out[i], s->slot);
	*it = (struct stream_item){
		.kernel = program_kernel(&e->prepared->opts, n),
		.state = p->state[n->id],
		.stream = s->stream,
		.node = n,
		.args = { .in = operands,
			  .out = operands + n->n_in,
			  .page = ring_page(e->ring, s->slot),
			  .workspace = n->workspace_bytes ? workspace + plan_workspace(n, s->slot) : NULL,
			  .stream = e->stream[s->stream] },
	};
	return 0;
}

/* The event behind the last item of stream s before a position of the schedule. */
static int event_before(struct streams *e, struct stream_program *sp, enum stream s, int position,
			struct event_handle **ret, struct err *err)
{
	int i = position - 1, rc;

	while (i >= 0 && sp->items[i].stream != s)
		i--;
	if (i < 0)
		return 0;
	rc = event_of(e, &sp->items[i].event, false, err);
	*ret = sp->items[i].event;
	return rc;
}

static int fill_waits(struct streams *e, struct stream_program *sp, int index, struct err *err)
{
	const struct schedule_item *s = &sp->program->schedule.items[index];
	int rc = 0;

	for (int k = 0; !rc && k < STREAM_COUNT; k++)
		if (s->wait[k])
			rc = event_before(e, sp, (enum stream)k, s->wait[k], &sp->items[index].wait[k], err);
	return rc;
}

static bool waits(const struct stream_item *it)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (it->wait[k])
			return true;
	return false;
}

static int mark(struct streams *e, struct stream_program *sp, enum exec_time kind, struct stream_mark **ret,
		struct err *err)
{
	struct stream_mark *m = &sp->marks[sp->n_marks];
	int rc = 0;

	if (sp->n_marks && m[-1].kind == kind)
		return 0;
	m->kind = kind;
	sp->n_marks++;
	for (int slot = 0; !rc && slot < RING_SLOTS; slot++)
		rc = event_of(e, &m->event[slot], true, err);
	*ret = m;
	return rc;
}

static enum exec_time wait_kind(const struct stream_item *it)
{
	int s = STREAM_COMPUTE + 1;

	while (s < STREAM_COUNT - 1 && !it->wait[s])
		s++;
	return exec_time_of_wait((enum stream)s);
}

/* Where the compute stream turns to another kind of work, and where it waits for other streams; the first stands in
 * front of all that a run is sent. */
static int fill_marks(struct streams *e, struct stream_program *sp, struct err *err)
{
	struct stream_mark *ignored = NULL;
	int rc = mark(e, sp, EXEC_H2D, &ignored, err);

	for (int i = 0; !rc && i < sp->n; i++) {
		struct stream_item *it = &sp->items[i];

		if (it->stream != STREAM_COMPUTE)
			continue;
		if (waits(it))
			rc = mark(e, sp, wait_kind(it), &it->before, err);
		if (!rc)
			rc = mark(e, sp, exec_time_of(it->node), &it->begins, err);
	}
	return rc ? rc : mark(e, sp, EXEC_TIMES, &ignored, err);
}

/* A stream whose first item waits for another one begins behind that, and one whose last item is waited for ends before
 * that: those who wait come later in the schedule each time, up to the compute stream or an end that is joined. */
static int fill_ends(struct streams *e, struct stream_program *sp, struct err *err)
{
	bool seen[STREAM_COUNT] = { false }, waited[STREAM_COUNT];
	int rc = 0;

	for (int i = 0; i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];

		if (!seen[it->stream])
			sp->forks[it->stream] = !waits(it);
		seen[it->stream] = true;
		waited[it->stream] = it->event != NULL;
	}
	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++)
		if (seen[s] && !waited[s])
			rc = event_of(e, &sp->joins[s], false, err);
	return rc;
}

static int fill_program(struct streams *e, struct stream_program *sp, const struct program *p, struct err *err)
{
	const size_t n = (size_t)p->schedule.n;
	int rc = 0;

	sp->program = p;
	sp->items = calloc(n + 1, sizeof(*sp->items));
	sp->marks = calloc(2 * n + 2, sizeof(*sp->marks));
	if (!sp->items || !sp->marks)
		return err_set(err, ERR_NOMEM, "out of memory: schedule of %s", p->name);
	for (int i = 0; !rc && i < p->schedule.n; i++) {
		enum stream s = p->schedule.items[i].stream;

		rc = stream_of(e, s, err);
		if (!rc)
			rc = fill_item(e, &sp->items[i], p, i, err);
		sp->n = i + 1;
		if (!rc)
			rc = fill_waits(e, sp, i, err);
	}
	if (!rc)
		rc = fill_ends(e, sp, err);
	return rc ? rc : fill_marks(e, sp, err);
}

/* ---- ranges for profilers: the run of a program, a kind of work of the compute stream, a node ---- */

static void range_begin(const struct streams *e, const char *name)
{
	if (e->ops->range_begin)
		e->ops->range_begin(name);
}

static void range_end(const struct streams *e)
{
	if (e->ops->range_end)
		e->ops->range_end();
}

/* m: in front of an item; another kind of work begins there. in: whether one is open. */
static void range_turn(const struct streams *e, const struct stream_mark *m, bool *in)
{
	if (!m)
		return;
	if (*in)
		range_end(e);
	range_begin(e, exec_time_name(m->kind));
	*in = true;
}

/* ---- one run ---- */

static int record(struct streams *e, enum stream s, struct event_handle *event, struct err *err)
{
	return event ? e->ops->record(e->module, e->stream[s], event, err) : 0;
}

static int wait_for(struct streams *e, enum stream s, struct event_handle *event, struct err *err)
{
	return event ? e->ops->wait(e->module, e->stream[s], event, err) : 0;
}

static int record_mark(struct streams *e, const struct stream_mark *m, struct err *err)
{
	return m ? record(e, STREAM_COMPUTE, m->event[e->slot], err) : 0;
}

static int enqueue_item(struct streams *e, struct stream_item *it, struct err *err)
{
	int rc = record_mark(e, it->before, err);

	for (int k = 0; !rc && k < STREAM_COUNT; k++)
		rc = wait_for(e, it->stream, it->wait[k], err);
	if (!rc)
		rc = record_mark(e, it->begins, err);
	if (!rc && e->traced)
		rc = record(e, it->stream, it->from, err);
	if (!rc)
		rc = it->kernel->run(it->state, &it->args, err);
	if (rc)
		err_prefix(err, "enqueueing %s", it->node->name);
	if (!rc && e->traced)
		rc = record(e, it->stream, it->to, err);
	return rc ? rc : record(e, it->stream, it->event, err);
}

static int fork_streams(struct streams *e, const struct stream_program *sp, struct err *err)
{
	int rc = 0, forked = 0;

	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++) {
		if (!sp->forks[s])
			continue;
		rc = forked++ ? 0 : record(e, STREAM_COMPUTE, e->begin, err);
		if (!rc)
			rc = wait_for(e, (enum stream)s, e->begin, err);
	}
	return rc;
}

static int join_streams(struct streams *e, const struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++) {
		rc = record(e, (enum stream)s, sp->joins[s], err);
		if (!rc)
			rc = wait_for(e, STREAM_COMPUTE, sp->joins[s], err);
	}
	return rc ? rc : record_mark(e, &sp->marks[sp->n_marks - 1], err);
}

static int enqueue(struct streams *e, struct stream_program *sp, struct err *err)
{
	int rc = fork_streams(e, sp, err);
	bool in_turn = false;

	for (int i = 0; !rc && i < sp->n; i++) {
		range_turn(e, sp->items[i].begins, &in_turn);
		range_begin(e, sp->items[i].node->name);
		rc = enqueue_item(e, &sp->items[i], err);
		range_end(e);
	}
	if (in_turn)
		range_end(e);
	return rc ? rc : join_streams(e, sp, err);
}

/* The host waits for its device, which would wait for ever for a rank that is gone. */
static int wait_host(struct streams *e, struct event_handle *event, struct err *err)
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

static int add_seconds(struct streams *e, struct stream_program *sp, const struct node *n, struct err *err)
{
	double s = 0;
	int rc = e->ops->seconds(e->module, e->node_from, e->node_to, &s, err);

	sp->node_seconds[n->id] += s;
	return rc;
}

/* One that is timed on its stream, or looked at when it has run. */
static int enqueue_alone(struct streams *e, struct stream_program *sp, int index, const struct exec_look *look,
			 struct err *err)
{
	struct stream_item *it = &sp->items[index];
	const bool sees = look->see && it->stream == STREAM_COMPUTE;
	int rc = record(e, it->stream, e->node_from, err);

	if (!rc)
		rc = enqueue_item(e, it, err);
	if (!rc)
		rc = record(e, it->stream, e->node_to, err);
	if (!rc && (e->profiled || sees))
		rc = wait_host(e, e->node_to, err);
	if (!rc && e->profiled)
		rc = add_seconds(e, sp, it->node, err);
	if (!rc && sees)
		look->see(look->user, it->node, sp->program->schedule.items[index].slot, &it->args);
	return rc;
}

static int enqueue_apart(struct streams *e, struct stream_program *sp, const struct exec_look *look, struct err *err)
{
	int rc = fork_streams(e, sp, err);

	for (int i = 0; !rc && i < sp->n; i++)
		rc = enqueue_alone(e, sp, i, look, err);
	return rc ? rc : join_streams(e, sp, err);
}

/* A run of the program, behind those that are under way. */
static int enqueue_run(struct streams *e, struct stream_program *sp, const struct exec_call *call, struct err *err)
{
	const bool apart = e->profiled || call->look.see;
	struct graph_handle *graph = e->traced ? NULL : sp->graph[e->slot];
	char name[80];
	int rc;

	snprintf(name, sizeof(name), "step %lld %s", (long long)call->page->step, sp->program->name);
	range_begin(e, name);
	rc = record_mark(e, &sp->marks[0], err);
	if (!rc)
		rc = ring_send(e->ring, e->slot, sp->program, call, err);
	if (!rc && apart)
		rc = enqueue_apart(e, sp, &call->look, err);
	else if (!rc && graph)
		rc = e->ops->graph_launch(e->module, e->stream[STREAM_COMPUTE], graph, err);
	else if (!rc)
		rc = enqueue(e, sp, err);
	if (!rc)
		rc = ring_receive(e->ring, e->slot, sp->program, err);
	range_end(e);
	return rc;
}

static int read_times(struct streams *e, const struct stream_program *sp, int slot, struct exec_times *ret,
		      struct err *err)
{
	struct exec_times times = { .comm_total = 0 };
	int rc = 0;

	for (int i = 0; !rc && i + 1 < sp->n_marks; i++) {
		double s = 0;

		rc = e->ops->seconds(e->module, sp->marks[i].event[slot], sp->marks[i + 1].event[slot], &s, err);
		times.by[sp->marks[i].kind] += s;
	}
	if (!rc)
		*ret = times;
	return rc;
}

/* ---- spans ---- */

/* Events are made in the first step that is traced. */
static int begin_trace(struct streams *e, struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		rc = event_of(e, &sp->items[i].from, true, err);
		if (!rc)
			rc = event_of(e, &sp->items[i].to, true, err);
	}
	return rc;
}

struct timing { /* of a traced run */
	const struct stream_program *program;
	struct trace *trace;
	int slot;
	double end_s; /* on the host's clock, by which it was over */
};

static int add_span(struct streams *e, const struct timing *t, struct trace_span s, struct event_handle *from,
		    struct event_handle *to, struct err *err)
{
	struct event_handle *last = t->program->marks[t->program->n_marks - 1].event[t->slot];
	double from_end = 0, to_end = 0;
	int rc = e->ops->seconds(e->module, from, last, &from_end, err);

	if (!rc)
		rc = e->ops->seconds(e->module, to, last, &to_end, err);
	s.from_s = t->end_s - from_end;
	s.to_s = t->end_s - to_end;
	if (!rc)
		trace_add(t->trace, &s);
	return rc;
}

/* The turns of the compute stream fill the step; every node is a span of its stream. */
static int add_spans(struct streams *e, const struct timing *t, struct err *err)
{
	const struct stream_program *sp = t->program;
	int rc = 0;

	for (int i = 0; !rc && i + 1 < sp->n_marks; i++) {
		const char *kind = exec_time_name(sp->marks[i].kind);

		rc = add_span(e, t, (struct trace_span){ TRACE_STEP_ROW, 0, kind, kind, -1, 0, 0 },
			      sp->marks[i].event[t->slot], sp->marks[i + 1].event[t->slot], err);
	}
	for (int i = 0; !rc && i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];
		const char *phase = it->node->op->collective ? "comm" : phase_name(it->node->phase);

		rc = add_span(e, t,
			      (struct trace_span){ stream_name(it->stream), 0, it->node->name, phase, it->node->id, 0,
						   0 },
			      it->from, it->to, err);
	}
	return rc;
}

static struct stream_program *find(const struct streams *e, const struct program *p)
{
	for (int i = 0; i < e->n_programs; i++)
		if (e->programs[i].program == p)
			return &e->programs[i];
	return NULL;
}

/* What still waits for other ranks, here or on the device, ends. */
static void give_up(struct streams *e)
{
	struct comm *all = e->prepared->opts.comm;

	e->failed = true;
	devices_abort(e->prepared->opts.devices);
	if (all)
		all->ops->abort(all);
}

static int refuse(struct err *err)
{
	return err_set(err, ERR_IO, "the device failed before");
}

/* Of a node that is timed or looked at; made when somebody first asks. */
static int node_events(struct streams *e, struct err *err)
{
	int rc = event_of(e, &e->node_from, true, err);

	return rc ? rc : event_of(e, &e->node_to, true, err);
}

/* One that is alone always takes the first slot: programs that never run ahead need one graph. */
static int streams_begin(struct exec *exec, const struct program *p, const struct exec_call *call, struct err *err)
{
	struct streams *e = (struct streams *)exec;
	struct stream_program *sp = find(e, p);
	int rc;

	if (e->failed)
		return refuse(err);
	if (!e->n)
		e->first = 0;
	e->slot = (e->first + e->n) % RING_SLOTS;
	e->traced = trace_on(call->trace);
	e->run[e->slot] = (struct stream_run){ sp, e->traced ? call->trace : NULL };
	rc = e->traced ? begin_trace(e, sp, err) : 0;
	if (!rc && call->look.see)
		rc = node_events(e, err);
	if (!rc)
		rc = enqueue_run(e, sp, call, err);
	if (rc)
		give_up(e);
	else
		e->n++;
	return rc;
}

static int streams_fed(struct exec *exec, struct err *err)
{
	struct streams *e = (struct streams *)exec;
	int rc = e->failed ? refuse(err) : wait_host(e, ring_fed(e->ring), err);

	if (rc && !e->failed)
		give_up(e);
	return rc;
}

static int end_run(struct streams *e, int slot, struct exec_done *ret, struct err *err)
{
	const struct stream_run *run = &e->run[slot];
	int rc = wait_host(e, ring_over(e->ring, slot), err);

	if (!rc && run->trace)
		rc = add_spans(e, &(struct timing){ run->program, run->trace, slot, clock_mono_s() }, err);
	if (!rc)
		rc = read_times(e, run->program, slot, &ret->times, err);
	if (!rc)
		ring_read(e->ring, slot, run->program->program, ret);
	return rc;
}

static int streams_end(struct exec *exec, struct exec_done *ret, struct err *err)
{
	struct streams *e = (struct streams *)exec;
	const int slot = e->first;
	int rc;

	if (e->failed)
		return refuse(err);
	rc = end_run(e, slot, ret, err);
	if (rc) {
		give_up(e);
		return rc;
	}
	e->first = (slot + 1) % RING_SLOTS;
	e->n--;
	return 0;
}

static int streams_ahead(const struct exec *exec)
{
	const struct streams *e = (const struct streams *)exec;

	return e->profiled ? 0 : EXEC_AHEAD_MAX;
}

/* ---- life ---- */

static int capture(struct streams *e, struct stream_program *sp, int slot, struct err *err)
{
	struct stream_handle *s = e->stream[STREAM_COMPUTE];
	int rc = e->ops->capture_begin(e->module, s, err);

	e->slot = slot;
	if (!rc)
		rc = enqueue(e, sp, err);
	return rc ? rc : e->ops->capture_end(e->module, s, &sp->graph[slot], err);
}

static int clear_input(const struct streams *e, const struct tensor *t, int slots, struct err *err)
{
	const size_t bytes = tensor_bytes(t);
	void *zeros = calloc(bytes + 1, 1);
	int rc = zeros ? 0 : err_set(err, ERR_NOMEM, "out of memory: %s", t->name);

	for (int slot = 0; !rc && bytes && slot < slots; slot++)
		rc = prepared_copy(e->prepared, prepared_slot(e->prepared, t, slot), zeros, bytes, err);
	free(zeros);
	return rc;
}

/* Tokens and labels are numbers of rows: what another program left in their memory is none. */
static int clear_inputs(const struct streams *e, const struct program *p, struct err *err)
{
	const struct graph *g = p->graph;
	int rc = 0;

	for (int i = 0; !rc && i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			rc = clear_input(e, g->tensors[i], g->tensors[i]->life == LIFE_MICRO ? p->schedule.slots : 1,
					 err);
	return rc;
}

static int rehearse(struct streams *e, struct stream_program *sp, struct err *err)
{
	const struct step_page page = { .rehearsal = 1, .inv_count = 1, .loss_scale = 1 };
	const int slots = sp->program->kind == PROGRAM_EVAL ? 1 : RING_SLOTS;
	struct exec_done ignored;
	int rc = clear_inputs(e, sp->program, err);

	if (!rc)
		rc = streams_begin(&e->exec, sp->program, &(struct exec_call){ .page = &page }, err);
	if (!rc)
		rc = streams_end(&e->exec, &ignored, err);
	for (int slot = 0; !rc && e->graphs && slot < slots; slot++)
		rc = capture(e, sp, slot, err);
	return rc;
}

static void free_program(struct streams *e, struct stream_program *sp)
{
	for (int i = 0; i < sp->n; i++) {
		struct event_handle *const own[] = { sp->items[i].event, sp->items[i].from, sp->items[i].to };

		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			if (own[k])
				e->ops->event_free(e->module, own[k]);
	}
	for (int s = 0; s < STREAM_COUNT; s++)
		if (sp->joins[s])
			e->ops->event_free(e->module, sp->joins[s]);
	for (int i = 0; i < RING_SLOTS; i++) {
		for (int k = 0; k < sp->n_marks; k++)
			if (sp->marks[k].event[i])
				e->ops->event_free(e->module, sp->marks[k].event[i]);
		if (sp->graph[i])
			e->ops->graph_free(e->module, sp->graph[i]);
	}
	free(sp->items);
	free(sp->marks);
	free(sp->node_seconds);
}

/* Memory that the device may still use is about to be freed. */
static void let_finish(struct streams *e)
{
	struct err ignored = ERR_INIT;

	if (!e->begin || record(e, STREAM_COMPUTE, e->begin, &ignored))
		return;
	wait_host(e, e->begin, &ignored);
}

static void streams_close(struct exec *exec)
{
	struct streams *e = (struct streams *)exec;
	struct event_handle *const own[] = { e->begin, e->node_from, e->node_to };

	if (e->failed || e->n)
		let_finish(e);
	for (int i = 0; i < e->n_programs; i++)
		free_program(e, &e->programs[i]);
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

static int open_all(struct streams *e, struct err *err)
{
	const struct prepared *p = e->prepared;
	int rc = stream_of(e, STREAM_COMPUTE, err);

	if (!rc)
		rc = ring_open(&e->ring, p, e->stream[STREAM_COMPUTE], err);
	if (!rc)
		rc = event_of(e, &e->begin, false, err);
	for (int i = 0; !rc && i < p->n_programs; i++)
		rc = fill_program(e, &e->programs[e->n_programs++], p->program[i], err);
	for (int i = 0; !rc && i < p->n_programs; i++)
		rc = rehearse(e, &e->programs[i], err);
	return rc;
}

static int streams_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	struct streams *e = calloc(1, sizeof(*e));
	int rc;

	if (e)
		e->programs = calloc((size_t)p->n_programs + 1, sizeof(*e->programs));
	if (!e || !e->programs) {
		free(e);
		return err_set(err, ERR_NOMEM, "out of memory: executor");
	}
	e->exec.ops = &exec_stream;
	e->prepared = p;
	e->ops = p->opts.backend->streams;
	e->module = p->opts.module;
	e->graphs = !p->opts.node_by_node;
	rc = open_all(e, err);
	if (rc) {
		give_up(e);
		streams_close(&e->exec);
		return rc;
	}
	*ret = &e->exec;
	return 0;
}

static int streams_profile(struct exec *exec, struct err *err)
{
	struct streams *e = (struct streams *)exec;
	int rc = node_events(e, err);

	for (int i = 0; !rc && i < e->n_programs; i++)
		rc = exec_time_begin(&e->programs[i].node_seconds, e->programs[i].program, err);
	e->profiled = !rc;
	return rc;
}

static const double *streams_node_seconds(const struct exec *exec, const struct program *p)
{
	const struct stream_program *sp = find((const struct streams *)exec, p);

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
