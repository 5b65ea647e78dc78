/* SPDX-License-Identifier: Apache-2.0 */
/* stream_test.c: schedules and plans of random graphs on concurrent streams. Whatever streams do between the waits that
 * the schedule has placed, an item finds its operands as they were written for it, from its start to its end, and
 * begins after the nodes it depends on; any two items that access the same bytes, one of them a write, are ordered by
 * streams and waits. Gathers that only read parameters occupy memory no earlier than their earliest
 * start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/ordered.h"
#include "trainer/graph/rng.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/collectives/collectives.h"
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

/* Any activation or the input; more recent ones are more likely. */
static struct tensor *pick(struct graph *g, struct draws *d)
{
	int back = below(d, g->n_tensors < 6 || below(d, 4) == 0 ? g->n_tensors : 6);

	return g->tensors[g->n_tensors - 1 - back];
}

/* Sometimes adds one or two earlier nodes as dependencies of n. */
static void add_edges(struct graph *g, struct node *n, struct draws *d)
{
	while (n->id > 0 && below(d, 4) == 0)
		node_after(g, n, g->nodes[below(d, n->id)]);
}

/* Sums on the compute stream; reductions, in place and into new tensors, on all of the first few; three different
 * sizes. */
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
			allreduce_add(g, a, 0, stream);
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

/* The last writer of each piece of memory: a tensor of a slot and the count of writes to it, or an item's workspace. */
struct memory {
	int owner[PIECES_MAX];
	int version[PIECES_MAX];
};

enum { WORKSPACE = 1000000, SLOTS_MAX = 8, TENSORS_MAX = NODES_MAX * 2, ITEMS_MAX = NODES_MAX * SLOTS_MAX };

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

/* A tensor of a micro-batch is a different one in each slot. */
static int key_of(const struct tensor *t, int slot)
{
	return t->life == LIFE_MICRO ? slot * TENSORS_MAX + t->id : t->id;
}

/* Which write of each tensor an item must read: determined by the order of the schedule. */
struct expected {
	int in[2];
	int out;
};

static bool owns(const struct memory *m, const struct tensor *t, int slot, int version)
{
	return owned(m, plan_offset(t, slot), tensor_bytes(t), key_of(t, slot), version);
}

static void own_tensor(struct memory *m, const struct tensor *t, int slot, int version)
{
	own(m, plan_offset(t, slot), tensor_bytes(t), key_of(t, slot), version);
}

static void own_inputs(struct memory *m, const struct graph *g, int slot)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_INPUT)
			own_tensor(m, g->tensors[i], slot, 0);
}

static bool writes_over(const struct schedule_item *it, const struct tensor *in)
{
	const struct tensor *out = it->node->out[0];

	return out == in || plan_offset(out, it->slot) == plan_offset(in, it->slot);
}

static void start(struct memory *m, const struct schedule *s, int item, const struct expected *e)
{
	const struct schedule_item *it = &s->items[item];
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (!owns(m, n->in[k], it->slot, e->in[k]))
			fail_msg("%s starts with a different %s than was written for it", n->name, n->in[k]->name);
	own(m, plan_workspace(n, it->slot), n->workspace_bytes, WORKSPACE + item, 0);
	own_tensor(m, n->out[0], it->slot, e->out);
}

static void finish(const struct memory *m, const struct schedule *s, int item, const struct expected *e)
{
	const struct schedule_item *it = &s->items[item];
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (!writes_over(it, n->in[k]) && !owns(m, n->in[k], it->slot, e->in[k]))
			fail_msg("%s was overwritten while %s read it", n->in[k]->name, n->name);
	if (!owned(m, plan_workspace(n, it->slot), n->workspace_bytes, WORKSPACE + item, 0) ||
	    !owns(m, n->out[0], it->slot, e->out))
		fail_msg("the result of %s was overwritten before it was complete", n->name);
}

