/* SPDX-License-Identifier: Apache-2.0 */
/* bn.c: shape rules, gradients and fusion rules of batch normalisation. */
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

static bool absorb_residual_add(struct graph *g, struct node *n)
{
	struct bn_attr *a = n->attr;
	struct tensor *y = n->out[0], *other;
	struct node *add;

	if (a->relu || a->residual || y->keep)
		return false;
	add = graph_user(g, y, OP_add);
	if (!add || add->phase != PHASE_FORWARD || graph_count_uses(g, y) != 1)
		return false;
	other = add->in[add->in[0] == y ? 1 : 0];
	if (!is_ready_before(other, n))
		return false;
	n->in[4] = other;
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
	struct bn_backward b = { 0 };
	struct node *relu;

	if (a->relu || y->keep)
		return false;
	relu = graph_user(g, y, OP_relu);
	if (!relu || graph_count_uses(g, y) != 1)
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

/* a following add; a following ReLU and its gradient. */
static bool bn_fuse_apply(struct graph *g, struct node *n)
{
	return absorb_residual_add(g, n) || absorb_bn_relu(g, n);
}

/* The sum of two gradients that is its input. */
static bool bn_fuse_grad_stats(struct graph *g, struct node *n)
{
	struct bn_attr *a = n->attr;
	struct tensor *dy = n->in[GRAD_DY];
	struct node *join = dy->producer, *dx;
	bool dx_reads;

	if (n->in[GRAD_DY2] || !join || join->op->id != OP_add)
		return false;
	dx = graph_user(g, n->in[GRAD_STAT], OP_bn_grad_apply);
	dx_reads = dx && dx->in[0] == dy;
	if (graph_count_uses(g, dy) != 1 + dx_reads)
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

static const struct bn_attr defaults = { .eps = 1e-5, .momentum = 0.1 };

static struct node *add_bn_stats(struct graph *g, struct tensor *x, const struct bn_tensors *t, const char *name)
{
	const bool fixed = !g->training || t->mean->frozen || t->var->frozen;
	struct tensor *batch[] = { x }, *running[] = { t->mean, t->var };

	return graph_node(g, &(struct node_spec){ .op = fixed ? &op_bn_fixed : &op_bn_stats,
						  .name = graph_printf(g, "%s.stat", name),
						  .in = fixed ? running : batch,
						  .n_in = fixed ? 2 : 1,
						  NODE_OUT(NULL),
						  NODE_ATTR(defaults) });
}

static struct tensor *add_next_stat(struct graph *g, const struct tensor *running)
{
	struct tensor like = { .kind = TENSOR_MOMENT, .dtype = running->dtype, .shape = running->shape,
			       .life = LIFE_ACROSS };

	like.name = graph_printf(g, "%s.next", running->name);
	return like.name ? graph_tensor(g, &like) : NULL;
}

static void add_bn_running(struct graph *g, struct tensor *stat, const struct bn_tensors *t, const char *name)
{
	struct tensor *mean = add_next_stat(g, t->mean), *var = add_next_stat(g, t->var);

	graph_node(g, &(struct node_spec){ .op = &op_bn_running,
					   .name = graph_printf(g, "%s.running", name),
					   NODE_IN(stat, t->mean, t->var, mean, var),
					   NODE_OUT(mean, var),
					   NODE_ATTR(defaults) });
}

struct node *bn_keep_add(struct graph *g, const struct node *running, struct tensor *step)
{
	struct tensor *mean = running->in[1], *var = running->in[2];

	return graph_node(g, &(struct node_spec){ .op = &op_bn_keep,
						  .name = graph_printf(g, "%s.keep", running->name),
						  NODE_IN(step, running->out[0], running->out[1], mean, var),
						  NODE_OUT(mean, var) });
}

struct tensor *bn_add(struct graph *g, struct tensor *x, const struct bn_tensors *t)
{
	struct node *stats, *apply;
	const char *name;

	if (graph_failed(g))
		return NULL;
	name = graph_stem(g, t->gamma->name);
	stats = add_bn_stats(g, x, t, name);
	if (!stats)
		return NULL;
	apply = graph_node(g, &(struct node_spec){ .op = &op_bn_apply,
						   .name = name,
						   NODE_IN(x, stats->out[0], t->gamma, t->beta, NULL),
						   NODE_OUT(NULL),
						   NODE_ATTR(defaults) });
	if (stats->op != &op_bn_fixed)
		add_bn_running(g, stats->out[0], t, name);
	return apply ? apply->out[0] : NULL;
}

/* Returns true if t is a vector of count elements, or NULL (optional operand). */
static bool has_bn_length(const struct tensor *t, int64_t count)
{
	return !t || (t->shape.ndim == 1 && t->shape.dim[0] == count);
}

static bool has_shape_of(const struct tensor *t, const struct tensor *x)
{
	return !t || shape_equal(&t->shape, &x->shape);
}

static int64_t count_bn_channels(const struct tensor *x)
{
	return x->shape.ndim == 4 ? x->shape.dim[3] : -1;
}

static int bn_stats_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, count_bn_channels(n->in[0]) > 0, "x must be [N,H,W,C]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(2 * count_bn_channels(n->in[0]) + 1)), "");
}

static int bn_fixed_shape(struct graph *g, struct node *n)
{
	int64_t c = shape_count(&n->in[0]->shape);

	if (graph_expect(g, n, has_bn_length(n->in[0], c) && has_bn_length(n->in[1], c),
			 "mean and variance differ in length"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(2 * c + 1)), "");
}

static int bn_apply_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t c = count_bn_channels(x);

	if (graph_expect(g, n,
			 c > 0 && has_bn_length(n->in[1], 2 * c + 1) && has_bn_length(n->in[2], c) &&
				 has_bn_length(n->in[3], c) && has_shape_of(n->in[4], x),
			 "statistics, gain, bias or residual do not match the shape of x"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(x->dtype, x->shape), "");
}

static int bn_running_shape(struct graph *g, struct node *n)
{
	int64_t c = shape_count(&n->in[1]->shape);

	return graph_expect(g, n,
			    has_bn_length(n->in[0], 2 * c + 1) && has_bn_length(n->in[2], c) &&
				    has_bn_length(n->in[3], c) && has_bn_length(n->in[4], c) &&
				    (n->out[0] == n->in[3] || n->in[3] == n->in[1]) &&
				    (n->out[1] == n->in[4] || n->in[4] == n->in[2]),
			    "stat, running and next statistics differ in length");
}

static int bn_keep_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n,
			    n->out[0] == n->in[3] && n->out[1] == n->in[4] && has_shape_of(n->in[1], n->in[3]) &&
				    has_shape_of(n->in[2], n->in[4]),
			    "running statistics must be updated in place");
}

