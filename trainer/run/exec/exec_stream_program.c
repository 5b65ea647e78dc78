/* SPDX-License-Identifier: Apache-2.0 */
/* exec_stream_program.c: turns a schedule into stream items: operands, events where one stream waits for another, and
 * marks where the compute stream changes its kind of work; groups them; reads the times of a finished run. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"

int stream_make(struct stream_executor *e, enum stream s, struct err *err)
{
	return e->stream[s] ? 0 : e->ops->stream_new(e->module, &e->stream[s], err);
}

int stream_event(struct stream_executor *e, struct event_handle **ret, bool timed, struct err *err)
{
	return *ret ? 0 : e->ops->event_new(e->module, timed, ret, err);
}

/* Fills one item from the schedule: its kernel, operands and stream. */
static void fill_stream_item(struct stream_executor *e, struct stream_item *it, const struct program *p, int index)
{
	const struct schedule_item *s = &p->schedule.items[index];
	const struct node *n = s->node;
	void **operands = arena_array(p->graph->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*operands));
	unsigned char *workspace = e->prepared->slab[SPACE_PRIVATE];

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
}

/* Returns the last item of stream s in front of a position of the schedule; NULL: there is none. */
static struct stream_item *find_item_before(struct stream_program *sp, enum stream s, int position)
{
	for (int i = position - 1; i >= 0; i--)
		if (sp->items[i].stream == s)
			return &sp->items[i];
	return NULL;
}

static int fill_waits(struct stream_executor *e, struct stream_program *sp, int index, struct err *err)
{
	const struct schedule_item *s = &sp->program->schedule.items[index];
	int rc = 0;

	for (int k = 0; !rc && k < STREAM_COUNT; k++) {
		struct stream_item *before = s->wait[k] ? find_item_before(sp, (enum stream)k, s->wait[k]) : NULL;

		if (!before)
			continue;
		rc = stream_event(e, &before->event, false, err);
		sp->items[index].wait[k] = before->event;
	}
	return rc;
}

static bool stream_item_waits(const struct stream_item *it)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (it->wait[k])
			return true;
	return false;
}

static int add_time_mark(struct stream_executor *e, struct stream_program *sp, enum exec_time kind,
			 struct stream_mark **ret, struct err *err)
{
	struct stream_mark *m = &sp->marks[sp->n_marks];
	int rc = 0;

	if (sp->n_marks && m[-1].kind == kind)
		return 0;
	m->kind = kind;
	sp->n_marks++;
	for (int slot = 0; !rc && slot < RING_SLOTS; slot++)
		rc = stream_event(e, &m->event[slot], true, err);
	*ret = m;
	return rc;
}

static enum exec_time stream_wait_kind(const struct stream_item *it)
{
	int s = STREAM_COMPUTE + 1;

	while (s < STREAM_COUNT - 1 && !it->wait[s])
		s++;
	return exec_time_of_wait((enum stream)s);
}

/* Adds marks where the compute stream changes its kind of work and where it waits for other streams. The first mark is
 * before all that a run sends. */
static int fill_marks(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	struct stream_mark *ignored = NULL;
	int rc = add_time_mark(e, sp, EXEC_H2D, &ignored, err);

	for (int i = 0; !rc && i < sp->n; i++) {
		struct stream_item *it = &sp->items[i];

		if (it->stream != STREAM_COMPUTE)
			continue;
		if (stream_item_waits(it))
			rc = add_time_mark(e, sp, stream_wait_kind(it), &it->before, err);
		if (!rc)
			rc = add_time_mark(e, sp, exec_time_of(it->node), &it->begins, err);
	}
	return rc ? rc : add_time_mark(e, sp, EXEC_TIMES, &ignored, err);
}

/* A stream whose first item waits for another stream begins after it; a stream whose last item is awaited ends before
 * the waiting item. Waiting items are always later in the schedule, so such chains end at the compute stream or at a
 * join. */
