/* bn_fuse.c: fusion that minimises reads and writes of activations: the end of a block (norm, add, ReLU) in one forward
 * pass; mask, sum of the two gradients and statistics in one backward pass. */
#include "trainer/ops/bn/bn_fuse.h"

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/ops.h"

enum { GRAD_DY, GRAD_DY2, GRAD_X, GRAD_STAT, GRAD_GAMMA, GRAD_BETA, GRAD_Y }; /* operands of bn_grad_stats */

static void take_absorbed_output(struct graph *g, struct node *n, struct node *absorbed)
{
	struct tensor *y = absorbed->out[0];

	graph_remove(g, absorbed->id);
	n->out[0] = y;
	y->producer = n;
}

/* The other term must be ready when n runs, or be persistent. If two norms feed one sum, the later norm therefore
 * absorbs it. */
static bool is_ready_before(const struct tensor *t, const struct node *n)
{
	return !t->producer || t->producer->id < n->id;
}

static bool absorb_residual_add(struct graph *g, struct node *n, int residual)
{
	struct bn_attr *a = n->attr;
	struct tensor *y = n->out[0], *other;
	struct node *add = graph_user(g, y, OP_add);

	if (a->relu || a->residual || y->keep || !add || add->phase != PHASE_FORWARD || graph_count_uses(g, y) != 1)
		return false;
	other = add->in[add->in[0] == y ? 1 : 0];
	if (!is_ready_before(other, n))
		return false;
	n->in[residual] = other;
	a->residual = true;
	take_absorbed_output(g, n, add);
	return true;
}

struct bn_backward {
	struct node *mask, *sums, *dx; /* relu_grad, bn_grad_stats, bn_grad_apply (NULL: x needs no gradient) */
};

/* Finds the backward nodes of the ReLU and of this norm; false if they are not as expected. */
static bool find_bn_backward(const struct graph *g, const struct node *n, const struct node *relu,
			     struct bn_backward *b)
{
	struct tensor *masked;
	int uses;

	b->mask = graph_user(g, relu->out[0], OP_relu_grad);
	if (!b->mask || b->mask->in[1] != relu->out[0])
		return false;
	masked = b->mask->out[0];
	b->sums = graph_user(g, n->in[1], OP_bn_grad_stats);
	b->dx = graph_user(g, n->in[1], OP_bn_grad_apply);
	if (!b->sums || b->sums->in[GRAD_DY] != masked || (b->dx && b->dx->in[0] != masked))
		return false;
	uses = graph_count_uses(g, masked);
	return ((const struct bn_attr *)n->attr)->residual || uses == 1 + (b->dx != NULL);
}

/* Without a residual the mask follows from x, so no masked gradient is written: both backward passes mask dy
 * themselves. */
static void set_mask_from_x(struct graph *g, const struct bn_backward *b)
{
	struct tensor *dy = b->mask->in[0];

	((struct bn_attr *)b->sums->attr)->relu = true;
	b->sums->in[GRAD_DY] = dy;
	if (b->dx) {
		((struct bn_attr *)b->dx->attr)->relu = true;
		b->dx->in[0] = dy;
	}
	graph_remove(g, b->mask->id);
}

/* With a residual other nodes need the masked gradient too, so the statistics pass writes it. It moves to the position
 * of the mask node, in front of its readers. */
static void set_mask_from_y(struct graph *g, const struct bn_backward *b, struct tensor *y)
{
	struct bn_attr *a = b->sums->attr;
	struct tensor *masked = b->mask->out[0];
	int at = b->mask->id;

	a->relu = a->residual = a->write_g = true;
	b->sums->in[GRAD_DY] = b->mask->in[0];
	b->sums->in[GRAD_Y] = y;
	b->sums->out[1] = masked;
	graph_remove(g, at);
	graph_move(g, b->sums->id, at);
	masked->producer = b->sums;
}

static bool absorb_bn_relu(struct graph *g, struct node *n)
{
	struct bn_attr *a = n->attr;
	struct tensor *y = n->out[0];
	struct node *relu = graph_user(g, y, OP_relu);
	struct bn_backward b = { 0 };

	if (a->relu || y->keep || !relu || graph_count_uses(g, y) != 1)
		return false;
	if (relu->out[0]->grad && !find_bn_backward(g, n, relu, &b))
		return false;
	if (b.mask && a->residual)
		set_mask_from_y(g, &b, relu->out[0]);
	else if (b.mask)
		set_mask_from_x(g, &b);
	a->relu = true;
	take_absorbed_output(g, n, relu);
	return true;
}

bool bn_fuse_apply(struct graph *g, struct node *n)
{
	return absorb_residual_add(g, n, 4) || absorb_bn_relu(g, n);
}

bool bn_fuse_infer(struct graph *g, struct node *n)
{
	return absorb_residual_add(g, n, 5) || absorb_bn_relu(g, n);
}

bool bn_fuse_grad_stats(struct graph *g, struct node *n)
{
	struct bn_attr *a = n->attr;
	struct tensor *dy = n->in[GRAD_DY];
	struct node *join = dy->producer, *dx = graph_user(g, n->in[GRAD_STAT], OP_bn_grad_apply);
	bool dx_reads = dx && dx->in[0] == dy;

	if (n->in[GRAD_DY2] || !join || join->op->id != OP_add || graph_count_uses(g, dy) != 1 + dx_reads)
		return false;
	n->in[GRAD_DY] = join->in[0];
	n->in[GRAD_DY2] = join->in[1];
	graph_remove(g, join->id);
	if (dx_reads) { /* g is now the sum, already masked: dx reads it unchanged */
		a->write_g = true;
		n->out[1] = dy;
		dy->producer = n;
		((struct bn_attr *)dx->attr)->relu = false;
	}
	return true;
}
