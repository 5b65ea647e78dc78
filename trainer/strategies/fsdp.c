/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp.c: fully sharded data parallel: ZeRO's three stages (Rajbhandari et al. 2020) as one mechanism. Parameters are
 * stored flat in units, each cut into equal ranges (units.c). A rank owns its ranges of the parameters' masters, of
 * their moments and averages, and updates only those. Nodes read parameters gathered from all ranks (gather.c): until
 * the step's end (stages 1 and 2) or close to their use (3). Gradients are reduced and scattered here: from
 * whole gradients that stay until then (1), or unit by unit during the backward pass (2 and 3). */
#include "trainer/strategies/strategy_inside.h"

#include "trainer/graph/pass.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"

struct unit_bucket {
	const struct param_unit *unit;
	struct tensor *flat;
	struct node *first, *last; /* nodes that make its gradients */
	int place;
};

struct scatterer {
	struct graph *g;
	const struct units *units;
	const struct strategy_opts *o;
	bool whole;		     /* gradients stay whole until the step's end */
	struct unit_bucket *buckets; /* in the order in which they are full */
	int n;
};

/* Returns true if a step's micro-batches are accumulated in whole gradients before they are sent. */
static bool scatter_keeps_whole(const struct strategy_opts *o)
{
	return o->zero_stage < 2 || !o->sync_each_batch;
}

/* Lists the buckets of all units that have gradients; frozen parameters have none. */
static void find_buckets(struct scatterer *s)
{
	for (int i = 0; i < s->units->n; i++) {
		const struct param_unit *u = &s->units->unit[i];
		struct unit_bucket b = { .unit = u, .place = u->place };
		int at = s->n;

		for (int k = 0; k < u->n; k++) {
			struct node *maker = u->param[k]->grad ? u->param[k]->grad->producer : NULL;

			if (maker && (!b.first || maker->id < b.first->id))
				b.first = maker;
			if (maker && (!b.last || maker->id > b.last->id))
				b.last = maker;
		}
		if (!b.first)
			continue;
		for (; at > 0 && s->buckets[at - 1].last->id > b.last->id; at--)
			s->buckets[at] = s->buckets[at - 1];
		s->buckets[at] = b;
		s->n++;
	}
}

/* Returns true if buckets of several micro-batches are summed along the reduction tree, not in place. */
static bool uses_bucket_terms(const struct strategy_opts *o)
{
	return o->room && o->accumulates;
}

/* Makes the flat tensor of a bucket and places its gradients. */
static void fill_bucket(struct scatterer *s, struct unit_bucket *b)
{
	struct tensor like = { .kind = s->whole && !uses_bucket_terms(s->o) ? TENSOR_GRAD : TENSOR_BUCKET,
			       .shape = SHAPE(b->unit->each * s->units->ranks),
			       .life = LIFE_STEP,
			       .space = SPACE_COMM,
			       .name = graph_printf(s->g, "bucket.%d", b->unit->number) };

	for (int i = 0; i < b->unit->n; i++)
		if (b->unit->param[i]->grad) {
			like.dtype = b->unit->param[i]->grad->dtype;
			like.life = b->unit->param[i]->grad->life;
		}
	b->flat = like.name ? graph_tensor(s->g, &like) : NULL;
	for (int i = 0; i < b->unit->n && b->flat; i++) {
		const struct tensor *p = b->unit->param[i];

		if (!p->grad)
			continue;
		share_place(p->grad, b->flat, (size_t)p->shard.at * dtype_bytes(like.dtype), b->unit->number);
		/* else it would be in memory together with gathered units, and gradients are few then */
		if (s->o->zero_stage < 3)
			share_place_of_term(s->g, p->grad);
	}
}

/* Replaces the bucket by its terms. */
static void put_terms(struct scatterer *s, struct unit_bucket *b)
{
	int at = b->last->id + 1;
	struct tensor *terms = terms_put(s->g, b->flat, s->o, &at);

	if (!terms)
		return;
	terms->kind = TENSOR_GRAD;
	b->flat = terms;
	b->last = terms->producer;
	for (int i = 0; i < b->unit->n && !graph_failed(s->g); i++) {
		struct tensor *p = b->unit->param[i];

		if (p->grad)
			p->grad = terms_gradient(s->g, terms, p->grad);
	}
}

/* Sums the own range of the unit over the ranks that own the same range. */
static struct node *add_replica_sum(struct scatterer *s, const struct unit_bucket *b, const struct node *after)
{
	struct tensor like = { .kind = b->flat->kind,
			       .dtype = b->flat->dtype,
			       .shape = SHAPE(b->unit->each),
			       .life = b->flat->life,
			       .space = b->flat->space,
			       .base = b->flat,
			       .base_offset = (size_t)(s->units->own * b->unit->each) * dtype_bytes(b->flat->dtype),
			       .name = graph_printf(s->g, "%s.own", b->flat->name) };
	struct tensor *own = like.name ? graph_tensor(s->g, &like) : NULL;
	struct node *n = own ? allreduce_add(s->g, own, 0, STREAM_COMM) : NULL;

	if (!n)
		return NULL;
	n->group = GROUP_REPLICA;
	n->bucket = b->unit->number;
	graph_move(s->g, n->id, after->id + 1);
	return n;
}

/* Adds the reduce-scatter of a bucket. The reduction tree spans the groups that own a copy each, so all ranks make its
 * sums together. */
static struct node *add_reduce_scatter(struct scatterer *s, const struct unit_bucket *b)
{
	const bool copies = s->o->shard_degree * s->o->stages < s->o->world, tree = copies && s->o->room;
	struct node *n;

