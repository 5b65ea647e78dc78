/* SPDX-License-Identifier: Apache-2.0 */
/* plan_search.c: enumerates candidate plans, one loop per setting, and sorts them. */
#include "trainer/advise/plan_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

#define MICROS_TRIED 8 /* micro-batch sizes: a rank's part of the batch, halved each time */
#define RECOMPUTES 3

struct plan_enumeration {
	const struct search_opts *o;
	struct plan_search *s;
	int room;
	struct search_plan at; /* settings fixed so far */
	struct advise_model model;
	struct err *err;
};

static double search_memory_bytes(const struct search_opts *o)
{
	return o->memory_bytes > 0 ? o->memory_bytes : o->hardware->memory_bytes;
}

static bool plan_fits_memory(const struct search_opts *o, const struct search_plan *p)
{
	const struct hardware *h = o->hardware;
	const int local = p->layout.ranks / p->layout.nodes;
	const double own = p->peak_bytes * (h->shared ? local : 1);

	return own <= search_memory_bytes(o) && (!p->cost.host_bytes || p->cost.host_bytes * local <= h->host_bytes);
}

/* Returns the seconds that the loaders need for a step. */
static double loader_seconds(const struct search_opts *o, const struct search_plan *p)
{
	const double rate = o->hardware->samples_per_s * p->layout.nodes;

	return rate > 0 ? (double)o->global_batch / rate : 0;
}

static const char *plan_limit(const struct search_plan *p, double loader_s)
{
	const struct advise_cost *c = &p->cost;
	const struct {
		const char *name;
		double seconds;
	} parts[] = { { "compute", c->forward_s + c->backward_s }, { "communication", c->comm_exposed_s },
		      { "bubble", c->bubble_s },		   { "optimizer", c->optimizer_s },
		      { "copies", c->copy_exposed_s } };
	int most = 0;

	if (!p->fits)
		return "memory";
	if (loader_s > advise_seconds(c))
		return "loader";
	for (int i = 1; i < (int)(sizeof(parts) / sizeof(parts[0])); i++)
		most = parts[i].seconds > parts[most].seconds ? i : most;
	return parts[most].name;
}

static void scale_part(struct advise_part *p, double by)
{
	p->forward_s *= by;
	p->backward_s *= by;
	p->update_s *= by;
}

/* Returns the seconds of a plan's node divided by the timed ones. Ranks on a machine share its cores equally, so fewer
 * ranks have more cores each. With a fixed number of threads, the remaining cores are idle, which speeds up the
 * others. */
static double compute_scale(const struct search_opts *o, const struct search_plan *p)
{
	const struct hardware *h = o->hardware;
	const double local = (double)p->layout.ranks / p->layout.nodes;
	const double idle = h->ranks_per_node > 1 ? fmax(0, (h->ranks_per_node - local) / (h->ranks_per_node - 1)) : 0;

	if (!h->shared)
		return 1;
	if (!o->threads)
		return local / h->ranks_per_node;
	return (h->threads_per_rank ? (double)h->threads_per_rank / o->threads : 1) * (1 - idle * (1 - h->alone));
}

static struct advise_model scale_model_seconds(const struct plan_enumeration *g, const struct search_plan *p)
{
	const double by = compute_scale(g->o, p);
	struct advise_model m = g->model;

	scale_part(&m.front, by);
	scale_part(&m.block, by);
	scale_part(&m.back, by);
	return m;
}

static void update_plan_bytes(struct search_plan *p, const struct search_opts *o)
{
	p->bytes = advise_bytes(&p->cost);
	p->peak_bytes = p->bytes + o->hardware->process_bytes;
	p->fits = plan_fits_memory(o, p);
	p->limit = plan_limit(p, loader_seconds(o, p));
}

static void evaluate_plan(struct plan_enumeration *g, struct search_plan *p)
{
	const struct hardware *h = g->o->hardware;
	const struct advise_model m = scale_model_seconds(g, p);
	const double device_batch = (double)g->o->global_batch / p->layout.ranks;

	advise_cost(&p->cost, p->strategy, &m, &p->layout, h);
	p->cost.bytes[PLAN_DATA] = g->o->data_bytes;
	update_plan_bytes(p, g->o);
	p->seconds = fmax(advise_seconds(&p->cost), loader_seconds(g->o, p));
	p->samples_per_s = (double)g->o->global_batch / p->seconds;
	p->aco = p->cost.comm_exposed_s / device_batch;
	p->built = g->o->built >> p->strategy & 1;
}

static int add_candidate_plan(struct plan_enumeration *g)
{
	struct plan_search *s = g->s;

	if (!(g->o->wanted >> g->at.strategy & 1) || !advise_table[g->at.strategy]->takes(&g->model, &g->at.layout))
		return 0;
	mem_push(&s->plans, &s->n, &g->room, g->at);
	evaluate_plan(g, &s->plans[s->n - 1]);
	return 0;
}