static int bn_grad_stats_shape(struct graph *g, struct node *n)
{
	const struct bn_attr *a = n->attr;
	const struct tensor *x = n->in[2];

	if (graph_expect(g, n,
			 count_bn_channels(x) > 0 && has_shape_of(n->in[0], x) && has_shape_of(n->in[1], x) &&
				 has_shape_of(n->in[6], x) && has_bn_length(n->in[3], 2 * count_bn_channels(x) + 1),
			 "the gradient does not match the shape of x") ||
	    graph_expect(g, n, !(a->relu && a->residual) || n->in[6], "ReLU with a residual needs y") ||
	    graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F64, SHAPE(2 * count_bn_channels(x))), ""))
		return g->err.code;
	return a->write_g ? graph_out(g, n, 1, TENSOR_TYPE(x->dtype, x->shape), ".g") : 0;
}

static int bn_grad_apply_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[1];

	if (graph_expect(g, n,
			 count_bn_channels(x) > 0 && has_shape_of(n->in[0], x) &&
				 has_bn_length(n->in[2], 2 * count_bn_channels(x) + 1) &&
				 has_bn_length(n->in[3], 2 * count_bn_channels(x)),
			 "the gradient does not match the shape of x"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(x->dtype, x->shape), "");
}

static int bn_grad_params_shape(struct graph *g, struct node *n)
{
	int64_t c = shape_count(&n->in[0]->shape) / 2;

	if (graph_out(g, n, 0, TENSOR_TYPE(DTYPE_F32, SHAPE(c)), ".gamma"))
		return g->err.code;
	return graph_out(g, n, 1, TENSOR_TYPE(DTYPE_F32, SHAPE(c)), ".beta");
}

/* Adds the sums, then the parameters' gradients from this rank's own sums, then dx. A strategy that synchronises the
 * sums between ranks inserts its reduction before dx. */
