/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c: cuts a model between its blocks by a dynamic program over their work, and assigns nodes to the stages. */
#include "trainer/strategies/strategy_inside.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/ops.h"

#define FLOPS_PER_BYTE 8.0 /* a core computes about that many operations while a byte comes from memory */

int stages_last_block(const struct graph *g)
{
	int last = 0;

	for (int i = 0; i < g->n_nodes; i++)
		last = g->nodes[i]->block > last ? g->nodes[i]->block : last;
	return last;
}

static int position_of_loss(const struct graph *g)
{
	return g->loss && g->loss->producer ? g->loss->producer->id : g->n_nodes - 1;
}

/* ---- where to cut ---- */

static double node_work(const struct node *n)
{
	double bytes = 0;

	for (int k = 0; k < n->n_in; k++)
		bytes += n->in[k] ? (double)tensor_bytes(n->in[k]) : 0;
	for (int k = 0; k < n->n_out; k++)
		bytes += n->out[k] ? (double)tensor_bytes(n->out[k]) : 0;
	return op_flops(n) + FLOPS_PER_BYTE * bytes;
}

/* sum[b]: work of blocks 1 to b; the last one includes what follows. sum[0] is 0. */
static void accumulate_block_work(double *sum, const struct graph *g, int blocks)
{
	int turn = position_of_loss(g), block = 1;

	for (int i = 0; i <= turn; i++) {
		block = g->nodes[i]->block > block ? g->nodes[i]->block : block;
		sum[block] += node_work(g->nodes[i]);
	}
	for (int b = 1; b <= blocks; b++)
		sum[b] += sum[b - 1];
}

/* Dynamic program. best[s][b]: the most work of a stage when s + 1 stages share the first b blocks; from[s][b]: where
 * the last of them begins. */
struct partition_search {
	double *sum, *best;
	int *from;
	int blocks;
};

static void extend_partition(struct partition_search *t, int s, int b)
{
	const int width = t->blocks + 1;
	double *best = &t->best[s * width + b];

	*best = -1;
	for (int a = s; a < b; a++) {
		double own = t->sum[b] - t->sum[a], before = s ? t->best[(s - 1) * width + a] : 0;
		double most = own > before ? own : before;

		if ((s == 0 && a > 0) || (*best >= 0 && most >= *best))
			continue;
		*best = most;
		t->from[s * width + b] = a;
	}
}

/* Finds the partition whose largest stage has the least work. */
static void balance_stages(struct stages *ret, const struct graph *g, int blocks)
{
	const size_t width = (size_t)blocks + 1, cells = width * (size_t)ret->n;
	struct partition_search t = { mem_array(width, sizeof(double)), mem_array(cells, sizeof(double)),
				      mem_array(cells, sizeof(int)), blocks };

	accumulate_block_work(t.sum, g, blocks);
	for (int s = 0; s < ret->n; s++)
		for (int b = s + 1; b <= blocks; b++)
			extend_partition(&t, s, b);
	for (int s = ret->n - 1, b = blocks; s >= 0; s--) {
		ret->first[s + 1] = b + 1;
		b = t.from[(size_t)s * width + (size_t)b];
		ret->first[s] = b + 1;
	}
	free(t.sum);
	free(t.best);
	free(t.from);
}

/* Reads "3,4,5", the number of blocks of each stage. */
static int read_partition(struct stages *ret, const char *text, int blocks, struct err *err)
{
	int n = 0, at = 1;

	for (const char *p = text; n < ret->n; n++) {
		char *end;
		long count = strtol(p, &end, 10);

		if (end == p || count < 1 || count > blocks || (*end && *end != ','))
			break;
		ret->first[n] = at;
		at += (int)count;
		p = *end ? end + 1 : end;
		if (n == ret->n - 1 && *end)
			break;
	}
	ret->first[ret->n] = at;
	if (n == ret->n && at == blocks + 1)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--pp-partition %s: expected %d numbers of blocks that add up to the model's %d", text,
		       ret->n, blocks);
}

int stages_cut(struct stages *ret, const struct graph *model, const struct strategy_opts *o, struct err *err)
{
	int blocks = stages_last_block(model);

	*ret = (struct stages){ .n = o->stages };
	if (o->stages > blocks)
		return err_set(err, ERR_USAGE, "--pp-stages %d: the model has %d blocks: each stage needs one",
			       o->stages, blocks);
	if (o->partition)
		return read_partition(ret, o->partition, blocks, err);
	balance_stages(ret, model, blocks);
	return 0;
}

/* ---- stages of nodes ---- */

static int stage_of_block(const struct stages *s, int block)
{
	int i = 0;

	while (i < s->n - 1 && block >= s->first[i + 1])
		i++;
	return i;
}

static bool casts_a_parameter(const struct node *n)
{
	return n->op == &op_cast && n->in[0]->life == LIFE_PERSISTENT;
}

/* A cast belongs to the stage of the tensor that it casts. */
static int stage_of_cast(const int *known, const struct node *n, int otherwise)
{
	const struct node *from = n->op == &op_cast ? n->in[0]->producer : NULL;

	return from && from->id < n->id && known[from->id] != STAGE_ANY ? known[from->id] : otherwise;
}

void stages_of_nodes(int *ret, const struct graph *g, const struct stages *s)
{
	int turn = position_of_loss(g), outside = 0;

	for (int i = 0; i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];

		if (n->block) /* nodes without a block follow the blocks, forward and back */
			outside = i <= turn ? s->n - 1 : 0;
		if (i == turn + 1 && !n->block)
			outside = s->n - 1;
		ret[i] = n->block ? stage_of_block(s, n->block) : stage_of_cast(ret, n, outside);
		if (i <= turn && casts_a_parameter(n))
			ret[i] = STAGE_ANY;
	}
}
