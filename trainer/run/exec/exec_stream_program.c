/* exec_stream_program.c: turns a schedule into stream items: operands, events where one stream waits for another, and
 * marks where the compute stream changes its kind of work. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdlib.h>

int stream_make(struct stream_executor *e, enum stream s, struct err *err)
{
	return e->stream[s] ? 0 : e->ops->stream_new(e->module, &e->stream[s], err);
}

int stream_event(struct stream_executor *e, struct event_handle **ret, bool timed, struct err *err)
{
	return *ret ? 0 : e->ops->event_new(e->module, timed, ret, err);
}

/* Fills one item from the schedule: its kernel, operands and stream. */
static int fill_stream_item(struct stream_executor *e, struct stream_item *it, const struct program *p, int index,
			    struct err *err)
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
			 struct stream_mark **ret,
			 struct err *err)
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
	sp->items = calloc(n + 1, sizeof(*sp->items));
	sp->marks = calloc(2 * n + 2, sizeof(*sp->marks));
	if (!sp->items || !sp->marks)
		return err_set(err, ERR_NOMEM, "out of memory: schedule of %s", p->name);
	for (int i = 0; !rc && i < p->schedule.n; i++) {
		enum stream s = p->schedule.items[i].stream;

		rc = stream_make(e, s, err);
		if (!rc)
			rc = fill_stream_item(e, &sp->items[i], p, i, err);
		sp->n = i + 1;
		if (!rc)
			rc = fill_waits(e, sp, i, err);
	}
	if (!rc)
		rc = fill_ends(e, sp, err);
	if (!rc)
		rc = fill_marks(e, sp, err);
	return rc ? rc : stream_program_group(sp, err);
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
