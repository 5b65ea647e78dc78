/* SPDX-License-Identifier: Apache-2.0 */
/* units.c: how parameters are laid out in units, and the range of each that a rank owns. */
#include "tracker/base/round.h"
#include "trainer/strategies/strategy_inside.h"

#include "trainer/ops/ops.h"

static bool is_param(const struct tensor *t)
{
	return t && t->kind == TENSOR_PARAM && t->life == LIFE_PERSISTENT;
}

/* The parts of the model: its blocks, a part before and a part after them. */
struct model_parts {
	int first, last; /* position of the first node of a block; number of the last block */
	int turn;	 /* position of the loss */
};

static struct model_parts find_model_parts(const struct graph *g)
{
	struct model_parts p = { .first = g->n_nodes,
				 .turn = g->loss && g->loss->producer ? g->loss->producer->id : g->n_nodes };

	for (int i = 0; i < g->n_nodes; i++) {
		if (g->nodes[i]->block == 0)
			continue;
		p.first = p.first == g->n_nodes ? i : p.first;
		p.last = g->nodes[i]->block > p.last ? g->nodes[i]->block : p.last;
	}
	return p;
}

static int model_part_of(const struct model_parts *p, const struct node *n)
{
	if (n->id > p->turn)
		return -1;
	if (n->block > 0)
		return n->block;
	return n->id < p->first ? 0 : p->last + 1;
}

int units_last_place(const struct graph *g)
{
	return find_model_parts(g).last + 1;
}

/* Returns the parameter that a node's input is, or is a cast of; NULL: neither. */
static struct tensor *param_read(struct tensor *t)
{
	if (is_param(t))
		return t;
	if (t && t->producer && t->producer->op == &op_cast && is_param(t->producer->in[0]))
		return t->producer->in[0];
	return NULL;
}

struct unit_use *units_uses(struct graph *g, int *ret_n)
{
	const struct model_parts parts = find_model_parts(g);
	struct unit_use *uses;
	int most = 0, n = 0;

	for (int i = 0; i < g->n_nodes; i++)
		most += g->nodes[i]->n_in;
	if (graph_failed(g))
		return NULL;
	uses = graph_array(g, most, sizeof(*uses));
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++) {
			struct node *node = g->nodes[i];
			struct tensor *p = param_read(node->in[k]);

			if (p && !(node->op == &op_cast && is_param(node->in[k])))
				uses[n++] = (struct unit_use){ node, k, p, node->in[k]->dtype,
							       model_part_of(&parts, node) };
		}
	*ret_n = n;
	return uses;
}

/* ---- partition ---- */

struct param_reads {	    /* all reads of one parameter */
	int place;	    /* part of the first read */
	bool used, several; /* read by several parts */
	bool cast;	    /* never read in its own type */
	enum dtype dtype;
};

struct unit_kind {	  /* what the parameters of a unit have in common */
	int place, alone; /* alone: id of the only parameter; -1 */
	enum dtype dtype;
	bool frozen; /* else gradients would be as large as the whole unit */
	int64_t size;
	bool has_matrix;
};

struct unit_layout {
	struct graph *g;
	const struct strategy_opts *o;
	struct param_reads *read; /* by tensor id */
	struct unit_kind *kinds;  /* by unit */
	int n;
};

static void find_readings(struct unit_layout *l)
{
	int n = 0;
	const struct unit_use *uses = units_uses(l->g, &n);

	for (int i = 0; i < n; i++) {
		const struct unit_use *u = &uses[i];
		struct param_reads *r = &l->read[u->param->id];

		if (!r->used)
			*r = (struct param_reads){ .used = true, .place = u->place, .cast = true, .dtype = u->dtype };
		r->several |= u->place >= 0 && r->place != u->place;
		r->cast &= u->dtype != u->param->dtype;
	}
}

/* Returns true if each matrix of a part is a unit. In the first block it always is: only its own other matrices can
 * hide the gather before the forward pass and the sum after the backward pass. */
static bool is_by_layer(const struct unit_layout *l, int place)
{
	return l->o->unit_is_layer || place == 1;
}

/* Returns the unit for p; a new one when there is none. Where layers are units, a part's later matrix begins another
 * one, which gets the vectors after it. */
static struct unit_kind *find_unit_for(struct unit_layout *l, const struct tensor *p)
{
	const struct param_reads *r = &l->read[p->id];
	struct unit_kind want = { .place = r->place,
				  .alone = r->several ? p->id : -1,
				  .dtype = r->used && r->cast ? r->dtype : p->dtype,
				  .frozen = p->frozen };

	for (int i = l->n - 1; i >= 0; i--) {
		const struct unit_kind *u = &l->kinds[i];

		if (u->place != want.place || u->alone != want.alone || u->dtype != want.dtype ||
		    u->frozen != want.frozen)
			continue;
		if (is_by_layer(l, r->place) && u->has_matrix && p->decay)
			break;
		return &l->kinds[i];
	}
	l->kinds[l->n] = want;
	return &l->kinds[l->n++];
}

