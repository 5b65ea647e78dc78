/* SPDX-License-Identifier: Apache-2.0 */
/* pdp.c: several pipelines with data parallelism. Adjacent ranks are the stages of one pipeline (stages.c). Each has
 * the nodes and parameters of its stage, receives crossing tensors from its neighbours and sends its own, for one
 * micro-batch after another (schedule.h). Gradients are accumulated over the micro-batches, then summed over the same
 * stage of all pipelines; those of a parameter that the first and the last stage share, over both. With stage 1 of ZeRO
 * the ranks of a stage shard its masters and moments like those of fsdp. */
#include "trainer/ops/add/add.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/ops.h"
#include "trainer/strategies/strategy_inside.h"

#define NO_LOSS "loss.none" /* an input of zeros: the loss on stages without one */

static int own_stage(const struct strategy_opts *o)
{
	return strategy_share(o->rank, o->world, o->stages).stage;
}

static bool is_persistent(const struct tensor *t)
{
	return t && t->life == LIFE_PERSISTENT && (t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT);
}

static uint64_t stage_bit(int stage)
{
	return UINT64_C(1) << stage;
}

/* ---- the model: ownership ---- */

/* Returns true if the moments are sharded over the pipelines. */
static bool shares_moments(const struct strategy_opts *o)
{
	return o->zero_stage == 1 && o->shard_degree > 1;
}

/* Marks the stages of persistent tensors, by the forward nodes that read them or a cast of them. */
static void mark_param_stages(struct graph *g, const int *stage)
{
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++) {
			struct tensor *t = g->nodes[i]->in[k];
			const struct node *from = t ? t->producer : NULL;

			if (from && stage[from->id] == STAGE_ANY)
				t = from->in[0];
			if (is_persistent(t) && stage[i] != STAGE_ANY)
				t->stages |= stage_bit(stage[i]);
		}
}

static int *stages_by_id(struct graph *g, const struct stages *s)
{
	int *stage = graph_array(g, g->n_nodes, sizeof(*stage));

	stages_of_nodes(stage, g, s);
	return stage;
}

static int pdp_lay(struct graph *model, const struct strategy_opts *o, struct err *err)
{
	struct stages s;
	int rc = o->stages > 1 ? stages_cut(&s, model, o, err) : 0;
	const int *stage = rc || o->stages == 1 ? NULL : stages_by_id(model, &s);

	if (stage)
		mark_param_stages(model, stage);
	if (!rc && !graph_failed(model) && shares_moments(o))
		rc = units_lay(model, o, err);
	return rc ? rc : share_failed(model, err);
}

static struct strategy_part pdp_holds(const struct tensor *t, const struct strategy_opts *o, int rank)
{
	const struct strategy_share s = strategy_share(rank, o->world, o->stages);
	const bool held = !t->stages || t->stages & stage_bit(s.stage);

	return held ? units_part(&t->shard, shape_count(&t->shape), s.part) : (struct strategy_part){ 0, 0 };
}

/* ---- crossing tensors ---- */

struct crossing {
	struct tensor **in, **out;
	int n_in, n_out;
};

struct stage_cutter {
	struct graph *g;
	const struct strategy_opts *o;
	int *stage; /* stage of each node, by its position before the cut */
	int own;
	struct crossing forward, backward;
};

/* The lowest and the highest stage that read a tensor; high is -1 if none does. */
struct stage_range {
	int low, high;
};

/* Finds the readers of all tensors, by id. */
static struct stage_range *find_readers(const struct stage_cutter *c)
{
	struct graph *g = c->g;
	struct stage_range *r = graph_array(g, g->n_tensors, sizeof(*r));

	for (int i = 0; i < g->n_tensors; i++)
		r[i] = (struct stage_range){ STAGES_MAX, -1 };
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++) {
			const struct tensor *t = g->nodes[i]->in[k];
			struct stage_range *of = &r[t ? t->id : g->n_tensors];

			of->low = c->stage[i] < of->low ? c->stage[i] : of->low;
			of->high = c->stage[i] > of->high ? c->stage[i] : of->high;
		}
	return r;
}

/* Routes t through every stage between the one that makes it and the farthest that reads it. */
static void find_way(struct stage_cutter *c, struct tensor *t, struct stage_range readers)
{
	int from = c->stage[t->producer->id], own = c->own;

	if (from == STAGE_ANY || readers.high < 0)
		return;
	if (from < own && own <= readers.high)
		c->forward.in[c->forward.n_in++] = t;
	if (from <= own && own < readers.high)
		c->forward.out[c->forward.n_out++] = t;
	if (readers.low <= own && own < from)
		c->backward.in[c->backward.n_in++] = t;
	if (readers.low < own && own <= from)
		c->backward.out[c->backward.n_out++] = t;
}

