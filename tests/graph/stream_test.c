/* stream_test.c: schedules and plans of random graphs on streams that run beside each other. Whatever they do between
 * the waits that the schedule has placed, an item finds its operands as they were written for it, from its start to
 * its end, and begins behind what it was told to be after; any two items that touch the same bytes, one of them
 * writing, are ordered by streams and waits. Gathers that read parameters alone hold memory only from where they may
 * begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/graph/plan.h"
#include "trainer/graph/rng.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/allreduce/allreduce.h"
#include "trainer/ops/ops.h"

#define GRAPHS 400
#define ORDERS 12
#define NODES_MAX 60
#define PIECES_MAX 4096
#define PIECE PLAN_ALIGN_BYTES

struct draws {
	struct rng_key key;
	uint64_t n;
};

static int below(struct draws *d, int n)
{
	return (int)rng_below(d->key, d->n++, (uint64_t)n);
}

/* Any activation or the input, the younger the likelier. */
static struct tensor *pick(struct graph *g, struct draws *d)
{
	int back = below(d, g->n_tensors < 6 || below(d, 4) == 0 ? g->n_tensors : 6);

	return g->tensors[g->n_tensors - 1 - back];
}

/* Of n: sometimes one or two earlier nodes that it shall be after. */
static void add_edges(struct graph *g, struct node *n, struct draws *d)
{
	while (n->id > 0 && below(d, 4) == 0)
		node_after(g, n, g->nodes[below(d, n->id)]);
}

/* Sums on the compute stream; reductions, in place and into new tensors, on all of the first few; sizes differ by three
 * kinds. */
static struct graph *random_graph(struct draws *d)
{
	int streams = 2 + below(d, STREAM_COUNT - 1);
	struct graph *g = graph_new(true);
	int nodes = 5 + below(d, NODES_MAX - 5);

	assert_non_null(g);
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "x%d", i);
		graph_tensor(g, &(struct tensor){ .name = name,
						  .kind = TENSOR_INPUT,
						  .dtype = DTYPE_F32,
						  .shape = SHAPE(16 << i),
						  .life = LIFE_MICRO });
	}
	for (int i = 0; i < nodes; i++) {
		struct tensor *a = pick(g, d), *b = pick(g, d);
		enum stream stream = (enum stream)below(d, streams);

		if (below(d, 3) == 0 && a->kind != TENSOR_INPUT)
			allreduce_add(g, a, stream);
		else if (shape_equal(&a->shape, &b->shape))
			graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(a, b), NODE_OUT(NULL) });
		else
			graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(a), NODE_OUT(NULL) })->stream =
				stream;
		g->nodes[g->n_nodes - 1]->workspace_bytes = (size_t)below(d, 3) * 40;
		g->tensors[g->n_tensors - 1]->keep |= below(d, 12) == 0;
		add_edges(g, g->nodes[g->n_nodes - 1], d);
	}
	assert_false(graph_failed(g));
	return g;
}

/* Who wrote each piece of memory last: a tensor and the count of writes to it, or the workspace of an item. */
struct memory {
	int owner[PIECES_MAX];
	int version[PIECES_MAX];
	int tensor_version[NODES_MAX * 2];
};

enum { WORKSPACE = 1000000 };

static void own(struct memory *m, size_t offset, size_t bytes, int owner, int version)
{
	for (size_t i = offset / PIECE; i * PIECE < offset + bytes; i++) {
		assert_true(i < PIECES_MAX);
		m->owner[i] = owner;
		m->version[i] = version;
	}
}

static bool owned(const struct memory *m, size_t offset, size_t bytes, int owner, int version)
{
	for (size_t i = offset / PIECE; i * PIECE < offset + bytes; i++)
		if (m->owner[i] != owner || m->version[i] != version)
			return false;
	return true;
}

/* Which write of each tensor an item must read: fixed by program order. */
struct expected {
	int in[2];
	int out;
};

static bool writes_over(const struct node *n, const struct tensor *in)
{
	return n->out[0] == in || n->out[0]->offset == in->offset;
}

