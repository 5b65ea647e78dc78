/* schedule.c: program order as a schedule. What an item must wait for follows from who last wrote and read the memory
 * of its operands, so nodes that update in place need no rule of their own, and from node->after. */
#include "trainer/graph/schedule.h"

#include <stdlib.h>

/* Per tensor (a view counts as its base) and stream: the position behind the last item that wrote or read it; 0: none
 * did. */
struct access {
	int wrote[STREAM_COUNT], read[STREAM_COUNT];
};

struct maker {
	struct schedule s;
	struct access *of;
	struct schedule_clock *clock; /* of each item so far */
	int latest[STREAM_COUNT];     /* position behind the last item of each stream */
};

static struct access *access_get(struct maker *m, const struct tensor *tensor)
{
	return &m->of[tensor->base ? tensor->base->id : tensor->id];
}

static int later(int a, int b)
{
	return a > b ? a : b;
}

static void merge(struct schedule_clock *c, const struct schedule_clock *other)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		c->before[s] = later(c->before[s], other->before[s]);
}

/* As the item in front on the same stream leaves it, whose position is latest - 1. */
static struct schedule_clock follow(const struct schedule_clock *clocks, enum stream stream, int latest)
{
	struct schedule_clock c = { { 0 } };

	if (latest)
		c = clocks[latest - 1];
	c.before[stream] = latest;
	return c;
}

static void add_waits(struct schedule_clock *c, const struct schedule_clock *clocks, const int *wait)
{
	for (int s = 0; s < STREAM_COUNT; s++)
		if (wait[s]) {
			merge(c, &clocks[wait[s] - 1]);
			c->before[s] = later(c->before[s], wait[s]);
		}
}

void schedule_clocks(struct schedule_clock *ret, const struct schedule *s)
{
	int latest[STREAM_COUNT] = { 0 };

	for (int i = 0; i < s->n; i++) {
		enum stream stream = s->items[i].stream;

		ret[i] = follow(ret, stream, latest[stream]);
		add_waits(&ret[i], ret, s->items[i].wait);
		latest[stream] = i + 1;
	}
}

/* The positions, by stream, that n must come after for its operands' sake. */
static void depend_on_data(struct maker *m, const struct node *n, int *dep)
{
	for (int s = 0; s < STREAM_COUNT; s++) {
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k])
				dep[s] = later(dep[s], access_get(m, n->in[k])->wrote[s]);
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k]) {
				const struct access *a = access_get(m, n->out[k]);

				dep[s] = later(dep[s], later(a->wrote[s], a->read[s]));
			}
	}
}

static int depend_on_nodes(const struct node *n, int *dep, struct err *err)
{
	for (int i = 0; i < n->n_after; i++) {
		const struct node *before = n->after[i];

		if (before->id >= n->id)
			return err_set(err, ERR_USAGE, "%s shall begin after %s, which comes later", n->name,
				       before->name);
		dep[before->stream] = later(dep[before->stream], before->id + 1);
	}
	return 0;
}

/* Leaves in dep what has to be waited for: not what is complete anyway, or with another of them. */
static void reduce_waits(const struct maker *m, const struct schedule_clock *known, int *dep)
{
	int all[STREAM_COUNT];

	for (int s = 0; s < STREAM_COUNT; s++)
		all[s] = dep[s] = dep[s] > known->before[s] ? dep[s] : 0;
	for (int s = 0; s < STREAM_COUNT; s++)
		for (int other = 0; other < STREAM_COUNT; other++)
			if (other != s && all[other] && m->clock[all[other] - 1].before[s] >= all[s])
				dep[s] = 0;
}

static void record(struct maker *m, const struct node *n, int item)
{
	for (int k = 0; k < n->n_in; k++)
		if (n->in[k])
			access_get(m, n->in[k])->read[n->stream] = item + 1;
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			access_get(m, n->out[k])->wrote[n->stream] = item + 1;
	m->latest[n->stream] = item + 1;
}

static int add_item(struct maker *m, struct node *n, int i, struct err *err)
{
	struct schedule_item *it = &m->s.items[i];
	struct schedule_clock known = follow(m->clock, n->stream, m->latest[n->stream]);
	int rc;

	*it = (struct schedule_item){ .node = n, .stream = n->stream };
	depend_on_data(m, n, it->wait);
	rc = depend_on_nodes(n, it->wait, err);
	if (rc)
		return rc;
	it->wait[n->stream] = 0;
	reduce_waits(m, &known, it->wait);
	for (int s = 0; s < STREAM_COUNT; s++)
		if (it->wait[s])
			m->s.items[it->wait[s] - 1].signal |= 1u << n->stream;
	add_waits(&known, m->clock, it->wait);
	m->clock[i] = known;
	record(m, n, i);
	return 0;
}

int schedule_make(struct schedule *ret, struct graph *g, struct err *err)
{
	struct maker m = { .s = { .n = g->n_nodes, .slots = 1 } };
	int rc = 0;

	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	m.s.items = arena_array(g->arena, (size_t)m.s.n + 1, sizeof(*m.s.items));
	m.of = calloc((size_t)g->n_tensors + 1, sizeof(*m.of));
	m.clock = calloc((size_t)m.s.n + 1, sizeof(*m.clock));
	if (!m.s.items || !m.of || !m.clock)
		rc = err_set(err, ERR_NOMEM, "out of memory for a schedule of %d nodes", m.s.n);
	for (int i = 0; !rc && i < m.s.n; i++)
		rc = add_item(&m, g->nodes[i], i, err);
	free(m.of);
	free(m.clock);
	if (!rc)
		*ret = m.s;
	return rc;
}
