/* strategy_sums.c: see strategy_sums.h. The programs of all micro-batches store terms; that of the last one adds them
 * up. */
#include "trainer/strategies/strategy_sums.h"

#include "trainer/ops/allreduce/allreduce.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/partial_sums/partial_sums.h"

int terms_parts(const struct strategy_opts *o)
{
	return o->stages > 1 ? o->world / o->stages : o->world;
}

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

void terms_add_up(struct graph *g, struct tensor *terms, const struct strategy_opts *o, int at)
{
	struct node *n;

	if (graph_failed(g))
		return;
	n = terms_parts(o) > 1 ? allreduce_terms_add(g, terms, o->room, STREAM_COMM) : term_fold_add(g, terms, o->room);
	if (!n)
		return;
	n->group = o->dealt_to;
	if (terms_parts(o) == 1)
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
	struct node **running = arena_array(g->arena, (size_t)n + 1, sizeof(struct node *));
	int found = 0;

	if (!running) {
		graph_fail(g, ERR_NOMEM, "out of memory: statistics");
		return;
	}
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
