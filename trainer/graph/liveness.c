/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.c: lifetimes of tensors. Each position in the schedule has two moments: before its item, and the item
 * itself. The compute stream runs its items at their own moments. An item of another stream may run at any time after
 * the last compute item known to complete before it, and before the first compute item known to start after it. Its
 * operands are held for that whole span, since memory passes from one use to the next through the compute stream. The
 * moment after the last item means "until the program ends". */
#include "trainer/graph/liveness.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/graph/op.h"

struct moment_span {
	int first, last;
};

struct live_builder {
	const struct plan_program *p;
	struct liveness live;
	struct schedule_clock *clocks; /* per item */
	struct moment_span *spans;     /* per item */
	bool *viewed;		       /* [id]: true if other tensors are views of it */
};

static const struct tensor *get_view_base(const struct tensor *t)
{
	return t->base ? t->base : t;
}

/* Tensors of the step, unlike those of a micro-batch, have one instance. */
static int pick_tensor_slot(const struct tensor *t, int slot)
{
	return t->life == LIFE_MICRO ? slot : 0;
}

static int *find_buffer_index(const struct liveness *l, const struct tensor *t, int slot)
{
	return &l->of[(size_t)pick_tensor_slot(t, slot) * (size_t)l->n_tensors + (size_t)t->id];
}

struct live_buffer *live_get(const struct liveness *l, const struct tensor *t, int slot)
{
	int i = *find_buffer_index(l, get_view_base(t), slot);

	return i < 0 ? NULL : &l->buffers[i];
}

enum space live_space(const struct live_buffer *b)
{
	return b->tensor ? b->tensor->space : SPACE_PRIVATE;
}

static int moment_before(int position)
{
	return 2 * position;
}

static int moment_of(int position)
{
	return 2 * position + 1;
}

/* Computes the spans of all items. Compute items run at their own moment. */
static void compute_item_spans(struct live_builder *m)
{
	const struct schedule *s = m->p->schedule;
	int released[STREAM_COUNT] = { 0 };

	schedule_clocks(m->clocks, s);
	for (int i = 0; i < s->n; i++) {
		const struct schedule_clock *c = &m->clocks[i];

		m->spans[i] = (struct moment_span){ moment_before(c->before[STREAM_COMPUTE]), moment_before(s->n) };
		if (s->items[i].stream != STREAM_COMPUTE)
			continue;
		m->spans[i] = (struct moment_span){ moment_of(i), moment_of(i) };
		for (int k = STREAM_COMPUTE + 1; k < STREAM_COUNT; k++)
			for (; released[k] < c->before[k]; released[k]++)
				if ((int)s->items[released[k]].stream == k)
					m->spans[released[k]].last = moment_before(i);
	}
}

static bool outlives_program(const struct tensor *t)
{
	return t->keep || t->kind == TENSOR_RESULT;
}

