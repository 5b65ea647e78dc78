/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c: decides where and for how long a unit is gathered. A region is a part of the program that reads one unit
 * from one flat tensor. Each rank writes its own range there, in the type that nodes read (a copy or a cast), then the
 * ranges are exchanged on the communication stream. The copy is a node of the compute stream, placed where the memory
 * of an earlier region has become free: a region begins no earlier, and has no memory before. */
#include "trainer/strategies/strategy_inside.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/collectives/collectives.h"

struct region {
	const struct param_unit *unit;
	int place, pass; /* part of the model; 0 forward, 1 after the loss */
	enum dtype dtype;
	bool mixed; /* read in several types */
	struct node *first, *last;
	struct tensor *flat;
	struct region *next; /* of the same visit, by first use */
};

struct gatherer {
	struct graph *g;
	const struct units *units;
	const struct strategy_opts *o;
	bool kept; /* units stay gathered until the step ends */
	/* last part of the model: its units are not dropped between forward and backward pass, which are adjacent
	 * there */
	int last_place;
	struct unit_use *uses;
	int n_uses;
	int *region_of;		/* by use */
	struct region *regions; /* by first use */
	struct region **latest; /* by unit: its last region so far */
	int n;
	int at; /* position of the next node */
};

/* ---- regions ---- */

static bool continues_region(const struct gatherer *f, const struct region *r, const struct unit_use *u)
{
	if (f->kept || (f->g->training && !f->o->reshard))
		return true;
	if (u->place >= 0)
		return r->pass == 0 && r->place == u->place;
	return r->pass == 1 || r->place == f->last_place;
}

static void add_region_use(struct gatherer *f, int i)
{
	const struct unit_use *u = &f->uses[i];
	struct region **latest = &f->latest[u->param->shard.unit - 1], *r = *latest;

	if (!r || !continues_region(f, r, u)) {
		const struct param_unit *unit = &f->units->unit[u->param->shard.unit - 1];

		r = *latest = &f->regions[f->n++];
		*r = (struct region){ .unit = unit, .place = u->place >= 0 ? u->place : unit->place,
				      .pass = u->place < 0, .dtype = u->dtype, .first = u->node };
	}
	r->last = u->node;
	r->mixed |= u->dtype != r->dtype;
	f->region_of[i] = (int)(r - f->regions);
}

/* Lists the uses of units and groups them into regions. */
static bool find_regions(struct gatherer *f)
{
	f->uses = units_uses(f->g, &f->n_uses);
	if (!f->uses)
		return false;
	f->region_of = graph_array(f->g, f->n_uses, sizeof(*f->region_of));
	f->regions = graph_array(f->g, f->n_uses, sizeof(*f->regions));
	f->latest = graph_array(f->g, f->units->n, sizeof(*f->latest));
	for (int i = 0; i < f->n_uses; i++)
		add_region_use(f, i);
	for (int i = 0; i < f->n; i++) {
		struct region *r = &f->regions[i];

		if (f->kept) /* the same memory in every program */
			r->dtype = r->unit->dtype;
		else if (r->mixed)
			r->dtype = r->unit->param[0]->dtype;
	}
	return true;
}

/* ---- memory ---- */

/* Makes a view of elements [first, first + shape) of a flat tensor. */
static struct tensor *make_flat_view(struct gatherer *f, struct tensor *flat, int64_t first, const struct tensor *like)
{
	struct tensor *t;

	if (graph_failed(f->g))
		return NULL;
	t = graph_act(f->g, flat->dtype, like->shape, "%s", like->name);
	if (!t)
		return NULL;
	t->space = flat->space;
	t->base = flat;
	t->base_offset = (size_t)first * dtype_bytes(flat->dtype);
	return t;
}

/* Returns true for kept units whose masters nodes read: the masters are parts of the gathered tensor. */
static bool holds_masters(const struct gatherer *f, const struct region *r)
{
	return f->kept && r->dtype == r->unit->param[0]->dtype;
}

static void make_flat(struct gatherer *f, struct region *r)
{
	struct tensor like = { .kind = TENSOR_GATHERED,
			       .dtype = r->dtype,
			       .shape = SHAPE(r->unit->each * f->units->ranks),
			       .life = LIFE_MICRO,
			       .space = SPACE_COMM };

	if (f->kept)
		like.life = holds_masters(f, r) ? LIFE_PERSISTENT : LIFE_ACROSS;
	like.name = graph_printf(f->g, f->kept ? "unit.%d" : "unit.%d.%d", r->unit->number, (int)(r - f->regions));
	r->flat = like.name ? graph_tensor(f->g, &like) : NULL;
}

/* Places a node for the node `user`, in the same part. */
static void place_gather_node(struct gatherer *f, struct node *n, enum phase phase, const struct node *user)
{
	if (!n)
		return;
	n->phase = phase;
	n->part = user->part;
	graph_move(f->g, n->id, f->at++);
}

