/* liveness.c: lifetimes. Two moments for each position in the schedule: before the item there, and the item. The compute
 * stream runs its items at their own moments; an item of another stream may run at any moment from behind the compute
 * item that is known to be complete before it starts to before the first one that is known to start after it, so its
 * operands are held for that whole span: memory passes from one use to the next by way of the compute stream. The
 * moment behind the last item stands for "until the program has ended". */
#include "trainer/graph/liveness.h"

#include <stdlib.h>

#include "trainer/graph/op.h"

struct span {
	int first, last;
};

struct maker {
	const struct plan_program *p;
	struct live live;
	struct schedule_clock *clocks; /* of each item */
	struct span *spans;	       /* the same */
	bool *viewed;	    /* [id]: other tensors are views of it */
};

static const struct tensor *root(const struct tensor *t)
{
	return t->base ? t->base : t;
}

/* What belongs to the step rather than to a micro-batch has one instance. */
static int slot_of(const struct tensor *t, int slot)
{
	return t->life == LIFE_MICRO ? slot : 0;
}

static int *buffer_index(const struct live *l, const struct tensor *t, int slot)
{
	return &l->of[(size_t)slot_of(t, slot) * (size_t)l->n_tensors + (size_t)t->id];
}

struct live_buffer *live_get(const struct live *l, const struct tensor *t, int slot)
{
	int i = *buffer_index(l, root(t), slot);

	return i < 0 ? NULL : &l->buffers[i];
}

enum space live_space(const struct live_buffer *b)
{
	return b->tensor ? b->tensor->space : SPACE_PRIVATE;
}

static int before(int position)
{
	return 2 * position;
}

static int at(int position)
{
	return 2 * position + 1;
}

/* Spans of all items: compute items sit at their own moment. */
static void find_spans(struct maker *m)
{
	const struct schedule *s = m->p->schedule;
	int released[STREAM_COUNT] = { 0 };

	schedule_clocks(m->clocks, s);
	for (int i = 0; i < s->n; i++) {
		const struct schedule_clock *c = &m->clocks[i];

		m->spans[i] = (struct span){ before(c->before[STREAM_COMPUTE]), before(s->n) };
		if (s->items[i].stream != STREAM_COMPUTE)
			continue;
		m->spans[i] = (struct span){ at(i), at(i) };
		for (int k = STREAM_COMPUTE + 1; k < STREAM_COUNT; k++)
			for (; released[k] < c->before[k]; released[k]++)
				if ((int)s->items[released[k]].stream == k)
					m->spans[released[k]].last = before(i);
	}
}

static bool outlives_program(const struct tensor *t)
{
	return t->keep || t->kind == TENSOR_RESULT;
}

/* t's memory is needed during span; makes its buffer at the first use. */
static void hold(struct maker *m, const struct tensor *t, int slot, struct span span)
{
	struct live_buffer *b;
	int *index;

	t = root(t);
	if (lifetime_spans(t->life))
		return;
	index = buffer_index(&m->live, t, slot);
	if (*index < 0) {
		*index = m->live.n++;
		m->live.buffers[*index] = (struct live_buffer){ .tensor = t,
								.slot = slot_of(t, slot),
								.bytes = tensor_bytes(t),
								.first = span.first,
								.last = span.last };
	}
	b = &m->live.buffers[*index];
	if (span.first < b->first)
		b->first = span.first;
	if (span.last > b->last)
		b->last = span.last;
}

static void touch(struct maker *m, const struct tensor *t, int item)
{
	if (t)
		hold(m, t, m->p->schedule->items[item].slot, m->spans[item]);
}

/* Every input is written, used or not: before the first item, or where a micro-batch is fed. */
static void hold_inputs(struct maker *m, int slot, struct span span)
{
	const struct graph *g = m->p->graph;

	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			hold(m, g->tensors[i], slot, g->tensors[i]->life == LIFE_MICRO ? span : (struct span){ 0, 0 });
}

static void hold_all_inputs(struct maker *m)
{
	const struct schedule *s = m->p->schedule;

	for (int slot = 0; !s->fed && slot < s->slots; slot++)
		hold_inputs(m, slot, (struct span){ 0, 0 });
	for (int i = 0; s->fed && i < s->n; i++)
		if (s->items[i].feeds)
			hold_inputs(m, s->items[i].slot, m->spans[i]);
}

/* A view can be kept, or be read by the host, while its base as such is not. */
static void hold_to_the_end(struct maker *m)
{
	const struct graph *g = m->p->graph;

	for (int i = 0; i < g->n_tensors; i++)
		for (int slot = 0; outlives_program(g->tensors[i]) && slot < m->p->schedule->slots; slot++) {
			struct live_buffer *b = live_get(&m->live, g->tensors[i], slot);

			if (b)
				b->last = before(m->p->schedule->n);
		}
}

