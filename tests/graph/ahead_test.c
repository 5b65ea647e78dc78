/* SPDX-License-Identifier: Apache-2.0 */
/* ahead_test.c: runs that begin on a device while the previous one is still running. Uses the executor of devices on a
 * backend that only records what is enqueued: any two accesses to the same bytes, by kernels, copies or the host, one
 * of them a write, are ordered by streams, events and the host's waits; without any one of these waits they are not.
 * The host does not wait to begin a run. A run that the caller gives up does not begin; the one before it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/ops.h"
#include "trainer/run/exec/exec.h"

#define VALUES XENT_RESULTS
#define RUNS 6
#define ACCESSES_MAX 2000
#define AREAS_MAX 8

enum { HOST, LANES = STREAM_COUNT + 2 };

/* ---- moments: how many operations of each lane are complete by then ---- */

struct moment {
	int seen[LANES];
};

static void join(struct moment *to, const struct moment *other)
{
	for (int i = 0; i < LANES; i++)
		to->seen[i] = other->seen[i] > to->seen[i] ? other->seen[i] : to->seen[i];
}

struct stream_handle {
	int lane;
};

struct event_handle {
	struct moment at;
};

struct access {
	const char *what, *from, *to;
	bool written;
	int lane, tick;
	struct moment at;
};

struct graph_handle { /* all its kernels count as one operation */
	struct access *access;
	int n;
};

struct area {
	char *from, *to;
};

static struct {
	struct moment now[LANES];
	struct access access[ACCESSES_MAX];
	int n;
	int lanes;
	bool on, capturing;
	int waits, left_out; /* so far; the number of the one that is omitted, from 1 */
	int host_waits;
	struct area pinned[AREAS_MAX];
	int n_pinned;
} seen;

static int begin_thing(int lane)
{
	if (lane != HOST)
		join(&seen.now[lane], &seen.now[HOST]);
	return ++seen.now[lane].seen[lane];
}

static void note(const char *what, int lane, const void *from, size_t bytes, bool written)
{
	struct access *a = &seen.access[seen.n];

	if (!seen.on || !bytes)
		return;
	assert_true(++seen.n < ACCESSES_MAX);
	*a = (struct access){ what, from, (const char *)from + bytes, written, lane, seen.now[lane].seen[lane],
			      seen.now[lane] };
}

static bool ordered(const struct access *a, const struct access *b)
{
	return b->at.seen[a->lane] >= a->tick || a->at.seen[b->lane] >= b->tick;
}

/* The first pair that is not ordered; NULL when all are. */
static const struct access *find_unordered(const struct access **other)
{
	for (int i = 0; i < seen.n; i++)
		for (int k = 0; k < i; k++) {
			const struct access *a = &seen.access[i], *b = &seen.access[k];

			*other = b;
			if ((a->written || b->written) && a->from < b->to && b->from < a->to && !ordered(a, b))
				return a;
		}
	return NULL;
}

static bool happens(void)
{
	return !seen.on || ++seen.waits != seen.left_out;
}

/* ---- the backend ---- */

static int take_memory(void *module, enum space space, size_t bytes, void **ret, struct err *err)
{
	(void)module, (void)err;
	*ret = calloc(1, bytes);
	assert_non_null(*ret);
	if (space == SPACE_PINNED) {
		assert_true(seen.n_pinned < AREAS_MAX);
		seen.pinned[seen.n_pinned++] = (struct area){ *ret, (char *)*ret + bytes };
	}
	return 0;
}

static void give_memory(void *module, enum space space, void *memory, size_t bytes)
{
	(void)module, (void)space, (void)bytes;
	free(memory);
}

static int copy_now(void *module, void *to, const void *from, size_t bytes, struct err *err)
{
	(void)module, (void)err;
	memcpy(to, from, bytes);
	return 0;
}