/* Copies the rank's range of a parameter to its place in the flat tensor. */
static void copy_in(struct gatherer *f, const struct region *r, struct tensor *p)
{
	const struct strategy_part own = units_own(f->units, p, f->o);
	struct tensor like = { .shape = p->shape, .name = graph_printf(f->g, "%s.own", p->name) };
	struct tensor *to;

	if (own.begin == own.end || !like.name)
		return;
	if (holds_masters(f, r)) {
		p->base = r->flat;
		p->base_offset = (size_t)(p->shard.at + own.begin) * dtype_bytes(r->dtype);
		p->space = r->flat->space;
		return;
	}
	to = make_flat_view(f, r->flat, p->shard.at + own.begin, &like);
	place_gather_node(f,
			  graph_node(f->g, &(struct node_spec){ .op = &op_cast, .name = like.name, NODE_IN(p),
								NODE_OUT(to) }),
			  r->pass ? PHASE_BACKWARD : PHASE_FORWARD, r->first);
}

static void gather_region(struct gatherer *f, struct region *r)
{
	struct node *n;

	make_flat(f, r);
	for (int i = 0; i < r->unit->n && !graph_failed(f->g); i++)
		copy_in(f, r, r->unit->param[i]);
	n = graph_failed(f->g) ? NULL : all_gather_add(f->g, r->flat, f->kept);
	place_gather_node(f, n, PHASE_COMM, r->first);
}

/* ---- reading ---- */

struct reads { /* of one parameter in one region */
	const struct region *region;
	struct tensor *whole, *cast; /* cast: in another type than the region's; NULL until needed */
};

static struct tensor *make_region_cast(struct gatherer *f, struct tensor *whole, const struct unit_use *u)
{
	struct tensor *out = graph_act(f->g, u->dtype, whole->shape, "%s.%s", whole->name, dtype_name(u->dtype));
	struct node *n;

	if (!out)
		return NULL;
	n = graph_node(f->g, &(struct node_spec){ .op = &op_cast, .name = out->name, NODE_IN(whole), NODE_OUT(out) });
	if (!n)
		return NULL;
	n->block = u->node->block;
	f->at = u->node->id;
	place_gather_node(f, n, u->node->phase, u->node);
	return out;
}

static void redirect_read(struct gatherer *f, const struct unit_use *u, const struct region *r, struct reads *reads)
{
	const struct tensor like = { .shape = units_shape(f->o, u->param),
				     .name = graph_printf(f->g, "%s.whole", u->param->name) };

	if (!reads->whole && like.name)
		reads->whole = make_flat_view(f, r->flat, u->param->shard.at, &like);
	if (u->dtype == r->dtype) {
		u->node->in[u->index] = reads->whole;
		return;
	}
	if (dtype_bytes(r->dtype) < dtype_bytes(u->dtype)) {
		graph_fail(f->g, ERR_UNSUPPORTED, "%s: %s reads it in another type than training does", u->param->name,
			   u->node->name);
		return;
	}
	if (!reads->cast && reads->whole)
		reads->cast = make_region_cast(f, reads->whole, u);
	u->node->in[u->index] = reads->cast;
}

/* Redirects all uses. A parameter's regions follow one another. */
static void redirect_all_reads(struct gatherer *f)
{
	struct reads *all = graph_array(f->g, f->g->n_tensors, sizeof(*all));

	for (int i = 0; i < f->n_uses && !graph_failed(f->g); i++) {
		const struct region *r = &f->regions[f->region_of[i]];
		struct reads *reads = &all[f->uses[i].param->id];

		if (reads->region != r)
			*reads = (struct reads){ .region = r };
		redirect_read(f, &f->uses[i], r, reads);
	}
}

/* ---- order ---- */

struct visit { /* regions of one part of the model and pass, which are gathered together */
	struct node *first, *last;
	struct region *regions, *newest; /* a list */
};

/* number: by place (from -1 on) and pass, the number of the visit, from 1; zeros before the call. */
static int find_visits(const struct gatherer *f, struct visit *visits, int *number)
{
	int n = 0;

	for (int i = 0; i < f->n; i++) {
		struct region *r = &f->regions[i];
		int *k = &number[2 * (r->place + 1) + r->pass];
		struct visit *v;

		if (!*k) {
			visits[n] = (struct visit){ r->first, r->last, r, r };
			*k = ++n;
			continue;
		}
		v = &visits[*k - 1];
		v->newest->next = r;
		v->newest = r;
		if (r->last->id > v->last->id)
			v->last = r->last;
	}
	return n;
}

/* Gathers visit k after the visit gather_prefetch + 1 before it has been computed. */
static void gather_visits(struct gatherer *f)
{
	struct visit *visits = graph_array(f->g, f->n, sizeof(*visits));
	int *number = graph_array(f->g, 2 * f->last_place + 3, sizeof(*number));
	int n, front = 0;

	n = find_visits(f, visits, number);
	for (int k = 0; k < n; k++) {
		int before = k - 1 - f->o->gather_prefetch;

		f->at = before < 0 ? front : visits[before].last->id + 1;
		if (f->at > visits[k].first->id)
			f->at = visits[k].first->id;
		for (struct region *r = visits[k].regions; r && !graph_failed(f->g); r = r->next)
			gather_region(f, r);
		front = before < 0 ? f->at : front;
	}
}

void gather_params(struct graph *g, const struct units *u, const struct strategy_opts *o)
{
	struct gatherer f = { .g = g, .units = u, .o = o, .kept = o->zero_stage < 3 && !o->averages,
			      .last_place = units_last_place(g) };

	if (!find_regions(&f))
		return;
	if (f.kept)
		for (int i = 0; i < f.n && !graph_failed(g); i++)
			gather_region(&f, &f.regions[i]);
	else
		gather_visits(&f);
	if (!graph_failed(g))
		redirect_all_reads(&f);
}