	if (graph_failed(s->g))
		return NULL;
	n = tree ? allreduce_add(s->g, b->flat, s->o->room, STREAM_COMM)
		 : reduce_scatter_add(s->g, b->flat, s->o->room);
	if (!n)
		return NULL;
	n->bucket = b->unit->number;
	graph_move(s->g, n->id, b->last->id + 1);
	return copies && !tree ? add_replica_sum(s, b, n) : n;
}

/* Makes a view of the own range of p's gradient in its bucket. */
static struct tensor *make_own_range_view(struct scatterer *s, const struct tensor *p)
{
	const struct strategy_part own = units_own(s->units, p, s->o);
	struct tensor like = { .kind = TENSOR_GRAD,
			       .dtype = p->grad->dtype,
			       .shape = p->shape,
			       .life = LIFE_STEP,
			       .space = SPACE_COMM,
			       .shard = p->shard,
			       .base = p->grad->base,
			       .name = graph_printf(s->g, "%s.own", p->grad->name) };

	if (own.begin < own.end)
		like.base_offset = (size_t)(p->shard.at + own.begin) * dtype_bytes(like.dtype);
	return like.name ? graph_tensor(s->g, &like) : NULL;
}

/* Copies the range into private memory, at position *at. */
static struct tensor *copy_range_out(struct scatterer *s, const struct tensor *p, struct tensor *range, int *at)
{
	struct tensor like = *range, *out;
	struct node *n;

	like.name = graph_printf(s->g, "%s.sum", p->grad->name);
	like.space = SPACE_PRIVATE;
	like.base = NULL;
	like.base_offset = 0;
	out = like.name ? graph_tensor(s->g, &like) : NULL;
	if (!out || shape_count(&out->shape) == 0)
		return out;
	n = graph_node(s->g, &(struct node_spec){ .op = &op_cast, .name = like.name, NODE_IN(range), NODE_OUT(out) });
	if (!n)
		return NULL;
	n->phase = PHASE_BACKWARD;
	graph_move(s->g, n->id, (*at)++);
	return out;
}

static void use_own_ranges(struct scatterer *s, const struct unit_bucket *b, int *at)
{
	for (int i = 0; i < b->unit->n && !graph_failed(s->g); i++) {
		struct tensor *p = b->unit->param[i], *range = p->grad ? make_own_range_view(s, p) : NULL;

		if (range)
			p->grad = s->whole ? range : copy_range_out(s, p, range, at);
	}
}

/* Returns the first node that fills a bucket of the next but one part of the model after bucket i; NULL: none. */
static const struct node *find_next_but_one(const struct scatterer *s, int i)
{
	int parts = 0;

	for (int k = i + 1; k < s->n; k++) {
		parts += s->buckets[k].place != s->buckets[k - 1].place;
		if (parts == 2)
			return s->buckets[k].first;
	}
	return NULL;
}

void scatter_grads(struct graph *g, const struct units *u, const struct strategy_opts *o)
{
	struct scatterer s = { .g = g, .units = u, .o = o, .whole = scatter_keeps_whole(o) };

	s.buckets = graph_array(g, u->n, sizeof(*s.buckets));
	find_buckets(&s);
	for (int i = 0; i < s.n && !graph_failed(g); i++)
		fill_bucket(&s, &s.buckets[i]);
	for (int i = 0; i < s.n && !graph_failed(g) && uses_bucket_terms(o); i++)
		put_terms(&s, &s.buckets[i]);
	for (int i = 0; i < s.n && !graph_failed(g) && !(s.whole && o->more_follow); i++) {
		const struct node *sent = add_reduce_scatter(&s, &s.buckets[i]), *later = find_next_but_one(&s, i);
		int at = later && sent && later->id > sent->id ? later->id : g->n_nodes;

		use_own_ranges(&s, &s.buckets[i], &at);
	}
}

static int fsdp_lay(struct graph *model, const struct strategy_opts *o, struct err *err)
{
	return o->world == 1 ? 0 : units_lay(model, o, err);
}

static int fsdp_rewrite(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	struct units units;
	int rc = 0;

	if (o->world == 1)
		return 0;
	if (g->training && o->sync_bn)
		rc = share_batch_norms(g, err);
	if (!rc && g->training)
		rc = share_results(g, o, err);
	if (rc)
		return rc;
	units_cut(&units, g, o);
	if (!graph_failed(g))
		gather_params(g, &units, o);
	if (!graph_failed(g) && g->training)
		scatter_grads(g, &units, o);
	if (!graph_failed(g))
		pass_dead(g); /* removes casts without a reader */
	return share_failed(g, err);
}

static struct strategy_part fsdp_holds(const struct tensor *t, const struct strategy_opts *o, int rank)
{
	return units_part(&t->shard, shape_count(&t->shape), rank % o->shard_degree);
}

/* Adjacent ranks own one copy together; ranks with the same place in their copies own the same part. */
static int fsdp_group_of(const struct strategy_opts *o, enum group kind, int rank)
{
	if (kind == GROUP_SHARD)
		return rank / o->shard_degree;
	return kind == GROUP_REPLICA && o->shard_degree < o->world ? rank % o->shard_degree : -1;
}

const struct strategy strategy_fsdp = {
	.lay = fsdp_lay,
	.rewrite = fsdp_rewrite,
	.holds = fsdp_holds,
	.group_of = fsdp_group_of,
	.groups = { [STREAM_COMPUTE] = STRATEGY_GROUP(GROUP_WORLD) | STRATEGY_GROUP(GROUP_SHARD),
		    [STREAM_COMM] =
			    STRATEGY_GROUP(GROUP_WORLD) | STRATEGY_GROUP(GROUP_SHARD) | STRATEGY_GROUP(GROUP_REPLICA),
		    [STREAM_GATHER] = STRATEGY_GROUP(GROUP_SHARD) },
};