static int fill_ends(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	bool seen[STREAM_COUNT] = { false }, waited[STREAM_COUNT];
	int rc = 0;

	for (int i = 0; i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];

		if (!seen[it->stream])
			sp->forks[it->stream] = !stream_item_waits(it);
		seen[it->stream] = true;
		waited[it->stream] = it->event != NULL;
	}
	for (int s = STREAM_COMPUTE + 1; !rc && s < STREAM_COUNT; s++)
		if (seen[s] && !waited[s])
			rc = stream_event(e, &sp->joins[s], false, err);
	return rc;
}

int stream_program_fill(struct stream_executor *e, struct stream_program *sp, const struct program *p, struct err *err)
{
	const size_t n = (size_t)p->schedule.n;
	int rc = 0;

	sp->program = p;
	sp->items = mem_array(n + 1, sizeof(*sp->items));
	sp->marks = mem_array(2 * n + 2, sizeof(*sp->marks));
	for (int i = 0; !rc && i < p->schedule.n; i++) {
		enum stream s = p->schedule.items[i].stream;

		rc = stream_make(e, s, err);
		fill_stream_item(e, &sp->items[i], p, i);
		sp->n = i + 1;
		if (!rc)
			rc = fill_waits(e, sp, i, err);
	}
	if (!rc)
		rc = fill_ends(e, sp, err);
	if (!rc)
		rc = fill_marks(e, sp, err);
	if (!rc)
		stream_program_group(sp);
	return rc;
}

void stream_program_free(struct stream_executor *e, struct stream_program *sp)
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

/* ---- groups ----
 *
 * Items that can share launches: items of one kernel that can run many, adjacent on a stream except for nodes that
 * watch, without an event or a time mark between them. */

#define GROUP_MAX 1024 /* items; each is compared with each */

struct memory_range { /* range of memory */
	const unsigned char *begin, *end;
};

static bool ranges_overlap(struct memory_range a, struct memory_range b)
{
	return a.begin < b.end && b.begin < a.end;
}

static struct memory_range operand_range(void *const *addresses, struct tensor *const *tensors, int k)
{
	const unsigned char *p = addresses[k];

	return (struct memory_range){ p, p && tensors[k] ? p + tensor_bytes(tensors[k]) : p };
}

static struct memory_range workspace_range(const struct stream_item *it)
{
	const unsigned char *p = it->args.workspace;

	return (struct memory_range){ p, p ? p + it->node->workspace_bytes : p };
}

static bool touches_range(const struct stream_item *it, struct memory_range p)
{
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (ranges_overlap(p, operand_range(it->args.in, n->in, k)))
			return true;
	for (int k = 0; k < n->n_out; k++)
		if (ranges_overlap(p, operand_range(it->args.out, n->out, k)))
			return true;
	return false;
}

/* Returns true if the first writes what the second reads or writes. For workspaces see run_many. */
static bool writes_operand_of(const struct stream_item *a, const struct stream_item *b)
{
	for (int k = 0; k < a->node->n_out; k++) {
		const struct memory_range written = operand_range(a->args.out, a->node->out, k);

		if (touches_range(b, written) || ranges_overlap(written, workspace_range(b)))
			return true;
	}
	return touches_range(b, workspace_range(a));
}

static bool same_types(struct tensor *const *a, struct tensor *const *b, int n)
{
	for (int k = 0; k < n; k++)
		if (!a[k] != !b[k] || (a[k] && a[k]->dtype != b[k]->dtype))
			return false;
	return true;
}

static bool same_kernel_call(const struct stream_item *a, const struct stream_item *b)
{
	const struct node *m = a->node, *n = b->node;

	return a->kernel == b->kernel && a->stream == b->stream && a->args.page == b->args.page && m->n_in == n->n_in &&
	       m->n_out == n->n_out && same_types(m->in, n->in, n->n_in) && same_types(m->out, n->out, n->n_out);
}

/* Returns true if the item has no waits and no time marks. */
static bool has_no_events(const struct stream_item *it)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (it->wait[k])
			return false;
	return !it->before && !it->begins;
}

static bool may_join_group(const struct stream_program *sp, const int *members, int n, int index)
{
	const struct stream_item *it = &sp->items[index];

	if (n == GROUP_MAX || !same_kernel_call(&sp->items[members[0]], it))
		return false;
	for (int k = 0; k < n; k++)
		if (writes_operand_of(&sp->items[members[k]], it) || writes_operand_of(it, &sp->items[members[k]]))
			return false;
	return true;
}