static void init_crossing(struct crossing *c, struct graph *g)
{
	c->in = graph_array(g, g->n_tensors, sizeof(struct tensor *));
	c->out = graph_array(g, g->n_tensors, sizeof(struct tensor *));
}

/* Lists crossing tensors in the order of their ids, which are the same on every rank. */
static void find_crossing_tensors(struct stage_cutter *c)
{
	const struct stage_range *readers = find_readers(c);

	init_crossing(&c->forward, c->g);
	init_crossing(&c->backward, c->g);
	for (int i = 0; i < c->g->n_tensors; i++)
		if (c->g->tensors[i]->producer)
			find_way(c, c->g->tensors[i], readers[i]);
}

/* Returns the later stage of those that make the operands of the addition n; STAGE_ANY when it is n's own stage or
 * unknown. */
static int stage_of_operands(const struct node *n, const int *stage)
{
	const struct node *a = n->in[0]->producer, *b = n->in[1]->producer;
	int last;

	if (!a || !b || stage[a->id] == STAGE_ANY || stage[b->id] == STAGE_ANY)
		return STAGE_ANY;
	last = stage[a->id] > stage[b->id] ? stage[a->id] : stage[b->id];
	return last < stage[n->id] ? last : STAGE_ANY;
}

/* Adds the sum of n, and of its clones, right after its operands, in their stage. */
static void add_before(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *delta = n->in[1], *sum = add_add(g, x, delta);
	const struct node *last = x->producer->id > delta->producer->id ? x->producer : delta->producer;

	if (!sum)
		return;
	sum->producer->block = last->block;
	graph_move(g, sum->producer->id, last->id + 1);
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *m = g->nodes[i];

		if (layernorm_may_part(m) && m->in[0] == x && m->in[1] == delta)
			layernorm_part(g, m, sum);
	}
}

/* Moves a sum at the begin of a stage to the stage before it: one tensor crosses instead of two. */
static void add_early(struct graph *g, const struct stages *s)
{
	const int *stage = stages_by_id(g, s);

	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		if (!layernorm_may_part(g->nodes[i]) || stage_of_operands(g->nodes[i], stage) == STAGE_ANY)
			continue;
		add_before(g, g->nodes[i]);
		stage = stages_by_id(g, s);
	}
}

/* ---- the cut ---- */

/* Returns true if t is a term of p's gradient from another stage than that of the node that adds it. */
static bool is_far_term(const struct stage_cutter *c, const struct tensor *p, const struct tensor *t,
			const struct node *sum)
{
	return t && t->producer && t->kind == TENSOR_GRAD && shape_equal(&t->shape, &p->shape) &&
	       c->stage[t->producer->id] != c->stage[sum->id];
}

/* The gradient of a parameter of two stages is a sum over both, on one of them: each stage keeps its own term. */
static void keep_own_terms(struct stage_cutter *c)
{
	for (int i = 0; i < c->g->n_tensors; i++) {
		struct tensor *p = c->g->tensors[i], *grad = p->kind == TENSOR_PARAM ? p->grad : NULL;
		struct node *sum = grad ? grad->producer : NULL;

		for (int k = 0; sum && k < sum->n_in; k++) {
			struct tensor *t = sum->in[k];

			if (!is_far_term(c, p, t, sum))
				continue;
			if (c->stage[t->producer->id] == c->own)
				p->grad = t;
			sum->in[k] = NULL;
			if (sum->op == c->g->sum && c->stage[sum->id] == c->own)
				p->grad = sum->in[1 - k];
			if (sum->op == c->g->sum)
				c->stage[sum->id] = STAGES_MAX; /* belongs to no stage */
		}
	}
}

/* Removes casts without a reader, except of gradients: they have none before they are summed. */
static void remove_unread_casts(struct graph *g)
{
	int *uses = graph_use_counts(g);

	for (int i = g->n_nodes - 1; i >= 0 && uses; i--) {
		const struct node *n = g->nodes[i];
		const struct tensor *t = n->op == &op_cast ? n->out[0] : NULL;

		if (!t || t->kind == TENSOR_GRAD || uses[t->id] || t->base)
			continue;
		uses[n->in[0]->id]--;
		graph_remove(g, i);
	}
}