static bool is_pinned(const void *p)
{
	for (int i = 0; i < seen.n_pinned; i++)
		if ((const char *)p >= seen.pinned[i].from && (const char *)p < seen.pinned[i].to)
			return true;
	return false;
}

/* Data copied from the host's memory was written by the host just before. */
static int copy_async(void *module, struct stream_handle *s, const struct backend_copy *c, struct err *err)
{
	(void)module, (void)err;
	assert_false(seen.capturing);
	if (is_pinned(c->from)) {
		begin_thing(HOST);
		note("the host fills", HOST, c->from, c->bytes, true);
	}
	begin_thing(s->lane);
	note("a copy reads", s->lane, c->from, c->bytes, false);
	note("a copy writes", s->lane, c->to, c->bytes, true);
	return 0;
}

static int stream_new(void *module, struct stream_handle **ret, struct err *err)
{
	(void)module, (void)err;
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->lane = ++seen.lanes;
	assert_true(seen.lanes < LANES);
	return 0;
}

static void stream_free(void *module, struct stream_handle *s)
{
	(void)module;
	free(s);
}

static int event_new(void *module, bool timed, struct event_handle **ret, struct err *err)
{
	(void)module, (void)timed, (void)err;
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	return 0;
}

static void event_free(void *module, struct event_handle *e)
{
	(void)module;
	free(e);
}

static int record(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	(void)module, (void)err;
	if (!seen.capturing)
		e->at = seen.now[s->lane];
	return 0;
}

static int stream_wait(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	(void)module, (void)err;
	if (!seen.capturing && happens())
		join(&seen.now[s->lane], &e->at);
	return 0;
}

static int event_sync(void *module, struct event_handle *e, struct err *err)
{
	(void)module, (void)err;
	seen.host_waits++;
	if (happens())
		join(&seen.now[HOST], &e->at);
	return 0;
}

static int event_done(void *module, struct event_handle *e, bool *ret, struct err *err)
{
	*ret = true;
	return event_sync(module, e, err);
}

static int seconds(void *module, struct event_handle *from, struct event_handle *to, double *ret, struct err *err)
{
	(void)module, (void)from, (void)to, (void)err;
	*ret = 0;
	return 0;
}

static int capture_begin(void *module, struct stream_handle *s, struct err *err)
{
	(void)module, (void)s, (void)err;
	seen.capturing = seen.on = true;
	seen.n = 0;
	return 0;
}

static int capture_end(void *module, struct stream_handle *s, struct graph_handle **ret, struct err *err)
{
	(void)module, (void)s, (void)err;
	seen.capturing = seen.on = false;
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->n = seen.n;
	(*ret)->access = calloc((size_t)seen.n + 1, sizeof(struct access));
	assert_non_null((*ret)->access);
	memcpy((*ret)->access, seen.access, (size_t)seen.n * sizeof(struct access));
	return 0;
}

static int graph_launch(void *module, struct stream_handle *s, struct graph_handle *g, struct err *err)
{
	(void)module, (void)err;
	begin_thing(s->lane);
	for (int i = 0; i < g->n; i++)
		note(g->access[i].what, s->lane, g->access[i].from, (size_t)(g->access[i].to - g->access[i].from),
		     g->access[i].written);
	return 0;
}

static void recorded_free(void *module, struct graph_handle *g)
{
	(void)module;
	free(g->access);
	free(g);
}

static const struct backend_streams streams = {
	.stream_new = stream_new,
	.stream_free = stream_free,
	.event_new = event_new,
	.event_free = event_free,
	.record = record,
	.wait = stream_wait,
	.copy_async = copy_async,
	.event_sync = event_sync,
	.event_done = event_done,
	.seconds = seconds,
	.capture_begin = capture_begin,
	.capture_end = capture_end,
	.graph_launch = graph_launch,
	.graph_free = recorded_free,
};