static void start(struct memory *m, const struct node *n, const struct expected *e)
{
	for (int k = 0; k < n->n_in; k++)
		if (!owned(m, n->in[k]->offset, tensor_bytes(n->in[k]), n->in[k]->id, e->in[k]))
			fail_msg("%s starts with another %s than was written for it", n->name, n->in[k]->name);
	own(m, n->workspace_offset, n->workspace_bytes, WORKSPACE + n->id, 0);
	own(m, n->out[0]->offset, tensor_bytes(n->out[0]), n->out[0]->id, e->out);
}

static void finish(const struct memory *m, const struct node *n, const struct expected *e)
{
	for (int k = 0; k < n->n_in; k++)
		if (!writes_over(n, n->in[k]) &&
		    !owned(m, n->in[k]->offset, tensor_bytes(n->in[k]), n->in[k]->id, e->in[k]))
			fail_msg("%s was written over while %s read it", n->in[k]->name, n->name);
	if (!owned(m, n->workspace_offset, n->workspace_bytes, WORKSPACE + n->id, 0) ||
	    !owned(m, n->out[0]->offset, tensor_bytes(n->out[0]), n->out[0]->id, e->out))
		fail_msg("what %s wrote was written over before it was complete", n->name);
}

static void number_versions(const struct graph *g, struct expected *e)
{
	int version[NODES_MAX * 2] = { 0 };

	for (int i = 0; i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];

		for (int k = 0; k < n->n_in; k++)
			e[i].in[k] = version[n->in[k]->id];
		e[i].out = ++version[n->out[0]->id];
	}
}

struct lane { /* one stream: its next item, and whether that one is running */
	int next;
	bool running;
};

static int next_of(const struct schedule *s, enum stream stream, int from)
{
	while (from < s->n && s->items[from].stream != stream)
		from++;
	return from;
}

/* A stream has completed what lies before its next item. */
static bool may_start(const struct schedule *s, const struct lane *lanes, int item)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (lanes[k].next < s->items[item].wait[k])
			return false;
	return true;
}

static void expect_order(const struct node *n, const bool *complete)
{
	for (int i = 0; i < n->n_after; i++)
		if (!complete[n->after[i]->id])
			fail_msg("%s began before %s was complete", n->name, n->after[i]->name);
}

static void run_one_order(const struct graph *g, const struct schedule *s, const struct expected *e, struct draws *d)
{
	static struct memory m;
	struct lane lanes[STREAM_COUNT];
	bool complete[NODES_MAX] = { false };
	int done = 0, last[NODES_MAX * 2] = { 0 };

	memset(&m, 0xff, sizeof(m));
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			own(&m, g->tensors[i]->offset, tensor_bytes(g->tensors[i]), i, 0);
	for (int k = 0; k < STREAM_COUNT; k++)
		lanes[k] = (struct lane){ .next = next_of(s, (enum stream)k, 0) };
	for (int tries = 0; done < s->n; tries++) {
		int k = below(d, STREAM_COUNT);
		struct lane *l = &lanes[k];

		assert_true(tries < 100000); /* the waits never lock streams against each other */
		if (l->next >= s->n || (!l->running && !may_start(s, lanes, l->next)))
			continue;
		if (!l->running) {
			expect_order(g->nodes[l->next], complete);
			start(&m, g->nodes[l->next], &e[l->next]);
		} else {
			finish(&m, g->nodes[l->next], &e[l->next]);
			complete[l->next] = true;
			l->next = next_of(s, (enum stream)k, l->next + 1);
			done++;
		}
		l->running = !l->running;
	}
	for (int i = 0; i < g->n_nodes; i++)
		last[g->nodes[i]->out[0]->id] = e[i].out;
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->keep && !owned(&m, g->tensors[i]->offset, tensor_bytes(g->tensors[i]), i, last[i]))
			fail_msg("%s was kept, but not to the end", g->tensors[i]->name);
}

/* before[a][b]: a is complete when b begins; by streams, waits and what follows from both. */
static void order_all(const struct schedule *s, bool before[NODES_MAX][NODES_MAX])
{
	memset(before, 0, sizeof(bool[NODES_MAX][NODES_MAX]));
	for (int b = 0; b < s->n; b++)
		for (int a = b - 1; a >= 0; a--) {
			const struct schedule_item *x = &s->items[a], *y = &s->items[b];

			before[a][b] |= x->stream == y->stream || a < y->wait[x->stream];
			for (int c = 0; before[a][b] && c < a; c++)
				before[c][b] |= before[c][a];
		}
}