static int bn_apply_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *stat = n->in[1], *gamma = n->in[2], *beta = n->in[3];
	struct tensor *dy = graph_grad_get(g, n->out[0]), *dgamma = NULL, *dbeta = NULL;
	struct bn_attr attr = *(const struct bn_attr *)n->attr;
	struct node *sums, *dx;

	if (!dy)
		return 0;
	if (graph_expect(g, n, !attr.relu && !attr.residual, "gradients must be built before fusion"))
		return g->err.code;
	sums = graph_node(g, &(struct node_spec){ .op = &op_bn_grad_stats,
						  .name = graph_printf(g, "%s.dstat", n->name),
						  NODE_IN(dy, NULL, x, stat, gamma, beta, NULL),
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr) });
	if (gamma->wants_grad)
		dgamma = graph_param_grad(g, gamma);
	if (beta->wants_grad)
		dbeta = graph_param_grad(g, beta);
	if (!sums)
		return g->err.code;
	if (dgamma || dbeta)
		graph_node(g, &(struct node_spec){ .op = &op_bn_grad_params,
						   .name = graph_printf(g, "%s.dparams", n->name),
						   NODE_IN(sums->out[0]),
						   NODE_OUT(dgamma, dbeta),
						   NODE_ATTR(attr) });
	graph_grad_add(g, gamma, dgamma);
	graph_grad_add(g, beta, dbeta);
	if (!x->wants_grad)
		return g->err.code;
	dx = graph_node(g, &(struct node_spec){ .op = &op_bn_grad_apply,
						.name = graph_printf(g, "%s.dx", n->name),
						NODE_IN(dy, x, stat, sums->out[0], gamma, beta),
						NODE_OUT(NULL),
						NODE_ATTR(attr) });
	graph_grad_add(g, x, dx ? dx->out[0] : NULL);
	return g->err.code;
}

/* Sums are always f64; gain, bias and running statistics have the master type; the rest are activations. */
static enum dtype_class bn_dtype(const struct node *n, bool is_out, int index)
{
	const struct tensor *t = is_out ? n->out[index] : n->in[index];

	if (n->op == &op_bn_running || (t && t->shape.ndim == 1 && t->dtype == DTYPE_F64 && t->kind == TENSOR_ACT))
		return DTYPE_CLASS_KEEP;
	return t && t->shape.ndim == 1 ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

/* y may overwrite x; dx may overwrite g. */
static int bn_first_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : -1;
}

/* g may overwrite dy; the sums overwrite nothing. */
static int bn_grad_stats_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 1 ? 0 : -1;
}

static void bn_dump(const struct node *n, struct buf *out)
{
	const struct bn_attr *a = n->attr;

	buf_addf(out, "%s%s%s", a->relu ? " relu" : "", a->residual ? " residual" : "", a->write_g ? " write_g" : "");
}

const struct op op_bn_stats = {
	.name = "bn_stats",
	.id = OP_bn_stats,
	.recompute = RECOMPUTE_NEVER,
	.shape = bn_stats_shape,
	.dtype = bn_dtype,
};

const struct op op_bn_fixed = {
	.name = "bn_fixed",
	.id = OP_bn_fixed,
	.shape = bn_fixed_shape,
	.dtype = bn_dtype,
};

const struct op op_bn_apply = {
	.name = "bn_apply",
	.id = OP_bn_apply,
	.recompute = RECOMPUTE_CHEAP,
	.shape = bn_apply_shape,
	.grad = bn_apply_backward,
	.fuse = bn_fuse_apply,
	.dtype = bn_dtype,
	.inplace = bn_first_inplace,
	.dump = bn_dump,
};

const struct op op_bn_running = {
	.name = "bn_running",
	.id = OP_bn_running,
	.recompute = RECOMPUTE_NEVER,
	.shape = bn_running_shape,
	.dtype = bn_dtype,
};

const struct op op_bn_keep = {
	.name = "bn_keep",
	.id = OP_bn_keep,
	.shape = bn_keep_shape,
	.dtype = op_dtype_keep,
};

const struct op op_bn_grad_stats = {
	.name = "bn_grad_stats",
	.id = OP_bn_grad_stats,
	.shape = bn_grad_stats_shape,
	.fuse = bn_fuse_grad_stats,
	.dtype = bn_dtype,
	.inplace = bn_grad_stats_inplace,
	.dump = bn_dump,
};

const struct op op_bn_grad_apply = {
	.name = "bn_grad_apply",
	.id = OP_bn_grad_apply,
	.shape = bn_grad_apply_shape,
	.dtype = bn_dtype,
	.inplace = bn_first_inplace,
	.dump = bn_dump,
};

const struct op op_bn_grad_params = {
	.name = "bn_grad_params",
	.id = OP_bn_grad_params,
	.shape = bn_grad_params_shape,
	.dtype = bn_dtype,
	.dump = bn_dump,
};