static int add_offloads(struct plan_enumeration *g)
{
	int rc = 0;

	for (int i = OFFLOAD_NONE; !rc && i < OFFLOAD_COUNT; i++) {
		g->at.offload = (enum search_offload)i;
		g->at.layout.offload_optimizer = i >= OFFLOAD_OPTIMIZER;
		g->at.layout.offload_params = i >= OFFLOAD_STATE;
		if (i == OFFLOAD_STATE && g->at.strategy == ADVISE_fsdp && g->at.layout.zero_stage < 3)
			continue; /* the parameters stay gathered during the run */
		if (i == OFFLOAD_STATE && g->at.strategy == ADVISE_pdp)
			continue; /* two turns overlap: mostly more parameters than a stage has */
		if (i == OFFLOAD_NONE || (g->o->hardware->host_bytes > 0 && g->o->hardware->host_rate > 0))
			rc = add_candidate_plan(g);
	}
	return rc;
}

/* Tries the stages of ZeRO with fsdp; other strategies have one variant. */
static int add_zero_stages(struct plan_enumeration *g)
{
	const bool fsdp = g->at.strategy == ADVISE_fsdp;
	int rc = 0;

	for (int stage = 1; !rc && stage <= (fsdp ? 3 : 1); stage++) {
		g->at.layout.zero_stage = fsdp ? stage : 0;
		g->at.layout.sync_each_batch = fsdp && stage >= 2;
		rc = add_offloads(g);
	}
	return rc;
}

static int load_advise_model(struct plan_enumeration *g, int64_t micro)
{
	const struct model_variant v = { micro, g->at.recompute, g->at.precision };

	return g->o->model(g->o->user, &v, &g->model, g->err);
}

/* Skips a configuration that the model does not support; other failures end the search. */
static int skip_unsupported(int rc)
{
	return rc == ERR_USAGE || rc == ERR_UNSUPPORTED ? 0 : rc;
}

static int add_batches(struct plan_enumeration *g)
{
	const int64_t part = (g->o->global_batch + g->at.layout.ranks - 1) / g->at.layout.ranks;
	int rc = 0, tried = 0;

	for (int64_t b = part, last = 0; !rc && b != last && tried < MICROS_TRIED; last = b, b = (b + 1) / 2, tried++) {
		g->at.batch_size = b;
		g->at.accum = (part + b - 1) / b;
		g->at.layout.micros = (int)g->at.accum;
		rc = load_advise_model(g, b);
		if (rc) {
			rc = skip_unsupported(rc);
			continue;
		}
		for (int i = 0; !rc && i < ADVISE_COUNT; i++) {
			g->at.strategy = (enum advise_id)i;
			if (i != ADVISE_pdp)
				rc = add_zero_stages(g);
		}
	}
	return rc;
}

/* A pipeline splits the samples of all its ranks into micro-batches of equal size. */
static int add_pipelines(struct plan_enumeration *g)
{
	const int ranks = g->at.layout.ranks;
	const int64_t part = (g->o->global_batch + ranks - 1) / ranks;
	int rc = 0;

	g->at.strategy = ADVISE_pdp;
	g->at.batch_size = part;
	g->at.accum = 1;
	for (int stages = 2; !rc && stages <= ranks && stages <= 64; stages *= 2) {
		const int64_t samples = part * stages;

		for (int64_t micros = stages; !rc && micros <= samples && micros <= 8 * stages; micros *= 2) {
			if (ranks % stages || samples % micros)
				continue;
			g->at.layout.stages = stages;
			g->at.layout.micros = (int)micros;
			rc = load_advise_model(g, samples / micros);
			rc = rc ? skip_unsupported(rc) : add_zero_stages(g);
		}
	}
	g->at.layout.stages = 0;
	return rc;
}

static int add_rank_count(struct plan_enumeration *g, int ranks, int nodes)
{
	int rc = 0;

	if (g->o->global_batch < ranks)
		return 0;
	for (int p = 0; !rc && p < g->o->n_precisions; p++)
		for (int r = 0; !rc && r < RECOMPUTES; r++) {
			g->at = (struct search_plan){ .recompute = r, .precision = g->o->precisions[p] };
			g->at.layout = (struct advise_layout){ .ranks = ranks, .nodes = nodes,
							       .shard_degree = ranks, .prefetch = 1,
							       .bucket_bytes = g->o->bucket_bytes };
			rc = add_batches(g);
			if (!rc && ranks > 1)
				rc = add_pipelines(g);
		}
	return rc;
}

/* ---- order ---- */

/* Sorts plans that can be started before those that cannot, and both before those that do not fit. */
static int plan_class(const struct search_plan *p)
{
	return p->fits ? (p->built ? 0 : 1) : 2;
}

