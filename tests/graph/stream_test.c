/* stream_test.c: schedules and plans of random graphs on two streams that run beside each other. Whatever the two do
 * between the waits that the schedule has placed, an item finds its operands as they were written for it, from its
 * start to its end. */
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

/* Sums on the compute stream; reductions, in place and into new tensors, on both; sizes differ by three kinds. */
static struct graph *random_graph(struct draws *d)
{
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
		enum stream stream = below(d, 2) ? STREAM_COMM : STREAM_COMPUTE;

		if (below(d, 3) == 0 && a->kind != TENSOR_INPUT)
			allreduce_add(g, a, stream);
		else if (shape_equal(&a->shape, &b->shape))
			graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(a, b), NODE_OUT(NULL) });
		else
			graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(a), NODE_OUT(NULL) })->stream =
				stream;
		g->nodes[g->n_nodes - 1]->workspace_bytes = (size_t)below(d, 3) * 40;
		g->tensors[g->n_tensors - 1]->keep |= below(d, 12) == 0;
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

/* Item `wait` is complete once its stream has gone past it. */
static bool may_start(const struct schedule *s, const struct lane *lanes, int item)
{
	int wait = s->items[item].wait;

	return wait < 0 || lanes[s->items[wait].stream].next > wait;
}

static void run_one_order(const struct graph *g, const struct schedule *s, const struct expected *e, struct draws *d)
{
	static struct memory m;
	struct lane lanes[STREAM_COUNT];
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

		assert_true(tries < 100000); /* the waits never lock both streams */
		if (l->next >= s->n || (!l->running && !may_start(s, lanes, l->next)))
			continue;
		if (!l->running) {
			start(&m, g->nodes[l->next], &e[l->next]);
		} else {
			finish(&m, g->nodes[l->next], &e[l->next]);
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
		number_versions(g, e);
		for (int i = 0; i < ORDERS; i++)
			run_one_order(g, &s, e, &d);
		graph_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
