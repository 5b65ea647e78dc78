/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c: what the strategies of several ranks share: batch norm over all samples, results and votes, micro-batches
 * in one schedule, and sums along the reduction tree. */
#include <stdio.h>

#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"
#include "trainer/strategies/strategy_inside.h"

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

struct strategy_share strategy_share(int rank, int world, int stages)
{
	const int n = stages > 1 ? stages : 1;

	return (struct strategy_share){ .part = rank / n, .parts = world / n, .stage = rank % n };
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

/* ---- sums along the reduction tree ----
 *
 * The programs of all micro-batches store terms; that of the last one adds them up. */

bool terms_wanted(const struct strategy_opts *o)
{
	return o->room > 0 && (o->world > 1 || o->accumulates);
}

struct tensor *terms_put(struct graph *g, struct tensor *t, const struct strategy_opts *o, int *at)
{
	const struct partial_sums_spec spec = { .room = o->room,
						.life = o->accumulates ? LIFE_ACROSS : LIFE_STEP,
						.space = o->world > 1 ? SPACE_COMM : SPACE_PRIVATE };
	struct node *n = graph_failed(g) ? NULL : term_push_add(g, t, &spec);

	if (!n)
		return NULL;
	n->phase = *at > 0 ? g->nodes[*at - 1]->phase : PHASE_FORWARD;
	n->part = *at > 0 ? g->nodes[*at - 1]->part : PART_STEP;
	graph_move(g, n->id, (*at)++);
	return n->out[0];
}

/* Adds the terms of all ranks at position `at`. */
static void terms_add_up(struct graph *g, struct tensor *terms, const struct strategy_opts *o, int at)
{
	struct node *n;

	if (graph_failed(g))
		return;
	n = strategy_share(o->rank, o->world, o->stages).parts > 1 ? allreduce_add(g, terms, o->room, STREAM_COMM)
								   : term_fold_add(g, terms, o->room);
	if (!n)
		return;
	n->group = o->dealt_to;
	if (strategy_share(o->rank, o->world, o->stages).parts == 1)
		n->phase = PHASE_BACKWARD;
	graph_move(g, n->id, at);
}

static int position_after(const struct tensor *t)
{
	return t->producer->id + 1;
}

/* Returns the loss of one leaf: accumulate_loss may have replaced it by a sum. */
static struct tensor *loss_of_leaf(const struct graph *g)
{
	const struct node *n = g->loss->producer;

	return n->op == &op_accumulate ? n->in[1] : g->loss;
}

void terms_of_results(struct graph *g, const struct strategy_opts *o)
{
	struct tensor like = { .kind = TENSOR_RESULT, .name = STRATEGY_RESULT_SUM }, *loss, *terms;
	int at;

	if (graph_failed(g))
		return;
	loss = loss_of_leaf(g);
	at = position_after(loss);
	terms = terms_put(g, loss, o, &at);
	if (!terms || o->more_follow)
		return;
	like.dtype = loss->dtype;
	like.shape = loss->shape;
	terms_add_up(g, terms, o, at);
	partial_sums_first(g, terms, &like);
}

/* running: a bn_running node with the leaf's own statistics. */
static void sum_statistics_terms(struct graph *g, struct node *running, const struct strategy_opts *o)
{
	struct tensor *stat = running->in[0], *terms;
	struct tensor like = { .kind = TENSOR_ACT, .dtype = stat->dtype, .shape = stat->shape };
	int at = position_after(stat);

	terms = terms_put(g, stat, o, &at);
	if (!terms)
		return;
	if (o->more_follow) {
		graph_remove(g, running->id);
		return;
	}
	terms_add_up(g, terms, o, at);
	like.name = graph_printf(g, "%s.sum", stat->name);
	running->in[0] = like.name ? partial_sums_first(g, terms, &like) : NULL;
	running->in[3] = running->in[1];
	running->in[4] = running->in[2];
	running->phase = PHASE_BACKWARD;
	running->part = PART_STEP;
	graph_move(g, running->id, g->n_nodes - 1); /* no node of this pass waits for the ranks */
}

void terms_of_statistics(struct graph *g, const struct strategy_opts *o)
{
	const int n = g->n_nodes;
	struct node **running = graph_array(g, n, sizeof(struct node *));
	int found = 0;

	for (int i = 0; i < n; i++)
		if (g->nodes[i]->op == &op_bn_running)
			running[found++] = g->nodes[i];
	for (int i = 0; i < found && !graph_failed(g) && !o->sync_bn; i++)
		sum_statistics_terms(g, running[i], o);
}

struct tensor *terms_gradient(struct graph *g, struct tensor *terms, const struct tensor *grad)
{
	struct tensor like = *grad, *sum;

	like.name = graph_printf(g, "%s.sum", grad->name);
	sum = like.name ? partial_sums_first(g, terms, &like) : NULL;
	if (sum)
		sum->base_offset += grad->base_offset;
	return sum;
}

static void sum_gradient_terms(struct graph *g, struct tensor *p, const struct strategy_opts *o)
{
	struct tensor *terms;
	int at = position_after(p->grad);

	terms = terms_put(g, p->grad, o, &at);
	if (!terms)
		return;
	if (!o->more_follow)
		terms_add_up(g, terms, o, at);
	p->grad = terms_gradient(g, terms, p->grad);
}

void terms_of_gradients(struct graph *g, const struct strategy_opts *o)
{
	for (int i = 0, n = g->n_tensors; i < n && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			sum_gradient_terms(g, g->tensors[i], o);
}