static void run_node(void *state, const struct kernel_args *a)
{
	const struct node *n = state;

	begin_thing(a->stream->lane);
	note("a node's page", a->stream->lane, a->page, sizeof(*a->page), false);
	for (int i = 0; i < n->n_in; i++)
		note(n->name, a->stream->lane, a->in[i], tensor_bytes(n->in[i]), false);
	for (int i = 0; i < n->n_out; i++)
		note(n->name, a->stream->lane, a->out[i], tensor_bytes(n->out[i]), true);
}

static const struct kernel noted = { .run = run_node };

/* ---- a handmade program ---- */

struct rig {
	struct backend backend;
	struct prepared prepared;
	struct program program;
	double *inputs, *targets; /* the loader's only slot */
};

static struct tensor *input(struct graph *g, const char *name, int64_t n, enum lifetime life)
{
	return graph_tensor(g, &(struct tensor){ .name = name,
						 .kind = life == LIFE_PERSISTENT ? TENSOR_MOMENT : TENSOR_INPUT,
						 .dtype = DTYPE_F64,
						 .shape = SHAPE(n),
						 .life = life });
}

static struct tensor *sum(struct graph *g, struct tensor *a, struct tensor *b, enum stream stream, struct tensor *out)
{
	struct tensor *in[] = { a, b };
	const struct op *op = out ? &op_accumulate : &op_add;
	struct node *n = graph_node(g, &(struct node_spec){ .op = op, .in = in, .n_in = 2, .out = &out, .n_out = 1 });

	assert_non_null(n);
	n->stream = stream;
	n->out[0]->keep = true;
	return n->out[0];
}

/* Work on three streams, one of which is joined only at the end; everything that is copied to a device and back. */
static void build(struct program *p)
{
	struct graph *g = graph_new(true);
	struct tensor *x = input(g, "x", VALUES, LIFE_MICRO), *t = input(g, "t", VALUES, LIFE_MICRO), *a, *b, *c;
	struct tensor *state = input(g, STEP_GUARD_STATE_NAME, STEP_GUARD_STATE_VALUES, LIFE_PERSISTENT);
	struct tensor *more = input(g, "more", STEP_GUARD_STATE_VALUES, LIFE_MICRO),
		      *vote = input(g, "vote", 1, LIFE_STEP);

	a = sum(g, x, t, STREAM_COMPUTE, NULL);
	b = sum(g, a, a, STREAM_COMM, NULL);
	c = sum(g, a, x, STREAM_GATHER, NULL);
	sum(g, c, c, STREAM_COPY_OUT, NULL);
	sum(g, state, more, STREAM_COMPUTE, state);
	*p = (struct program){ .name = "train-4",
			       .graph = g,
			       .kind = PROGRAM_STEP,
			       .inputs = x,
			       .targets = t,
			       .result = a,
			       .losses = c,
			       .optimizer = state,
			       .vote = vote };
	p->votes = sum(g, vote, vote, STREAM_COMPUTE, NULL);
	p->result_sum = sum(g, b, c, STREAM_COMPUTE, NULL);
}

static void open_rig(struct rig *r, bool graphs)
{
	struct program *p = &r->program;
	struct plan_program planned = { "train-4", NULL, &p->schedule };
	const size_t batch = 4 * PLAN_ALIGN_BYTES;
	struct err err = ERR_INIT;
	void *memory;

	build(p);
	planned.graph = p->graph;
	r->backend = backend_ref;
	r->backend.alloc = take_memory;
	r->backend.release = give_memory;
	r->backend.copy = copy_now;
	r->backend.streams = &streams;
	r->backend.kernel[OP_add] = r->backend.kernel[OP_accumulate] = &noted;
	p->state = (void **)calloc((size_t)p->graph->n_nodes, sizeof(void *));
	for (int i = 0; i < p->graph->n_nodes; i++)
		p->state[i] = p->graph->nodes[i];
	r->prepared = (struct prepared){
		.opts = { .backend = &r->backend, .node_by_node = !graphs, .optimizer.scaling = true },
		.program = { p },
		.n_programs = 1,
	};
	assert_int_equal(schedule_make(&p->schedule, p->graph, &err), 0);
	assert_int_equal(plan_make(&r->prepared.plan, &planned, 1, &err), 0);
	r->prepared.feed_offset = r->prepared.plan.slab_bytes[SPACE_PRIVATE];
	r->prepared.plan.slab_bytes[SPACE_PRIVATE] += batch;
	r->prepared.plan.slab_bytes[SPACE_PINNED] = batch;
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(prepare_memory(&r->prepared, &err), 0);
	memory = r->prepared.slab[SPACE_PINNED];
	r->inputs = memory;
	r->targets = r->inputs + VALUES;
}