/* Extends the lifetime of t's memory by span. Creates its buffer at the first use. */
static void extend_lifetime(struct live_builder *m, const struct tensor *t, int slot, struct moment_span span)
{
	struct live_buffer *b;
	int *index;

	t = get_view_base(t);
	if (lifetime_spans(t->life))
		return;
	index = find_buffer_index(&m->live, t, slot);
	if (*index < 0) {
		*index = m->live.n++;
		m->live.buffers[*index] = (struct live_buffer){ .tensor = t,
								.slot = pick_tensor_slot(t, slot),
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

static void hold_operand(struct live_builder *m, const struct tensor *t, int item)
{
	if (t)
		extend_lifetime(m, t, m->p->schedule->items[item].slot, m->spans[item]);
}

/* All inputs are written, used or not: before the first item, or where a micro-batch is fed. */
static void hold_inputs(struct live_builder *m, int slot, struct moment_span span)
{
	const struct graph *g = m->p->graph;

	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			extend_lifetime(m, g->tensors[i], slot,
					g->tensors[i]->life == LIFE_MICRO ? span : (struct moment_span){ 0, 0 });
}

static void hold_all_inputs(struct live_builder *m)
{
	const struct schedule *s = m->p->schedule;

	for (int slot = 0; !s->fed && slot < s->slots; slot++)
		hold_inputs(m, slot, (struct moment_span){ 0, 0 });
	for (int i = 0; s->fed && i < s->n; i++)
		if (s->items[i].feeds)
			hold_inputs(m, s->items[i].slot, m->spans[i]);
}

/* Extends kept tensors to the end of the program. A view can be kept, or read by the host, although its base is not. */
static void hold_until_end(struct live_builder *m)
{
	const struct graph *g = m->p->graph;

	for (int i = 0; i < g->n_tensors; i++)
		for (int slot = 0; outlives_program(g->tensors[i]) && slot < m->p->schedule->slots; slot++) {
			struct live_buffer *b = live_get(&m->live, g->tensors[i], slot);

			if (b)
				b->last = moment_before(m->p->schedule->n);
		}
}

static bool may_reuse_memory(const struct live_builder *m, const struct tensor *t)
{
	return t && !t->base && !m->viewed[t->id] && !lifetime_spans(t->life) && t->kind != TENSOR_INPUT &&
	       !outlives_program(t);
}

static int count_operand_uses(const struct node *n, const struct tensor *t)
{
	int count = 0;

	for (int k = 0; k < n->n_in; k++)
		count += n->in[k] == t;
	return count;
}

/* Lets output `out` of an item reuse the memory of the input that its op names, if that input's lifetime ends here. */
static void reuse_input_memory(struct live_builder *m, int item, int out)
{
	const struct schedule_item *it = &m->p->schedule->items[item];
	const struct node *n = it->node;
	const struct tensor *to = n->out[out], *from;
	struct live_buffer *a, *b;
	int k = to && to->producer == n ? n->op->inplace(n, out) : -1;

	if (k < 0 || !may_reuse_memory(m, n->in[k]) || to->base || m->viewed[to->id] || to->kind == TENSOR_INPUT)
		return;
	from = n->in[k];
	a = live_get(&m->live, from, it->slot);
	b = live_get(&m->live, to, it->slot);
	if (!a || !b || a == b || a->last != moment_of(item) || b->first != moment_of(item) ||
	    count_operand_uses(n, from) != 1 || pick_tensor_slot(from, it->slot) != pick_tensor_slot(to, it->slot) ||
	    from->space != to->space || from->life != to->life)
		return;
	if (tensor_bytes(to) > tensor_bytes(from))
		return;
	a->last = b->last;
	b->bytes = 0;
	b->last = b->first;
	*find_buffer_index(&m->live, to, it->slot) = (int)(a - m->live.buffers);
}

static void add_workspace(struct live_builder *m, int item)
{
	const struct schedule_item *it = &m->p->schedule->items[item];

	if (it->node->workspace_bytes)
		m->live.buffers[m->live.n++] = (struct live_buffer){ .node = it->node,
								     .slot = it->slot,
								     .bytes = it->node->workspace_bytes,
								     .first = m->spans[item].first,
								     .last = m->spans[item].last };
}

static void init_live_builder(struct live_builder *m)
{
	const struct graph *g = m->p->graph;
	const struct schedule *s = m->p->schedule;
	size_t instances = (size_t)g->n_tensors * (size_t)s->slots;

	m->live.n_tensors = g->n_tensors;
	m->live.buffers = mem_array(instances + (size_t)s->n, sizeof(*m->live.buffers));
	m->live.of = mem_array(instances, sizeof(*m->live.of));
	m->clocks = mem_array((size_t)s->n, sizeof(*m->clocks));
	m->spans = mem_array((size_t)s->n, sizeof(*m->spans));
	m->viewed = mem_array((size_t)g->n_tensors, sizeof(*m->viewed));
	for (size_t i = 0; i < instances; i++)
		m->live.of[i] = -1;
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->base)
			m->viewed[g->tensors[i]->base->id] = true;
}

/* Computes the buffers of all tensors and workspaces with their lifetimes, including in-place reuse. */
static void find_buffers(struct live_builder *m)
{
	const struct schedule *s = m->p->schedule;

	compute_item_spans(m);
	for (int i = 0; i < s->n; i++) {
		const struct node *n = s->items[i].node;

		for (int k = 0; k < n->n_in; k++)
			hold_operand(m, n->in[k], i);
		for (int k = 0; k < n->n_out; k++)
			hold_operand(m, n->out[k], i);
	}
	hold_all_inputs(m);
	hold_until_end(m);
	for (int i = 0; i < s->n; i++) {
		const struct node *n = s->items[i].node;

		for (int k = 0; n->op->inplace && s->items[i].stream == STREAM_COMPUTE && k < n->n_out; k++)
			reuse_input_memory(m, i, k);
		add_workspace(m, i);
	}
}

void live_make(struct liveness *ret, const struct plan_program *p)
{
	struct live_builder m = { .p = p };

	init_live_builder(&m);
	find_buffers(&m);
	*ret = m.live;
	free(m.clocks);
	free(m.spans);
	free(m.viewed);
}

void live_done(struct liveness *l)
{
	free(l->buffers);
	free(l->of);
	*l = (struct liveness){ 0 };
}