/* Removes the nodes of other stages. Casts of parameters stay where they are read. */
static void remove_other_stages(struct stage_cutter *c)
{
	for (int i = c->g->n_nodes - 1; i >= 0; i--)
		if (c->stage[i] != c->own && c->stage[i] != STAGE_ANY)
			graph_remove(c->g, i);
	remove_unread_casts(c->g);
	for (int i = 0; i < c->g->n_tensors; i++)
		if (c->g->tensors[i]->kind == TENSOR_ACT && !c->g->tensors[i]->producer)
			c->g->tensors[i]->keep = false;
}

/* Removes the parameters of other stages and their gradients from the program. */
static void remove_other_params(struct stage_cutter *c)
{
	for (int i = 0; i < c->g->n_tensors; i++) {
		struct tensor *t = c->g->tensors[i];
		const struct tensor *whole = is_persistent(t) ? graph_find(c->o->model, t->name) : NULL;

		if (!whole)
			continue;
		t->stages = whole->stages;
		if (!t->stages || t->stages & stage_bit(c->own))
			continue;
		t->life = LIFE_STEP;
		t->grad = NULL;
	}
}

/* at: position; -1: the end, where the node already is. */
static void place_node_at(struct graph *g, struct node *n, int at, enum part part)
{
	if (!n)
		return;
	n->part = part;
	if (at >= 0)
		graph_move(g, n->id, at);
}

static int first_backward(const struct graph *g)
{
	int i = 0;

	while (i < g->n_nodes && g->nodes[i]->phase != PHASE_BACKWARD)
		i++;
	return i;
}

static void add_peers(struct stage_cutter *c)
{
	struct graph *g = c->g;
	const struct crossing *f = &c->forward, *b = &c->backward;

	for (int i = 0; i < f->n_out; i++)
		place_node_at(g, send_add(g, f->out[i], c->own + 1, STREAM_SEND_FORWARD), first_backward(g),
			      PART_FORWARD);
	for (int i = 0; i < b->n_in; i++)
		place_node_at(g, recv_add(g, b->in[i], c->own + 1, STREAM_RECV_BACKWARD), first_backward(g),
			      PART_BACKWARD);
	for (int i = 0; i < b->n_out; i++)
		place_node_at(g, send_add(g, b->out[i], c->own - 1, STREAM_SEND_BACKWARD), -1, PART_BACKWARD);
	for (int i = 0; i < f->n_in; i++)
		place_node_at(g, recv_add(g, f->in[i], c->own - 1, STREAM_RECV_FORWARD), i, PART_FORWARD);
}

/* Replaces the loss on the other stages by an input that the host sets to zero. */
static void replace_loss(struct stage_cutter *c)
{
	struct tensor like = { .name = NO_LOSS, .kind = TENSOR_INPUT, .dtype = DTYPE_F64, .life = LIFE_STEP,
			       .keep = true };

	if (c->own == c->o->stages - 1 || graph_failed(c->g))
		return;
	like.shape = c->g->loss->shape;
	c->g->loss->kind = TENSOR_ACT; /* no node of this stage makes it */
	c->g->loss = graph_tensor(c->g, &like);
}

/* ---- sums ---- */

static void sum_over(struct graph *g, struct tensor *t, enum group group)
{
	struct node *n = allreduce_add(g, t, 0, STREAM_COMM);

	if (n)
		n->group = group;
}

/* Shares the sum of the losses: the last stage has it, over the pipelines; the other stages have zeros. */
static void share_leaves_results(struct stage_cutter *c)
{
	struct graph *g = c->g;

	if (!graph_failed(g) && terms_wanted(c->o) && c->o->stages > 1 && !c->o->more_follow)
		sum_over(g, c->own == c->o->stages - 1 ? graph_find(g, STRATEGY_RESULT_SUM) : g->loss, GROUP_PIPELINE);
}

/* Sums the gradient of a parameter of two stages over both; the first one counts it in sums over all ranks. */
static void sum_over_ends(struct stage_cutter *c, struct tensor *p)
{
	bool ends = p->stages & (p->stages - 1);

	p->grad->stages = p->stages;
	p->grad->elsewhere = ends && (p->stages & (stage_bit(c->own) - 1));
	if (!ends || c->o->more_follow)
		return;
	p->grad->space = SPACE_COMM;
	sum_over(c->g, p->grad, GROUP_ENDS);
}