static void assign_shards(struct unit_layout *l)
{
	const int degree = l->o->shard_degree;

	for (int i = 0; i < l->g->n_tensors; i++) {
		struct tensor *p = l->g->tensors[i];
		struct unit_kind *u = is_param(p) ? find_unit_for(l, p) : NULL;

		if (!u)
			continue;
		p->shard = (struct shard){ .unit = (int)(u - l->kinds) + 1, .at = u->size, .dtype = u->dtype };
		u->size += round_up(shape_count(&p->shape), UNIT_ALIGN);
		u->has_matrix |= p->decay;
	}
	for (int i = 0; i < l->g->n_tensors; i++) {
		struct shard *s = &l->g->tensors[i]->shard;

		if (s->unit)
			s->each = round_up((l->kinds[s->unit - 1].size + degree - 1) / degree, UNIT_ALIGN);
	}
}

int units_lay(struct graph *model, const struct strategy_opts *o, struct err *err)
{
	struct unit_layout l = { .g = model, .o = o };

	l.read = arena_array(model->arena, (size_t)model->n_tensors + 1, sizeof(*l.read));
	l.kinds = arena_array(model->arena, (size_t)model->n_tensors + 1, sizeof(*l.kinds));
	find_readings(&l);
	if (graph_failed(model))
		return err_set(err, model->err.code, "%s", model->err.text);
	assign_shards(&l);
	return 0;
}

struct strategy_part units_part(const struct shard *s, int64_t count, int n)
{
	int64_t begin = s->each * n - s->at, end = begin + s->each;

	if (!s->each)
		return (struct strategy_part){ 0, count };
	begin = begin < 0 ? 0 : begin > count ? count : begin;
	end = end < begin ? begin : end > count ? count : end;
	return (struct strategy_part){ begin, end };
}

/* ---- one program ---- */

struct shape units_shape(const struct strategy_opts *o, const struct tensor *p)
{
	return graph_find(o->model, p->name)->shape;
}

static void cut_param_range(struct graph *g, struct tensor *p, const struct strategy_opts *o, int own)
{
	const struct tensor *whole = o->model ? graph_find(o->model, p->name) : NULL;
	struct strategy_part part;

	if (!whole || !shape_equal(&whole->shape, &p->shape)) {
		graph_fail(g, ERR_UNSUPPORTED, "%s: the model has no such parameter to shard", p->name);
		return;
	}
	p->shard = whole->shard;
	part = units_part(&p->shard, shape_count(&whole->shape), own);
	p->shape = SHAPE(part.end - part.begin);
}

static int count_units(const struct graph *g)
{
	int n = 0;

	for (int i = 0; i < g->n_tensors; i++)
		if (is_param(g->tensors[i]) && g->tensors[i]->shard.unit > n)
			n = g->tensors[i]->shard.unit;
	return n;
}

/* Lists the parameters of each unit of the program. */
static void make_lists(struct units *u, struct graph *g)
{
	struct tensor **params = arena_array(g->arena, (size_t)g->n_tensors + 1, sizeof(*params));

	u->unit = arena_array(g->arena, (size_t)u->n + 1, sizeof(*u->unit));
	for (int i = 0; i < g->n_tensors; i++) /* counts first, for the offsets */
		if (is_param(g->tensors[i]))
			u->unit[g->tensors[i]->shard.unit - 1].n++;
	for (int k = 0; k < u->n; k++) {
		const int n = u->unit[k].n;

		u->unit[k] = (struct param_unit){ .number = k + 1, .param = params, .place = -1 };
		params += n;
	}
	for (int i = 0; i < g->n_tensors; i++) {
		struct tensor *p = g->tensors[i];
		struct param_unit *unit = is_param(p) ? &u->unit[p->shard.unit - 1] : NULL;

		if (!unit)
			continue;
		unit->param[unit->n++] = p;
		unit->each = p->shard.each;
		unit->dtype = p->shard.dtype;
	}
}

void units_cut(struct units *ret, struct graph *g, const struct strategy_opts *o)
{
	const struct unit_use *uses;
	int n = 0;

	*ret = (struct units){ .ranks = o->shard_degree,
			       .own = strategy_share(o->rank, o->world, o->stages).part % o->shard_degree };
	for (int i = 0; i < g->n_tensors && !graph_failed(g); i++)
		if (is_param(g->tensors[i]))
			cut_param_range(g, g->tensors[i], o, ret->own);
	ret->n = count_units(g);
	if (!graph_failed(g))
		make_lists(ret, g);
	uses = graph_failed(g) ? NULL : units_uses(g, &n);
	for (int i = n - 1; uses && i >= 0; i--)
		if (uses[i].place >= 0)
			ret->unit[uses[i].param->shard.unit - 1].place = uses[i].place;
}

struct strategy_part units_own(const struct units *u, const struct tensor *p, const struct strategy_opts *o)
{
	const struct shape whole = units_shape(o, p);

	return units_part(&p->shard, shape_count(&whole), u->own);
}
