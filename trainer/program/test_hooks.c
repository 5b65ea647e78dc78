/* test_hooks.c: see test_hooks.h. */
#include "trainer/program/test_hooks.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/ops/ops.h"

static bool is_reduce(const struct node *n)
{
	return n->op == &op_reduce_scatter || (n->op == &op_allreduce && n->bucket >= 0);
}

static bool is_gather(const struct node *n)
{
	return n->op == &op_all_gather;
}

static bool is_norm(const struct node *n)
{
	return n->op == &op_allreduce && n->stream == STREAM_COMPUTE && n->group == GROUP_SHARD;
}

static bool is_message(const struct node *n)
{
	return n->op == &op_send;
}

static bool is_sum(const struct node *n)
{
	return n->op == &op_accumulate;
}

static bool is_copy_back(const struct node *n)
{
	return n->op == &op_copy && n->stream == STREAM_COPY_IN;
}

static const struct {
	const char *word;
	bool (*is)(const struct node *n);
	bool twice; /* the node runs twice; else it is removed */
} faults[] = {
	{ "reduce", is_reduce, false },
	{ "gather", is_gather, false },
	{ "norm", is_norm, false },
	{ "message", is_message, false },
	{ "micro", is_sum, true },
	{ "offload", is_copy_back, false },
};

static void break_node(struct graph *g, struct node *n, bool twice)
{
	struct node *again;

	if (!twice) {
		graph_remove(g, n->id);
		return;
	}
	again = graph_node(g, &(struct node_spec){ .op = n->op, .in = n->in, .out = n->out, .n_in = n->n_in,
						   .n_out = n->n_out });
	if (!again)
		return;
	again->phase = n->phase;
	graph_move(g, again->id, n->id + 1);
}

/* Makes the next compute node wait for each collective of another stream. */
static void serialise_collectives(struct graph *g)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];
		int next = i + 1;

		if (!n->op->collective || n->stream == STREAM_COMPUTE)
			continue;
		while (next < g->n_nodes && g->nodes[next]->stream != STREAM_COMPUTE)
			next++;
		if (next < g->n_nodes)
			node_after(g, g->nodes[next], n);
	}
}

int test_hooks_plant(struct graph *g)
{
	const char *word = getenv("DPTRAIN_TEST_FAULT");

	if (word && !strcmp(word, "serial"))
		serialise_collectives(g);
	for (size_t k = 0; word && k < sizeof(faults) / sizeof(faults[0]); k++)
		for (int i = g->n_nodes - 1; !strcmp(word, faults[k].word) && i >= 0; i--)
			if (faults[k].is(g->nodes[i])) {
				break_node(g, g->nodes[i], faults[k].twice);
				break;
			}
	return g->err.code;
}

void test_hooks_plant_turns(struct schedule *s)
{
	const char *word = getenv("DPTRAIN_TEST_FAULT");

	for (int i = 0; word && !strcmp(word, "slot") && i < s->n; i++)
		if (s->items[i].node->part == PART_BACKWARD && s->items[i].stream == STREAM_COMPUTE) {
			s->items[i].slot = (s->items[i].slot + 1) % s->slots;
			break;
		}
}