/* Sums gradients over the ranks: first over the pipelines, whole or scattered to the owners of the ranges. */
static int sum_gradients(struct stage_cutter *c, const struct units *units, struct err *err)
{
	struct graph *g = c->g;
	int rc = 0;

	if (shares_moments(c->o))
		scatter_grads(g, units, c->o);
	else if (c->o->world > c->o->stages)
		rc = buckets_sum(g, c->o, GROUP_REPLICA, err);
	else if (terms_wanted(c->o))
		terms_of_gradients(g, c->o);
	for (int i = 0, n = g->n_tensors; i < n && !rc && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			sum_over_ends(c, g->tensors[i]);
	return rc;
}

/* Sets the group whose ranks share the leaves: the pipelines. */
static struct strategy_opts set_dealt_group(const struct strategy_opts *o)
{
	struct strategy_opts mine = *o;

	mine.dealt_to = shares_moments(o) ? GROUP_SHARD : GROUP_REPLICA;
	return mine;
}

/* Cuts the graph to this rank's stage, then adds messages, results, gathers and sums. */
static int pdp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	const struct strategy_opts mine = set_dealt_group(o);
	struct stage_cutter c = { .g = g, .o = &mine, .own = own_stage(o) };
	struct stages s = { .n = 1, .first = { 1 } };
	struct units units = { .n = 0 };
	int rc = o->stages > 1 ? stages_cut(&s, o->model, o, err) : 0;

	if (rc)
		return rc;
	add_early(g, &s);
	c.stage = stages_by_id(g, &s);
	if (!graph_failed(g))
		keep_own_terms(&c);
	if (!graph_failed(g))
		find_crossing_tensors(&c);
	if (graph_failed(g))
		return share_failed(g, err);
	remove_other_stages(&c);
	remove_other_params(&c);
	add_peers(&c);
	replace_loss(&c);
	if (g->training && !graph_failed(g)) {
		share_micros(g, c.o);
		/* First on every stage, since one stream communicates with different ranks in order. */
		rc = share_results(g, c.o, err);
		share_leaves_results(&c);
	}
	if (!rc && !graph_failed(g) && shares_moments(o)) {
		units_cut(&units, g, o);
		gather_params(g, &units, o);
		remove_unread_casts(g);
	}
	if (!rc && !graph_failed(g) && g->training)
		rc = sum_gradients(&c, &units, err);
	return rc ? rc : share_failed(g, err);
}

/* ---- ranks and micro-batches ---- */

static int pdp_group_of(const struct strategy_opts *o, enum group kind, int rank)
{
	const struct strategy_share s = strategy_share(rank, o->world, o->stages);

	switch (kind) {
	case GROUP_PIPELINE:
		return s.part;
	case GROUP_REPLICA:
		return shares_moments(o) ? -1 : s.stage;
	case GROUP_SHARD:
		return shares_moments(o) ? s.stage : -1;
	case GROUP_ENDS:
		return s.stage == 0 || s.stage == o->stages - 1 ? s.part : -1;
	default:
		return -1;
	}
}

static int64_t pdp_micro(const struct strategy_opts *o, int64_t samples)
{
	return share_part(o, samples, o->micros);
}

static void pdp_turns(struct schedule_turn *ret, const struct strategy_opts *o, int micros)
{
	schedule_pipeline(ret, o->gpipe ? PIPELINE_GPIPE : PIPELINE_1F1B, o->stages, own_stage(o), micros);
}

const struct strategy strategy_pdp = {
	.lay = pdp_lay,
	.rewrite = pdp_rewrite,
	.holds = pdp_holds,
	.group_of = pdp_group_of,
	.micro = pdp_micro,
	.turns = pdp_turns,
	.groups = { [STREAM_COMPUTE] = STRATEGY_GROUP(GROUP_PIPELINE) | STRATEGY_GROUP(GROUP_SHARD),
		    [STREAM_COMM] = STRATEGY_GROUP(GROUP_WORLD) | STRATEGY_GROUP(GROUP_REPLICA) |
				    STRATEGY_GROUP(GROUP_SHARD) | STRATEGY_GROUP(GROUP_ENDS) |
				    STRATEGY_GROUP(GROUP_PIPELINE),
		    [STREAM_GATHER] = STRATEGY_GROUP(GROUP_SHARD),
		    [STREAM_SEND_FORWARD] = STRATEGY_GROUP(GROUP_PIPELINE),
		    [STREAM_SEND_BACKWARD] = STRATEGY_GROUP(GROUP_PIPELINE) },
};