/* version: of each tensor at the end. */
static void number_versions(const struct schedule *s, struct expected *e, int *version)
{
	memset(version, 0, sizeof(int) * SLOTS_MAX * TENSORS_MAX);
	for (int i = 0; i < s->n; i++) {
		const struct schedule_item *it = &s->items[i];
		const struct node *n = it->node;

		for (int k = 0; k < n->n_in; k++)
			e[i].in[k] = version[key_of(n->in[k], it->slot)];
		e[i].out = ++version[key_of(n->out[0], it->slot)];
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

/* A stream has completed everything before its next item. */
static bool may_start(const struct schedule *s, const struct lane *lanes, int item)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (lanes[k].next < s->items[item].wait[k])
			return false;
	return true;
}

/* Of the micro-batches that have reached it by then, that of the item is the last. */
static void expect_order(const struct schedule *s, int item, const bool *complete)
{
	const struct node *n = s->items[item].node;

	for (int i = 0; i < n->n_after; i++)
		for (int k = 0; k < item; k++)
			if (s->items[k].node == n->after[i] && !complete[k])
				fail_msg("%s began before %s was complete", n->name, n->after[i]->name);
}

static void expect_kept(const struct memory *m, const struct graph *g, const struct schedule *s, const int *last)
{
	for (int i = 0; i < g->n_tensors; i++)
		for (int slot = 0; g->tensors[i]->keep && slot < s->slots; slot++)
			if (last[key_of(g->tensors[i], slot)] &&
			    !owns(m, g->tensors[i], slot, last[key_of(g->tensors[i], slot)]))
				fail_msg("%s was to be kept, but was overwritten", g->tensors[i]->name);
}

static void run_one_order(const struct graph *g, const struct schedule *s, struct draws *d)
{
	static struct memory m;
	static struct expected e[ITEMS_MAX];
	static int last[SLOTS_MAX * TENSORS_MAX];
	bool complete[ITEMS_MAX] = { false };
	struct lane lanes[STREAM_COUNT];
	int done = 0;

	number_versions(s, e, last);
	memset(&m, 0xff, sizeof(m));
	for (int slot = 0; !s->fed && slot < s->slots; slot++)
		own_inputs(&m, g, slot);
	for (int k = 0; k < STREAM_COUNT; k++)
		lanes[k] = (struct lane){ .next = next_of(s, (enum stream)k, 0) };
	for (int tries = 0; done < s->n; tries++) {
		int k = below(d, STREAM_COUNT);
		struct lane *l = &lanes[k];

		assert_true(tries < 100000); /* the waits never cause a deadlock of streams */
		if (l->next >= s->n || (!l->running && !may_start(s, lanes, l->next)))
			continue;
		if (!l->running) {
			expect_order(s, l->next, complete);
			if (s->items[l->next].feeds)
				own_inputs(&m, g, s->items[l->next].slot);
			start(&m, s, l->next, &e[l->next]);
		} else {
			finish(&m, s, l->next, &e[l->next]);
			complete[l->next] = true;
			l->next = next_of(s, (enum stream)k, l->next + 1);
			done++;
		}
		l->running = !l->running;
	}
	expect_kept(&m, g, s, last);
}

/* before[a][b]: a is complete when b begins; from streams, waits and their transitive closure. */
static void order_all(const struct schedule *s, bool before[ITEMS_MAX][ITEMS_MAX])
{
	memset(before, 0, sizeof(bool[ITEMS_MAX][ITEMS_MAX]));
	for (int b = 0; b < s->n; b++)
		for (int a = b - 1; a >= 0; a--) {
			const struct schedule_item *x = &s->items[a], *y = &s->items[b];

			before[a][b] |= x->stream == y->stream || a < y->wait[x->stream];
			for (int c = 0; before[a][b] && c < a; c++)
				before[c][b] |= before[c][a];
		}
}

static void expect_all_ordered(const struct graph *g, const struct schedule *s)
{
	struct unordered u;

	if (ordered_fails(g, s, &u))
		fail_msg("%s and %s touch the same bytes in any order", s->items[u.first].node->name,
			 s->items[u.second].node->name);
}

/* Every wait is needed: without it an order would be lost. */
static void expect_no_idle_wait(const struct schedule *s)
{
	static struct schedule_clock with[ITEMS_MAX], without[ITEMS_MAX];

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

static void check(struct graph *g, struct schedule *s, struct draws *d)
{
	struct plan_program p = { "random", g, s };
	struct plan plan;
	struct err err = ERR_INIT;

	if (plan_make(&plan, &p, 1, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(plan.slab_bytes[SPACE_PRIVATE] <= (size_t)PIECES_MAX * PIECE);
	expect_all_ordered(g, s);
	expect_no_idle_wait(s);
	for (int i = 0; i < ORDERS; i++)
		run_one_order(g, s, d);
	graph_free(g);
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < GRAPHS; seed++) {
		struct draws d = { { seed, rng_stream("streams") }, 0 };
		struct graph *g = random_graph(&d);
		struct err err = ERR_INIT;
		struct schedule s;

		if (schedule_make(&s, g, &err) != 0)
			fail_msg("%s", err.text);
		check(g, &s, &d);
	}
}

/* Parts of a random graph in the turns of some stage; nodes of the last part read and keep tensors of the step. */
static void make_turns(struct graph *g, struct schedule *s, struct draws *d)
{
	struct schedule_turn turn[2 * SLOTS_MAX + 1];
	int stages = 1 + below(d, 4), micros = 1 + below(d, SLOTS_MAX - 1);
	struct schedule_order o = { .turn = turn,
				    .n = schedule_turns(micros),
				    .micros = micros,
				    .inputs_ahead = below(d, 2) };
	int forward = 1 + below(d, g->n_nodes), backward = forward + below(d, g->n_nodes - forward + 1);
	struct err err = ERR_INIT;

	g->nodes[0]->stream = STREAM_COMPUTE; /* it feeds the others */
	for (int i = 0; i < g->n_nodes; i++)
		g->nodes[i]->part = i < forward ? PART_FORWARD : i < backward ? PART_BACKWARD : PART_STEP;
	schedule_pipeline(turn, below(d, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE, stages, below(d, stages), micros);
	if (schedule_make_turns(s, g, &o, &err) != 0)
		fail_msg("%s", err.text);
}

static void test_turns(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < GRAPHS / 2; seed++) {
		struct draws d = { { seed, rng_stream("turns") }, 0 };
		struct graph *g = random_graph(&d);
		struct schedule s;

		make_turns(g, &s, &d);
		check(g, &s, &d);
	}
}

/* Every micro-batch once forward, once backward, both in order; a limited number at once; the last stage never more
 * than one. By hand: three stages, four micro-batches. */
static void test_pipelines(void **state)
{
	static const char *const by_hand[] = { "F0 F1 F2 B0 F3 B1 B2 B3 ", "F0 F1 B0 F2 B1 F3 B2 B3 ",
					       "F0 B0 F1 B1 F2 B2 F3 B3 " };
	struct schedule_turn turn[2 * 16 + 1];

	(void)state;
	for (int stage = 0; stage < 3; stage++) {
		char text[64] = "";

		schedule_pipeline(turn, PIPELINE_1F1B, 3, stage, 4);
		for (int i = 0; i < 8; i++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%c%d ",
				 turn[i].part == PART_FORWARD ? 'F' : 'B', turn[i].micro);
		assert_string_equal(text, by_hand[stage]);
	}
	for (int stages = 1; stages <= 5; stages++)
		for (int micros = 1; micros <= 16; micros++)
			for (int i = 0; i < 2 * stages; i++) {
				int forward = 0, backward = 0, most = 0, stage = i / 2;

				schedule_pipeline(turn, (enum pipeline)(i % 2), stages, stage, micros);
				for (int t = 0; t < 2 * micros; t++) {
					int *count = turn[t].part == PART_FORWARD ? &forward : &backward;

					assert_int_equal(turn[t].micro, (*count)++);
					most = forward - backward > most ? forward - backward : most;
				}
				assert_int_equal(forward, micros);
				assert_int_equal(backward, micros);
				assert_int_equal(turn[2 * micros].part, PART_STEP);
				assert_int_equal(most, i % 2 || micros < stages - stage ? micros : stages - stage);
			}
}

#define UNITS 6
#define UNIT_BYTES 4096

static struct tensor *unit_input(struct graph *g)
{
	return graph_tensor(g, &(struct tensor){ .name = "x",
						 .kind = TENSOR_INPUT,
						 .dtype = DTYPE_F32,
						 .shape = SHAPE(UNIT_BYTES / 4),
						 .life = LIFE_MICRO });
}

static size_t planned(struct graph *g, struct schedule *s)
{
	struct plan_program p = { "units", g, s };
	struct err err = ERR_INIT;
	struct plan plan;

	if (plan_make(&plan, &p, 1, &err) != 0)
		fail_msg("%s", err.text);
	return plan.slab_bytes[SPACE_PRIVATE] - plan.persistent_bytes;
}

/* The forward part computes from an input what the backward part reads: the plan contains one of these per active
 * micro-batch, and one input, or the result of the backward part. */
static void test_slots_share_memory(void **state)
{
	enum { STAGES = 4, MICROS = 7 };
	struct schedule_turn turn[2 * MICROS + 1];

	(void)state;
	for (int i = 0; i < STAGES * MICROS * 2; i++) {
		int stage = i % STAGES, micros = i / STAGES % MICROS + 1, kind = i / STAGES / MICROS;
		int most = kind == PIPELINE_GPIPE || micros < STAGES - stage ? micros : STAGES - stage;
		struct schedule_order o = { .turn = turn, .n = schedule_turns(micros), .micros = micros };
		struct graph *g = graph_new(true);
		struct tensor *x = unit_input(g);
		struct node *a = graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(x, x), NODE_OUT(NULL) });
		struct err err = ERR_INIT;
		struct schedule s;

		a->part = PART_FORWARD;
		graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(a->out[0], a->out[0]), NODE_OUT(NULL) })
			->part = PART_BACKWARD;
		schedule_pipeline(turn, (enum pipeline)kind, STAGES, stage, micros);
		assert_int_equal(schedule_make_turns(&s, g, &o, &err), 0);
		assert_int_equal(planned(g, &s), (size_t)(most + 1) * UNIT_BYTES);
		graph_free(g);
	}
}

