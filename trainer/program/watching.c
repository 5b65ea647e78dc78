/* watching.c: see watching.h. A result is identified by its name: "watch.<kind>.<what>". */
#include "trainer/program/watching.h"

#include <stdio.h>
#include <string.h>

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/watch/watch.h"
#include "trainer/ops/xent/xent.h"

static const char *const prefixes[WATCHING_KINDS] = {
	[WATCHING_WEIGHT] = "watch.weight.",	 [WATCHING_GRADIENT] = "watch.gradient.",
	[WATCHING_UPDATE] = "watch.update.",	 [WATCHING_OUTPUT] = "watch.output.",
	[WATCHING_TERM] = "watch.term.",
};

static struct tensor *add_watch_node(struct graph *g, enum watching_kind kind, const char *of, struct tensor *x,
				     struct tensor *before)
{
	return watch_add(g, x, before, graph_printf(g, "%s%s", prefixes[kind], of));
}

struct tensor *watching_begin(struct graph *g, struct tensor *p)
{
	add_watch_node(g, WATCHING_GRADIENT, p->name, p->grad, NULL);
	add_watch_node(g, WATCHING_WEIGHT, p->name, p, NULL);
	return watch_hold_add(g, p);
}

void watching_end(struct graph *g, struct tensor *p, struct tensor *held)
{
	if (held)
		add_watch_node(g, WATCHING_UPDATE, p->name, p, held);
}

/* Moves the node that made t, the last one so far, after `at`, with the phase, part and block of that node. */
static void move_after_node(struct graph *g, const struct tensor *t, const struct node *at)
{
	struct node *n = t ? t->producer : NULL;

	if (!n)
		return;
	n->phase = at->phase;
	n->part = at->part;
	n->block = at->block;
	graph_move(g, n->id, at->id + 1);
}

static bool is_rectifier(const struct node *n)
{
	return n->op == &op_relu || (n->op == &op_bn_apply && ((const struct bn_attr *)n->attr)->relu);
}

void watching_outputs(struct graph *g)
{
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];

		if (n->phase == PHASE_FORWARD && is_rectifier(n))
			move_after_node(g, add_watch_node(g, WATCHING_OUTPUT, n->out[0]->name, n->out[0], NULL), n);
	}
}

void watching_terms(struct graph *g)
{
	const int n = g->n_tensors; /* results are added after these */

	for (int i = 0; i < n && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (p->kind == TENSOR_PARAM && p->grad && p->grad->producer)
			move_after_node(g, add_watch_node(g, WATCHING_TERM, p->name, p->grad, NULL), p->grad->producer);
	}
}

void watching_losses(struct graph *g)
{
	struct node *n = g->loss ? g->loss->producer : NULL;
	const int at = !n ? -1 : n->op == &op_xent ? XENT_OUT_LOSSES : n->op == &op_lmhead ? LMHEAD_LOSSES : -1;

	if (at < 0 || n->out[at])
		return;
	n->out[at] = graph_tensor(g, &(struct tensor){ .name = WATCHING_LOSSES,
						       .kind = TENSOR_RESULT,
						       .dtype = DTYPE_F64,
						       .shape = SHAPE(n->in[0]->shape.dim[0]),
						       .life = LIFE_MICRO });
	if (n->out[at])
		n->out[at]->producer = n;
}

const char *watching_of(const struct tensor *t, enum watching_kind *ret)
{
	for (int k = 0; t->kind == TENSOR_RESULT && k < WATCHING_KINDS; k++) {
		const size_t n = strlen(prefixes[k]);

		if (!strncmp(t->name, prefixes[k], n)) {
			*ret = (enum watching_kind)k;
			return t->name + n;
		}
	}
	return NULL;
}

const struct tensor *watching_find(const struct graph *g, enum watching_kind kind, const char *of)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s", prefixes[kind], of);
	return graph_find(g, name);
}