static bool may_be_taken(const struct maker *m, const struct tensor *t)
{
	return t && !t->base && !m->viewed[t->id] && !lifetime_spans(t->life) && t->kind != TENSOR_INPUT &&
	       !outlives_program(t);
}

static int occurrences(const struct node *n, const struct tensor *t)
{
	int count = 0;

	for (int k = 0; k < n->n_in; k++)
		count += n->in[k] == t;
	return count;
}

/* Output `out` of item takes over the memory of the input that its op names, when that input ends here. */
static void take_over(struct maker *m, int item, int out)
{
	const struct schedule_item *it = &m->p->schedule->items[item];
	const struct node *n = it->node;
	const struct tensor *to = n->out[out], *from;
	struct live_buffer *a, *b;
	int k = to && to->producer == n ? n->op->inplace(n, out) : -1;

	if (k < 0 || !may_be_taken(m, n->in[k]) || to->base || m->viewed[to->id] || to->kind == TENSOR_INPUT)
		return;
	from = n->in[k];
	a = live_get(&m->live, from, it->slot);
	b = live_get(&m->live, to, it->slot);
	if (!a || !b || a == b || a->last != at(item) || b->first != at(item) || occurrences(n, from) != 1 ||
	    slot_of(from, it->slot) != slot_of(to, it->slot) || from->space != to->space || from->life != to->life)
		return;
	if (tensor_bytes(to) > tensor_bytes(from))
		return;
	a->last = b->last;
	b->bytes = 0;
	b->last = b->first;
	*buffer_index(&m->live, to, it->slot) = (int)(a - m->live.buffers);
}

static void add_workspace(struct maker *m, int item)
{
	const struct schedule_item *it = &m->p->schedule->items[item];

	if (it->node->workspace_bytes)
		m->live.buffers[m->live.n++] = (struct live_buffer){ .node = it->node,
								     .slot = it->slot,
								     .bytes = it->node->workspace_bytes,
								     .first = m->spans[item].first,
								     .last = m->spans[item].last };
}

static int maker_init(struct maker *m)
{
	const struct graph *g = m->p->graph;
	const struct schedule *s = m->p->schedule;
	size_t instances = (size_t)g->n_tensors * (size_t)s->slots;

	m->live.n_tensors = g->n_tensors;
	m->live.buffers = calloc(instances + (size_t)s->n + 1, sizeof(*m->live.buffers));
	m->live.of = calloc(instances + 1, sizeof(*m->live.of));
	m->clocks = calloc((size_t)s->n + 1, sizeof(*m->clocks));
	m->spans = calloc((size_t)s->n + 1, sizeof(*m->spans));
	m->viewed = calloc((size_t)g->n_tensors + 1, sizeof(*m->viewed));
	if (!m->live.buffers || !m->live.of || !m->clocks || !m->spans || !m->viewed)
		return ERR_NOMEM;
	for (size_t i = 0; i < instances; i++)
		m->live.of[i] = -1;
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->base)
			m->viewed[g->tensors[i]->base->id] = true;
	return 0;
}

static void find_buffers(struct maker *m)
{
	const struct schedule *s = m->p->schedule;

	find_spans(m);
	for (int i = 0; i < s->n; i++) {
		const struct node *n = s->items[i].node;

		for (int k = 0; k < n->n_in; k++)
			touch(m, n->in[k], i);
		for (int k = 0; k < n->n_out; k++)
			touch(m, n->out[k], i);
	}
	hold_all_inputs(m);
	hold_to_the_end(m);
	for (int i = 0; i < s->n; i++) {
		const struct node *n = s->items[i].node;

		for (int k = 0; n->op->inplace && s->items[i].stream == STREAM_COMPUTE && k < n->n_out; k++)
			take_over(m, i, k);
		add_workspace(m, i);
	}
}

int live_make(struct live *ret, const struct plan_program *p, struct err *err)
{
	struct maker m = { .p = p };
	int rc = 0;

	if (maker_init(&m) != 0) {
		rc = err_set(err, ERR_NOMEM, "out of memory for the lifetimes of %s", p->name);
		goto out;
	}
	find_buffers(&m);
	*ret = m.live;
	m.live = (struct live){ 0 };
out:
	live_done(&m.live);
	free(m.clocks);
	free(m.spans);
	free(m.viewed);
	return rc;
}

void live_done(struct live *l)
{
	free(l->buffers);
	free(l->of);
	*l = (struct live){ 0 };
}