static int compare_values(double x, double y)
{
	return (x > y) - (x < y);
}

/* Times that differ by less than 0.01 % are equal: a forecast is not that exact. */
static double rounded_time(const struct search_plan *p)
{
	return p->seconds > 0 ? round(1e4 * log(p->seconds)) : p->seconds;
}

static double plan_sent_bytes(const struct search_plan *p)
{
	double bytes = 0;

	for (int i = 0; i < ADVISE_COLLECTIVES; i++)
		bytes += p->cost.sent[i];
	return bytes;
}

/* Prefers, of plans that are equally fast, the one that sends least, then the one that offloads least. */
static int compare_plan_speed(const struct search_plan *a, const struct search_plan *b)
{
	const int c = compare_values(rounded_time(a), rounded_time(b)), moved = (int)a->offload - (int)b->offload,
		  sent = compare_values(plan_sent_bytes(a), plan_sent_bytes(b));

	return c ? c : sent ? sent : moved ? moved : compare_values(a->bytes, b->bytes);
}

static int plans_by_speed(const void *x, const void *y)
{
	const struct search_plan *a = x, *b = y;

	return plan_class(a) != plan_class(b) ? plan_class(a) - plan_class(b) : compare_plan_speed(a, b);
}

static int plans_by_memory(const void *x, const void *y)
{
	const struct search_plan *a = x, *b = y;
	const int c =
		plan_class(a) != plan_class(b) ? plan_class(a) - plan_class(b) : compare_values(a->bytes, b->bytes);

	return c ? c : compare_plan_speed(a, b);
}

static int plans_by_ranks(const void *x, const void *y)
{
	const struct search_plan *a = x, *b = y;
	const int classes = plan_class(a) - plan_class(b), c = classes ? classes : a->layout.ranks - b->layout.ranks;

	return c ? c : compare_plan_speed(a, b);
}

static void sort_plans(struct plan_search *s, enum search_goal goal)
{
	static int (*const orders[])(const void *, const void *) = { [SEARCH_SPEED] = plans_by_speed,
								     [SEARCH_MEMORY] = plans_by_memory,
								     [SEARCH_RANKS] = plans_by_ranks };

	if (s->n)
		qsort(s->plans, (size_t)s->n, sizeof(*s->plans), orders[goal]);
}

int search_all(struct plan_search *ret, const struct search_opts *o, enum search_goal goal, struct err *err)
{
	struct plan_enumeration g = { .o = o, .s = ret, .err = err };
	const int most = o->nodes * o->ranks_per_node;
	int rc = 0;

	*ret = (struct plan_search){ .n = 0 };
	for (int ranks = 1; !rc && ranks < o->ranks_per_node && ranks < most; ranks *= 2)
		rc = add_rank_count(&g, ranks, 1);
	for (int nodes = 1; !rc && nodes < o->nodes; nodes *= 2)
		rc = add_rank_count(&g, nodes * o->ranks_per_node, nodes);
	if (!rc)
		rc = add_rank_count(&g, most, o->nodes);
	sort_plans(ret, goal);
	if (rc)
		search_done(ret);
	return rc;
}

void search_correct(struct plan_search *s, int i, const struct search_opts *o, enum search_goal goal,
		    const struct advise_cost *planned)
{
	struct search_plan *p = &s->plans[i];

	if (planned) {
		memcpy(p->cost.bytes, planned->bytes, sizeof(p->cost.bytes));
		p->cost.host_bytes = planned->host_bytes;
		update_plan_bytes(p, o);
		p->whole = true;
	} else {
		*p = s->plans[--s->n];
	}
	sort_plans(s, goal);
}

void search_done(struct plan_search *s)
{
	free(s->plans);
	*s = (struct plan_search){ .n = 0 };
}

static bool same_strategy(const struct search_plan *a, const struct search_plan *b)
{
	return a->strategy == b->strategy && a->layout.zero_stage == b->layout.zero_stage &&
	       a->layout.stages == b->layout.stages;
}

bool search_is_best_of_kind(const struct plan_search *s, int i)
{
	const struct search_plan *p = &s->plans[i];

	for (const struct search_plan *q = s->plans; q < p; q++)
		if (same_strategy(p, q) && p->layout.ranks == q->layout.ranks && p->recompute == q->recompute)
			return false;
	return true;
}

int search_distance(const struct search_plan *a, const struct search_plan *b)
{
	const bool same = same_strategy(a, b);
	const bool micro = a->batch_size == b->batch_size && a->layout.micros == b->layout.micros;

	return !same + (a->layout.ranks != b->layout.ranks) + !micro + (a->recompute != b->recompute) +
	       (a->offload != b->offload) + (a->precision != b->precision);
}
