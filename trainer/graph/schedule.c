/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c: turns program order, whole or by pipeline turns, into a schedule. The dependencies of an item follow from
 * the last writes and reads of its operands' memory (so in-place updates need no extra rule), from node->after and from
 * the turns. */
#include "trainer/graph/schedule.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"

/* Per tensor (a view counts as its base), slot and stream: one past the position of the last item that wrote or read
 * it; 0: none. */
struct last_access {
	int wrote[STREAM_COUNT], read[STREAM_COUNT];
};

struct positions { /* one past the last item of each stream */
	int of[STREAM_COUNT];
};

struct scheduler {
	const struct graph *g;
	struct schedule s;
	struct last_access *of;
	struct schedule_clock *clock; /* per item so far */
	int *position;		      /* per node: one past its last item; 0: none yet */
	struct positions latest;
	struct positions one_ago, two_ago; /* positions at the end of the previous two turns */
	bool inputs_ahead;
};

static struct last_access *access_get(struct scheduler *m, const struct tensor *t, int slot)
{
	t = t->base ? t->base : t;
	slot = t->life == LIFE_MICRO ? slot : 0;
	return &m->of[(size_t)slot * (size_t)m->g->n_tensors + (size_t)t->id];
}

static int later_position(int a, int b)
{
	return a > b ? a : b;
}

static void merge_clock(struct schedule_clock *c, const struct schedule_clock *other)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		c->before[s] = later_position(c->before[s], other->before[s]);
}

/* The clock after the previous item of the same stream, whose position is latest - 1. */
static struct schedule_clock clock_after_previous(const struct schedule_clock *clocks, enum stream stream, int latest)
{
	struct schedule_clock c = { { 0 } };

	if (latest)
		c = clocks[latest - 1];
	c.before[stream] = latest;
	return c;
}

static void add_waits_to_clock(struct schedule_clock *c, const struct schedule_clock *clocks, const int *wait)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		if (wait[s]) {
			merge_clock(c, &clocks[wait[s] - 1]);
			c->before[s] = later_position(c->before[s], wait[s]);
		}
}

void schedule_clocks(struct schedule_clock *ret, const struct schedule *s)
{
	int latest[STREAM_COUNT] = { 0 };

	for (int i = 0; i < s->n; i++) {
		enum stream stream = s->items[i].stream;

		ret[i] = clock_after_previous(ret, stream, latest[stream]);
		add_waits_to_clock(&ret[i], ret, s->items[i].wait);
		latest[stream] = i + 1;
	}
}

/* Adds waits, by stream, for the last accesses to the item's operands. */
static void depend_on_data(struct scheduler *m, struct schedule_item *it)
{
	const struct node *n = it->node;

	for (int s = 0; s < STREAM_COUNT; s++) {
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k])
				it->wait[s] = later_position(it->wait[s], access_get(m, n->in[k], it->slot)->wrote[s]);
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k]) {
				const struct last_access *a = access_get(m, n->out[k], it->slot);

				it->wait[s] = later_position(it->wait[s], later_position(a->wrote[s], a->read[s]));
			}
	}
}

static int depend_on_nodes(const struct scheduler *m, struct schedule_item *it, struct err *err)
{
	const struct node *n = it->node;

	for (int i = 0; i < n->n_after; i++) {
		const struct node *before = n->after[i];
		int position = m->position[before->id];

		if (!position)
			return err_set(err, ERR_USAGE, "%s must start after %s, which is later in program order",
				       n->name, before->name);
		it->wait[before->stream] = later_position(it->wait[before->stream], position);
	}
	return 0;
}

/* Keeps other streams within one turn of the compute stream. */
static void depend_on_turns(const struct scheduler *m, struct schedule_item *it)
{
	bool begins = m->latest.of[STREAM_COMPUTE] == m->one_ago.of[STREAM_COMPUTE];

	if (it->stream != STREAM_COMPUTE)
		it->wait[STREAM_COMPUTE] = later_position(it->wait[STREAM_COMPUTE], m->two_ago.of[STREAM_COMPUTE]);
	for (int s = STREAM_COMPUTE + 1; it->stream == STREAM_COMPUTE && begins && s < STREAM_COUNT; s++)
		it->wait[s] = later_position(it->wait[s], m->two_ago.of[s]);
}

/* Removes from dep the waits that are already satisfied or implied by another wait. */
static void reduce_waits(const struct scheduler *m, const struct schedule_clock *known, int *dep)
{
	int all[STREAM_COUNT];

	for (int s = 0; s < STREAM_COUNT; s++)
		all[s] = dep[s] = dep[s] > known->before[s] ? dep[s] : 0;
	for (int s = 0; s < STREAM_COUNT; s++)
		for (int other = 0; other < STREAM_COUNT; other++)
			if (other != s && all[other] && m->clock[all[other] - 1].before[s] >= all[s])
				dep[s] = 0;
}

static void record_accesses(struct scheduler *m, const struct schedule_item *it, int item)
{
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (n->in[k])
			access_get(m, n->in[k], it->slot)->read[n->stream] = item + 1;
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			access_get(m, n->out[k], it->slot)->wrote[n->stream] = item + 1;
	for (int i = 0; it->feeds && i < m->g->n_tensors; i++)
		if (m->g->tensors[i]->kind == TENSOR_INPUT && m->g->tensors[i]->life == LIFE_MICRO)
			access_get(m, m->g->tensors[i], it->slot)->wrote[n->stream] = item + 1;
	m->latest.of[n->stream] = item + 1;
	m->position[n->id] = item + 1;
}