struct range {
	size_t from, to;
	bool written;
};

static int ranges_of(const struct node *n, struct range *r)
{
	int count = 0;

	for (int k = 0; k < n->n_in; k++)
		r[count++] = (struct range){ n->in[k]->offset, n->in[k]->offset + tensor_bytes(n->in[k]), false };
	for (int k = 0; k < n->n_out; k++)
		r[count++] = (struct range){ n->out[k]->offset, n->out[k]->offset + tensor_bytes(n->out[k]), true };
	r[count++] = (struct range){ n->workspace_offset, n->workspace_offset + n->workspace_bytes, true };
	return count;
}

static bool touch_the_same(const struct node *a, const struct node *b)
{
	struct range x[8], y[8];
	int n = ranges_of(a, x), m = ranges_of(b, y);

	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++)
			if (x[i].from < y[j].to && y[j].from < x[i].to && (x[i].written || y[j].written))
				return true;
	return false;
}

static void expect_all_ordered(const struct schedule *s)
{
	static bool before[NODES_MAX][NODES_MAX];

	order_all(s, before);
	for (int b = 0; b < s->n; b++)
		for (int a = 0; a < b; a++)
			if (!before[a][b] && touch_the_same(s->items[a].node, s->items[b].node))
				fail_msg("%s and %s touch the same bytes in any order", s->items[a].node->name,
					 s->items[b].node->name);
}

/* Every wait counts: without it something that it orders would follow from nothing else. */
static void expect_no_idle_wait(const struct schedule *s)
{
	static struct schedule_clock with[NODES_MAX], without[NODES_MAX];

	schedule_clocks(with, s);
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < STREAM_COUNT; k++) {
			int wait = s->items[i].wait[k];

			if (!wait)
				continue;
			assert_true(s->items[wait - 1].signal & 1u << s->items[i].stream);
			s->items[i].wait[k] = 0;
			schedule_clocks(without, s);
			s->items[i].wait[k] = wait;
			assert_true(without[i].before[k] < with[i].before[k]);
		}
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < GRAPHS; seed++) {
		struct draws d = { { seed, rng_stream("streams") }, 0 };
		struct graph *g = random_graph(&d);
		struct expected e[NODES_MAX];
		struct schedule s;
		struct plan_program p = { "random", g, &s };
		struct plan plan;
		struct err err = ERR_INIT;

		if (schedule_make(&s, g, &err) != 0 || plan_make(&plan, &p, 1, &err) != 0)
			fail_msg("%s", err.text);
		assert_true(plan.slab_bytes[SPACE_PRIVATE] <= (size_t)PIECES_MAX * PIECE);
		expect_all_ordered(&s);
		expect_no_idle_wait(&s);
		number_versions(g, e);
		for (int i = 0; i < ORDERS; i++)
			run_one_order(g, &s, e, &d);
		graph_free(g);
	}
}

#define UNITS 6
#define UNIT_BYTES 4096

/* Like a sharded model's forward pass: each unit's weights are gathered from a part that is always there, then used by
 * two nodes; `ahead` units are gathered before their turn, or, < 0, all whenever it pleases them. */
static struct graph *gathered_units(int ahead)
{
	struct graph *g = graph_new(true);
	struct tensor *x = graph_tensor(g, &(struct tensor){ .name = "x",
							     .kind = TENSOR_INPUT,
							     .dtype = DTYPE_F32,
							     .shape = SHAPE(UNIT_BYTES / 4),
							     .life = LIFE_MICRO });
	struct node *last[UNITS];

	for (int u = 0; u < UNITS; u++) {
		char name[16];
		struct tensor *part;
		struct node *gather;

		snprintf(name, sizeof(name), "part%d", u);
		part = graph_tensor(g, &(struct tensor){ .name = name,
							 .kind = TENSOR_PARAM,
							 .dtype = DTYPE_F32,
							 .shape = SHAPE(UNIT_BYTES / 4),
							 .life = LIFE_PERSISTENT });
		gather = graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(part), NODE_OUT(NULL) });
		gather->stream = STREAM_GATHER;
		if (ahead >= 0 && u > ahead)
			node_after(g, gather, last[u - ahead - 1]);
		for (int i = 0; i < 2; i++)
			x = graph_node(g, &(struct node_spec){ .op = &op_add,
							       NODE_IN(x, gather->out[0]),
							       NODE_OUT(NULL) })->out[0];
		last[u] = x->producer;
	}
	x->keep = true;
	assert_false(graph_failed(g));
	return g;
}