static void close_rig(struct rig *r)
{
	for (int s = 0; s < SPACE_COUNT; s++)
		free(r->prepared.slab[s]);
	free(r->program.state);
	graph_free(r->program.graph);
}

/* The caller may refill its memory when exec_fed returns. */
static void begin(struct exec *e, const struct rig *r, int step)
{
	const struct step_page page = { .step = step };
	struct exec_call call = { .page = &page, .inputs = r->inputs, .targets = r->targets };
	struct err err = ERR_INIT;
	const int waits = seen.host_waits;

	assert_int_equal(exec_begin(e, &r->program, &call, &err), 0);
	assert_int_equal(seen.host_waits, waits);
	assert_int_equal(exec_fed(e, &err), 0);
	begin_thing(HOST);
	note("the loader fills", HOST, r->inputs, 2 * VALUES * sizeof(double), true);
}

/* Reads the copied results. */
static void end(struct exec *e)
{
	struct exec_done done;
	struct err err = ERR_INIT;

	assert_int_equal(exec_end(e, &done, &err), 0);
	assert_non_null(done.losses);
	begin_thing(HOST);
	note("the host reads losses", HOST, done.losses, VALUES * sizeof(double), false);
}

struct waits { /* their numbers: after the begin of the first run, before that of the last one */
	int first, last;
};

/* Whether everything is ordered when that wait is omitted. */
static bool all_ordered(bool graphs, int left_out, struct waits *ret)
{
	const struct access *a, *b;
	struct rig r;
	struct err err = ERR_INIT;
	struct exec *e;

	open_rig(&r, graphs);
	assert_int_equal(exec_new(&e, &r.prepared, &err), 0);
	seen.n = 0;
	seen.on = true;
	seen.left_out = left_out;
	assert_int_equal(exec_ahead(e), 1);
	begin(e, &r, 1);
	ret->first = seen.waits + 1;
	for (int step = 2; step <= RUNS; step++) {
		ret->last = seen.waits;
		begin(e, &r, step);
		end(e);
	}
	end(e);
	seen.on = false;
	a = find_unordered(&b);
	if (a && !left_out)
		printf("not ordered: %s, %s\n", b->what, a->what);
	exec_free(e);
	close_rig(&r);
	return !a;
}

/* The first run does not wait for another, and a wait omitted in the last run would only affect later ones. */
static void prove(bool graphs)
{
	struct waits all, ignored;
	int superfluous = 0;

	assert_true(all_ordered(graphs, 0, &all));
	assert_true(all.last - all.first >= 3 * (RUNS - 2));
	for (int k = all.first; k <= all.last; k++)
		if (all_ordered(graphs, k, &ignored)) {
			printf("%s: wait %d is unnecessary\n", graphs ? "graphs" : "nodes", k);
			superfluous++;
		}
	assert_int_equal(superfluous, 0);
}

static void graphs_and_copies_are_ordered(void **state)
{
	(void)state;
	prove(true);
}

static void nodes_and_copies_are_ordered(void **state)
{
	(void)state;
	prove(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_and_copies_are_ordered),
		cmocka_unit_test(nodes_and_copies_are_ordered),
	};

	return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