/* Lists in `members` the items from `first` on that run together with it; returns their number. */
static int collect_group(const struct stream_program *sp, int first, int *members)
{
	int n = 1;

	members[0] = first;
	for (int i = first + 1; i < sp->n && !sp->items[i - 1].event && has_no_events(&sp->items[i]); i++) {
		if (sp->items[i].node->op->watches)
			continue;
		if (!may_join_group(sp, members, n, i))
			break;
		members[n++] = i;
	}
	return n;
}

static void make_stream_group(struct stream_program *sp, const int *members, int n)
{
	struct arena *arena = sp->program->graph->arena;
	struct stream_group *g = arena_array(arena, 1, sizeof(*g));
	void **states = arena_array(arena, (size_t)n, sizeof(*states));
	struct kernel_args *args = arena_array(arena, (size_t)n, sizeof(*args));

	*g = (struct stream_group){ states, args, n };
	for (int k = 0; k < n; k++) {
		struct stream_item *it = &sp->items[members[k]];

		states[k] = it->state;
		args[k] = it->args;
		it->group = g;
		it->leads = k == 0;
	}
}

void stream_program_group(struct stream_program *sp)
{
	int members[GROUP_MAX];

	for (int i = 0; i < sp->n; i++) {
		const int n = sp->items[i].kernel->run_many ? collect_group(sp, i, members) : 1;

		if (n > 1) {
			make_stream_group(sp, members, n);
			i = members[n - 1];
		}
	}
}

/* ---- times ---- */

int stream_times(struct stream_executor *e, const struct stream_program *sp, int slot, struct exec_times *ret,
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

int stream_trace_begin(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		rc = stream_event(e, &sp->items[i].from, true, err);
		if (!rc)
			rc = stream_event(e, &sp->items[i].to, true, err);
	}
	return rc;
}

struct traced_run { /* the spans of a traced run */
	struct stream_executor *executor;
	const struct stream_program *program;
	struct trace *trace;
	int slot;
	double end_s; /* host clock when it was finished */
};

static int add_span(const struct traced_run *t, struct trace_span s, struct event_handle *from, struct event_handle *to,
		    struct err *err)
{
	struct event_handle *last = t->program->marks[t->program->n_marks - 1].event[t->slot];
	double from_end = 0, to_end = 0;
	int rc = t->executor->ops->seconds(t->executor->module, from, last, &from_end, err);

	if (!rc)
		rc = t->executor->ops->seconds(t->executor->module, to, last, &to_end, err);
	s.from_s = t->end_s - from_end;
	s.to_s = t->end_s - to_end;
	if (!rc)
		trace_add(t->trace, &s);
	return rc;
}

/* The marks of the compute stream divide the step without gaps; every node is a span of its stream. */
int stream_trace_end(struct stream_executor *e, int slot, struct err *err)
{
	const struct stream_program *sp = e->run[slot].program;
	const struct traced_run timing = { e, sp, e->run[slot].trace, slot, clock_mono_s() }, *t = &timing;
	int rc = 0;

	for (int i = 0; !rc && i + 1 < sp->n_marks; i++) {
		const char *kind = exec_time_name(sp->marks[i].kind);

		rc = add_span(t, (struct trace_span){ TRACE_STEP_ROW, 0, kind, kind, -1, 0, 0 },
			      sp->marks[i].event[t->slot], sp->marks[i + 1].event[t->slot], err);
	}
	for (int i = 0; !rc && i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];
		const char *phase = it->node->op->collective ? "comm" : phase_name(it->node->phase);

		rc = add_span(t,
			      (struct trace_span){ stream_name(it->stream), 0, it->node->name, phase, it->node->id, 0,
						   0 },
			      it->from, it->to, err);
	}
	return rc;
}

int stream_node_seconds(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];
		double s = 0;

		rc = e->ops->seconds(e->module, it->from, it->to, &s, err);
		sp->node_seconds[it->node->id] += s;
	}
	return rc;
}
