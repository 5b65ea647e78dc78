/* share.c: see share.h. */
#include <stdio.h>

#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/allreduce/allreduce.h"
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/ops.h"
#include "trainer/strategies/share.h"
#include "trainer/strategies/strategy_sums.h"

int share_failed(const struct graph *g, struct err *err)
{
	if (!graph_failed(g))
		return 0;
	*err = g->err;
	return err->code;
}

/* Adds an all-reduce from t into a new tensor after position `after`. */
static struct tensor *sum_into(struct graph *g, struct tensor *t, const char *name, enum stream stream, int after)
{
	struct tensor like = *t, *sum;
	struct node *n;

	like.name = name;
	like.producer = NULL;
	like.base = NULL;
	like.space = SPACE_COMM;
	if (like.life == LIFE_ACROSS)
		like.life = LIFE_STEP;
	if (t->kind == TENSOR_INPUT)
		like.kind = TENSOR_RESULT;
	sum = graph_tensor(g, &like);
	n = graph_node(g, &(struct node_spec){ .op = &op_allreduce, .in = &t, .out = &sum, .n_in = 1, .n_out = 1 });
	if (!n)
		return NULL;
	n->stream = stream;
	n->phase = PHASE_COMM;
	graph_move(g, g->n_nodes - 1, after + 1);
	return sum;
}

int share_batch_norms(struct graph *g, struct err *err)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];
		char name[160];
		struct tensor *own, *sum;

		if (n->op != &op_bn_stats && n->op != &op_bn_grad_stats)
			continue;
		own = n->out[0];
		snprintf(name, sizeof(name), "%s.sum", own->name);
		sum = sum_into(g, own, arena_strdup(g->arena, name), STREAM_COMPUTE, i);
		if (!sum)
			break;
		graph_replace_uses(g, own, sum, i + 2);
		for (int k = i + 2; k < g->n_nodes; k++)
			if (g->nodes[k]->op == &op_bn_grad_params && g->nodes[k]->in[0] == sum)
				g->nodes[k]->in[0] = own;
		i++;
	}
	return share_failed(g, err);
}

static void share_sums(struct graph *g, const struct strategy_opts *o)
{
	struct tensor like = {
		.name = STRATEGY_VOTE, .kind = TENSOR_INPUT, .dtype = DTYPE_F64, .shape = SHAPE(1), .life = LIFE_STEP
	};
	struct tensor *vote = graph_tensor(g, &like);
	int at = g->loss->producer ? g->loss->producer->id : g->n_nodes - 1;

	if (vote && sum_into(g, vote, STRATEGY_VOTES, STREAM_COMM, at) && !terms_wanted(o))
		sum_into(g, g->loss, STRATEGY_RESULT_SUM, STREAM_COMM, at);
}

int share_results(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	if (terms_wanted(o) && g->loss->producer)
		terms_of_results(g, o);
	if (terms_wanted(o))
		terms_of_statistics(g, o);
	if (!o->more_follow)
		share_sums(g, o);
	return share_failed(g, err);
}

static void assign_parts(struct graph *g)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];

		if (n->op == &op_send || n->op == &op_recv)
			continue;
		n->part = n->phase == PHASE_FORWARD ? PART_FORWARD : n->phase == PHASE_BACKWARD ? PART_BACKWARD
												: PART_STEP;
	}
}

void share_micros(struct graph *g, const struct strategy_opts *o)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			g->tensors[i]->grad->life = LIFE_MICRO; /* until it is added to the sum */
	if (!terms_wanted(o))
		accumulate_grads(g);
	if (!terms_wanted(o) && g->loss->kind != TENSOR_INPUT)
		accumulate_loss(g);
	assign_parts(g);
}

static bool is_read_later(const struct graph *g, const struct tensor *t, const struct node *than)
{
	for (int i = 0; i < g->n_tensors; i++)
		if (g->tensors[i]->grad == t)
			return true;
	for (int i = than->id; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k] == t && g->nodes[i] != than)
				return true;
	return t->keep;
}

/* Returns the gradient to which grad's producer adds in place, if it belongs to the backward pass and ends there; NULL:
 * none. */
static struct tensor *find_added_gradient(const struct graph *g, const struct tensor *grad)
{
	const struct node *n = grad->producer;
	struct tensor *t = NULL;

	for (int i = 0; n->op->inplace && i < n->n_out; i++)
		if (n->out[i] == grad && n->op->inplace(n, i) >= 0)
			t = n->in[n->op->inplace(n, i)];
	if (!t || t->kind != TENSOR_GRAD || !t->producer || t->base || t->space != SPACE_PRIVATE ||
	    t->dtype != grad->dtype || !shape_equal(&t->shape, &grad->shape) || is_read_later(g, t, n))
		return NULL;
	return t;
}

static void set_view(struct tensor *t, struct tensor *flat, size_t at)
{
	t->base = flat;
	t->base_offset = at;
	t->space = flat->space;
}

void share_place(struct tensor *grad, struct tensor *flat, size_t at, int bucket)
{
	set_view(grad, flat, at);
	grad->producer->bucket = bucket;
}

void share_place_of_term(struct graph *g, const struct tensor *grad)
{
	struct tensor *term = find_added_gradient(g, grad);

	if (!term)
		return;
	set_view(term, grad->base, grad->base_offset);
	term->life = grad->life;
}

int64_t share_part(const struct strategy_opts *o, int64_t samples, int parts)
{
	int64_t size = (samples + parts - 1) / parts;

	if (o->leaf)
		return samples < o->leaf ? samples : o->leaf;

	while (size > 1 && samples % size)
		size--;
	return size;
}