static void make_plan(struct graph *g, struct schedule *s, struct plan *plan)
{
	struct plan_program p = { "units", g, s };
	struct err err = ERR_INIT;

	if (schedule_make(s, g, &err) != 0 || plan_make(plan, &p, 1, &err) != 0)
		fail_msg("%s", err.text);
}

/* Beside what is used there is memory for the units ahead, not for all; x is the input, and one sum over it. */
static void test_gathers_hold_what_they_may(void **state)
{
	static bool before[NODES_MAX][NODES_MAX];
	struct schedule s;
	struct plan plan;

	(void)state;
	for (int ahead = -1; ahead < UNITS; ahead++) {
		struct graph *g = gathered_units(ahead);
		size_t units = ahead < 0 ? UNITS : (size_t)ahead + 1;

		make_plan(g, &s, &plan);
		assert_int_equal(plan.slab_bytes[SPACE_PRIVATE] - plan.persistent_bytes, (units + 2) * UNIT_BYTES);
		expect_all_ordered(&s);
		order_all(&s, before);
		for (int u = 0; u < UNITS; u++) { /* items of unit u: 3 u, a gather, and the two behind it */
			assert_true(before[3 * u][3 * u + 1]);
			for (int v = 0; v < u; v++)
				assert_int_equal(before[3 * v + 2][3 * u], ahead >= 0 && v < u - ahead);
		}
		graph_free(g);
	}
}

/* A reduction gives its memory back where a compute node is told to come after it. */
static void test_edges_free_memory(void **state)
{
	struct schedule s;
	struct plan plan;
	size_t bytes[2];

	(void)state;
	for (int bounded = 0; bounded < 2; bounded++) {
		struct graph *g = graph_new(true);
		struct tensor *x = graph_tensor(g, &(struct tensor){ .name = "x",
								     .kind = TENSOR_INPUT,
								     .dtype = DTYPE_F32,
								     .shape = SHAPE(UNIT_BYTES / 4),
								     .life = LIFE_MICRO });
		struct node *sum[UNITS];

		for (int u = 0; u < UNITS; u++) {
			struct node *made =
				graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(x, x), NODE_OUT(NULL) });

			sum[u] = allreduce_add(g, made->out[0], STREAM_COMM);
			if (bounded && u > 1)
				node_after(g, made, sum[u - 2]);
		}
		make_plan(g, &s, &plan);
		bytes[bounded] = plan.slab_bytes[SPACE_PRIVATE];
		expect_all_ordered(&s);
		graph_free(g);
	}
	assert_int_equal(bytes[0], (UNITS + 1) * UNIT_BYTES);
	assert_int_equal(bytes[1], 3 * UNIT_BYTES);
}

/* What is taken away hands its edges on; a node cannot be after a later one. */
static void test_edges_are_kept(void **state)
{
	struct graph *g = gathered_units(0);
	struct node *gather = g->nodes[6], *front = g->nodes[4], *gone = g->nodes[5];
	struct schedule s;
	struct err err = ERR_INIT;
	struct buf text;

	(void)state;
	assert_int_equal(gather->n_after, 1);
	assert_ptr_equal(gather->after[0], gone);
	node_after(g, gather, gone);
	assert_int_equal(gather->n_after, 1);
	buf_init(&text, 1 << 16);
	graph_dump(g, &text);
	buf_addc(&text, '\0');
	assert_non_null(strstr((const char *)text.data, "stream=gather after=5\n"));
	buf_done(&text);
	graph_remove(g, gone->id);
	assert_int_equal(gather->n_after, 1);
	assert_ptr_equal(gather->after[0], front);
	node_after(g, front, gather);
	assert_int_equal(schedule_make(&s, g, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, front->name));
	assert_non_null(strstr(err.text, gather->name));
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_gathers_hold_what_they_may),
		cmocka_unit_test(test_edges_free_memory),
		cmocka_unit_test(test_edges_are_kept),
	};

	return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