/* Like a sharded model's forward pass: each unit's weights are gathered from a persistent part, then used by two nodes;
 * `ahead` units are gathered in advance, or, < 0, all of them at any time. */
static struct graph *gathered_units(int ahead)
{
	struct graph *g = graph_new(true);
	struct tensor *x = unit_input(g);
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

static size_t schedule_and_plan(struct graph *g, struct schedule *s)
{
	struct err err = ERR_INIT;

	if (schedule_make(s, g, &err) != 0)
		fail_msg("%s", err.text);
	return planned(g, s);
}

/* There is memory for the current unit and the units ahead, not for all; x is the input, and one sum over it. */
static void test_gathers_use_bounded_memory(void **state)
{
	static bool before[ITEMS_MAX][ITEMS_MAX];
	struct schedule s;

	(void)state;
	for (int ahead = -1; ahead < UNITS; ahead++) {
		struct graph *g = gathered_units(ahead);
		size_t units = ahead < 0 ? UNITS : (size_t)ahead + 1;

		assert_int_equal(schedule_and_plan(g, &s), (units + 2) * UNIT_BYTES);
		expect_all_ordered(g, &s);
		order_all(&s, before);
		for (int u = 0; u < UNITS; u++) { /* items of unit u: 3 u, a gather, and the two after it */
			assert_true(before[3 * u][3 * u + 1]);
			for (int v = 0; v < u; v++)
				assert_int_equal(before[3 * v + 2][3 * u], ahead >= 0 && v < u - ahead);
		}
		graph_free(g);
	}
}

/* The memory of a reduction is released where a compute node depends on it. */
static void test_edges_free_memory(void **state)
{
	struct schedule s;
	size_t bytes[2];

	(void)state;
	for (int bounded = 0; bounded < 2; bounded++) {
		struct graph *g = graph_new(true);
		struct tensor *x = unit_input(g);
		struct node *sum[UNITS];

		for (int u = 0; u < UNITS; u++) {
			struct node *made =
				graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(x, x), NODE_OUT(NULL) });

			sum[u] = allreduce_add(g, made->out[0], 0, STREAM_COMM);
			if (bounded && u > 1)
				node_after(g, made, sum[u - 2]);
		}
		bytes[bounded] = schedule_and_plan(g, &s);
		expect_all_ordered(g, &s);
		graph_free(g);
	}
	assert_int_equal(bytes[0], (UNITS + 1) * UNIT_BYTES);
	assert_int_equal(bytes[1], 3 * UNIT_BYTES);
}

/* The edges of a removed node are passed on; a node cannot depend on a later one. */
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
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_pipelines),
		cmocka_unit_test(test_slots_share_memory),
		cmocka_unit_test(test_gathers_use_bounded_memory),
		cmocka_unit_test(test_edges_free_memory),
		cmocka_unit_test(test_edges_are_kept),
	};

	return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