/* Appends an item: derives its waits, marks the items that must signal them, and records its accesses. */
static int add_schedule_item(struct scheduler *m, const struct schedule_item *like, struct err *err)
{
	int i = m->s.n++;
	struct schedule_item *it = &m->s.items[i];
	struct schedule_clock known = clock_after_previous(m->clock, like->stream, m->latest.of[like->stream]);
	int rc;

	*it = *like;
	depend_on_data(m, it);
	depend_on_turns(m, it);
	rc = depend_on_nodes(m, it, err);
	if (rc)
		return rc;
	it->wait[it->stream] = 0;
	reduce_waits(m, &known, it->wait);
	for (int s = 0; s < STREAM_COUNT; s++)
		if (it->wait[s])
			m->s.items[it->wait[s] - 1].signal |= 1u << it->stream;
	add_waits_to_clock(&known, m->clock, it->wait);
	m->clock[i] = known;
	record_accesses(m, it, i);
	return 0;
}

static int init_scheduler(struct scheduler *m, struct graph *g, int items, struct err *err)
{
	size_t accesses = (size_t)g->n_tensors * (size_t)m->s.slots;

	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	m->g = g;
	m->s.items = arena_array(g->arena, (size_t)items + 1, sizeof(*m->s.items));
	m->of = mem_array(accesses, sizeof(*m->of));
	m->clock = mem_array((size_t)items, sizeof(*m->clock));
	m->position = mem_array((size_t)g->n_nodes, sizeof(*m->position));
	return 0;
}

static int finish_schedule(struct scheduler *m, struct schedule *ret, int rc)
{
	free(m->of);
	free(m->clock);
	free(m->position);
	if (!rc)
		*ret = m->s;
	return rc;
}

int schedule_make(struct schedule *ret, struct graph *g, struct err *err)
{
	struct scheduler m = { .s = { .slots = 1 } };
	int rc = init_scheduler(&m, g, g->n_nodes, err);

	for (int i = 0; !rc && i < g->n_nodes; i++)
		rc = add_schedule_item(
			&m, &(struct schedule_item){ .node = g->nodes[i], .stream = g->nodes[i]->stream }, err);
	return finish_schedule(&m, ret, rc);
}

/* ---- turns ---- */

static bool reads_input(const struct node *n)
{
	for (int k = 0; k < n->n_in; k++)
		if (n->in[k] && n->in[k]->kind == TENSOR_INPUT && n->in[k]->life == LIFE_MICRO)
			return true;
	return false;
}

static int add_turn(struct scheduler *m, const struct schedule_turn *t, struct err *err)
{
	bool feeds = t->part == PART_FORWARD && !m->inputs_ahead;
	int rc = 0;

	for (int i = 0; !rc && i < m->g->n_nodes; i++) {
		struct node *n = m->g->nodes[i];
		struct schedule_item it = { .node = n, .slot = t->micro, .stream = n->stream };

		if (n->part != t->part || (n->once && t->micro > 0))
			continue;
		it.feeds = feeds && n->stream == STREAM_COMPUTE;
		if (feeds && !it.feeds && reads_input(n))
			return err_set(err, ERR_USAGE, "%s reads inputs before the compute stream has any", n->name);
		feeds = feeds && !it.feeds;
		m->s.fed |= it.feeds;
		rc = add_schedule_item(m, &it, err);
	}
	m->two_ago = m->one_ago;
	m->one_ago = m->latest;
	return rc;
}

static int count_turn_items(const struct graph *g, const struct schedule_order *o)
{
	int count = 0;

	for (int t = 0; t < o->n; t++)
		for (int i = 0; i < g->n_nodes; i++)
			count += g->nodes[i]->part == o->turn[t].part;
	return count;
}

int schedule_make_turns(struct schedule *ret, struct graph *g, const struct schedule_order *o, struct err *err)
{
	struct scheduler m = { .s = { .slots = o->micros }, .inputs_ahead = o->inputs_ahead };
	int rc = init_scheduler(&m, g, count_turn_items(g, o), err);

	for (int t = 0; !rc && t < o->n; t++)
		rc = add_turn(&m, &o->turn[t], err);
	return finish_schedule(&m, ret, rc);
}

int schedule_held(const struct schedule *s)
{
	int held = 0, most = 0;

	for (int i = 0; i < s->n; i++) {
		const struct schedule_item *it = &s->items[i], *before = i ? it - 1 : NULL;

		if (before && before->slot == it->slot && before->node->part == it->node->part)
			continue;
		held -= before && before->node->part == PART_BACKWARD;
		held += it->node->part == PART_FORWARD;
		most = later_position(most, held);
	}
	return most;
}

int schedule_turns(int micros)
{
	return 2 * micros + 1;
}

void schedule_pipeline(struct schedule_turn *ret, enum pipeline kind, int stages, int stage, int micros)
{
	int ahead = kind == PIPELINE_GPIPE ? micros : stages - 1 - stage;
	int n = 0;

	for (int m = 0; m < micros && m < ahead; m++)
		ret[n++] = (struct schedule_turn){ PART_FORWARD, m };
	for (int m = 0; m < micros; m++) {
		if (m + ahead < micros)
			ret[n++] = (struct schedule_turn){ PART_FORWARD, m + ahead };
		ret[n++] = (struct schedule_turn){ PART_BACKWARD, m };
	}
	ret[n++] = (struct schedule_turn){ PART_STEP, 0 };
}
