/* SPDX-License-Identifier: Apache-2.0 */
/* plan_test.c: placements compared with a brute-force overlap check on thousands of random lifetimes; plans of handmade
 * graphs; plans of complete models, run on a simulated memory that records who wrote each piece of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/net.h"
#include "tracker/base/round.h"
#include "trainer/graph/rng.h"
#include "trainer/graph/liveness.h"
#include "trainer/graph/slab.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/relu/relu.h"

#define RANGES_MAX 60
#define F32_F32                                                                                                        \
	{                                                                                                              \
		DTYPE_F32, DTYPE_F32, NULL                                                                             \
	}
#define BF16_F32                                                                                                       \
	{                                                                                                              \
		DTYPE_BF16, DTYPE_F32, NULL                                                                            \
	}
#define F64_F64                                                                                                        \
	{                                                                                                              \
		DTYPE_F64, DTYPE_F64, NULL                                                                             \
	}

static bool collide(const struct slab_range *a, const struct slab_range *b)
{
	bool in_time = a->first <= b->last && b->first <= a->last;
	bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;

	return in_time && in_space && a->bytes && b->bytes;
}

static int draw_ranges(struct slab_range *r, uint64_t seed)
{
	struct rng_key key = { seed, 1 };
	int n = (int)rng_below(key, 0, RANGES_MAX + 1);

	for (int i = 0; i < n; i++) {
		uint64_t at = (uint64_t)i * 4;

		r[i] = (struct slab_range){ .bytes = rng_below(key, at + 1, 5) ? rng_below(key, at + 2, 5000) : 0,
					    .first = (int)rng_below(key, at + 3, 40) };
		r[i].last = r[i].first + (int)rng_below(key, at + 4, 20);
	}
	return n;
}

static void test_random_ranges(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct slab_range r[RANGES_MAX], again[RANGES_MAX];
		int n = draw_ranges(r, seed);
		size_t end = 0, size;

		memcpy(again, r, sizeof(r));
		size = slab_place(r, n, 64, NULL);
		assert_int_equal(slab_place(again, n, 64, NULL), size);
		for (int i = 0; i < n; i++) {
			assert_int_equal(r[i].offset, again[i].offset);
			assert_int_equal(r[i].offset % 64, 0);
			if (r[i].offset + r[i].bytes > end)
				end = r[i].offset + r[i].bytes;
			for (int j = 0; j < i; j++)
				if (collide(&r[i], &r[j]))
					fail_msg("seed %llu: ranges %d and %d overlap", (unsigned long long)seed, i, j);
		}
		assert_true(end <= size && size < end + 64);
	}
}

#define MANY 40000 /* more than the number from which a little waste is accepted */

/* Like a network: half of them nested from forward to backward pass, the others short; few sizes, all of them
 * aligned. */
static void draw_network(struct slab_range *r, int n, uint64_t seed)
{
	struct rng_key key = { seed, 2 };

	for (int i = 0; i < n; i++) {
		uint64_t at = (uint64_t)i * 4;

		r[i] = (struct slab_range){ .bytes = 64 + 640 * rng_below(key, at, 8), .first = i, .last = i + 2 };
		if (rng_below(key, at + 1, 2))
			r[i].last = 2 * n - i;
		else if (rng_below(key, at + 2, 2))
			r[i] = (struct slab_range){ .bytes = r[i].bytes, .first = 2 * n - i, .last = 2 * n - i + 3 };
	}
}

static int larger_first(const void *a, const void *b)
{
	const struct slab_range *x = *(struct slab_range *const *)a, *y = *(struct slab_range *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Places e in the smallest gap between the n ranges of low, which are sorted by offset; checks each of them. */
static size_t place_plainly(struct slab_range *e, struct slab_range **low, int n)
{
	size_t best = SIZE_MAX, tightest = SIZE_MAX, end = 0;

	for (int i = 0; i < n; i++) {
		const struct slab_range *p = low[i];

		if (p->last < e->first || p->first > e->last)
			continue;
		if (p->offset > end && p->offset - end >= e->bytes && p->offset - end < tightest) {
			tightest = p->offset - end;
			best = end;
		}
		end = p->offset + p->bytes > end ? p->offset + p->bytes : end;
	}
	e->offset = best == SIZE_MAX ? end : best;
	for (; n > 0 && low[n - 1]->offset > e->offset; n--)
		low[n] = low[n - 1];
	low[n] = e;
	return e->offset + e->bytes;
}

/* Largest first; returns the slab's size. */
static size_t place_all_plainly(struct slab_range *r, int n)
{
	struct slab_range **order = calloc((size_t)n, sizeof(*order)), **low = calloc((size_t)n, sizeof(*low));
	size_t size = 0, end;

	assert_non_null(order);
	assert_non_null(low);
	for (int i = 0; i < n; i++)
		order[i] = &r[i];
	qsort(order, (size_t)n, sizeof(*order), larger_first);
	for (int i = 0; i < n; i++) {
		end = place_plainly(order[i], low, i);
		size = end > size ? end : size;
	}
	free(order);
	free(low);
	return size;
}

/* A placement is the best of several orders, so it is not larger than that of one of them. */
static void test_no_larger_than_one_order(void **state)
{
	enum { N = 400 };

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct slab_range r[N], plain[N];

		draw_network(r, N, seed);
		memcpy(plain, r, sizeof(r));
		assert_true(slab_place(r, N, 64, NULL) <= place_all_plainly(plain, N));
		for (int i = 0; i < N; i++)
			for (int j = 0; j < i; j++)
				assert_false(collide(&r[i], &r[j]));
	}
}

/* Ranges looked at, for each range that is placed. */
static double place_counted(struct slab_range *r, int n, size_t *ret_size)
{
	uint64_t work;
	size_t size = slab_place(r, n, 64, &work);

	if (ret_size)
		*ret_size = size;
	return (double)work / n;
}

/* Eight times as many ranges: a search may look at a few more, as a tree is deeper, and not at eight times as many. */
static void test_many_ranges(void **state)
{
	struct slab_range *r = calloc(MANY, sizeof(*r));
	double few, many;
	size_t size;

	(void)state;
	assert_non_null(r);
	draw_network(r, MANY / 8, 1);
	few = place_counted(r, MANY / 8, &size);
	assert_true(size <= place_all_plainly(r, MANY / 8));
	draw_network(r, MANY, 1);
	many = place_counted(r, MANY, NULL);
	print_message("%d ranges: %.0f looked at for each, %d ranges: %.0f\n", MANY / 8, few, MANY, many);
	assert_true(many < 2 * few);
	free(r);
}

/* The buffers of a net's private space as ranges; the caller frees them. */
static struct slab_range *ranges_of(const struct net_opts *o, int *ret_n)
{
	struct slab_range *r;
	struct liveness l;
	struct net net;
	int n = 0;

	net_make(&net, o);
	live_make(&l, &net.program);
	r = calloc((size_t)l.n, sizeof(*r));
	assert_non_null(r);
	for (int i = 0; i < l.n; i++)
		if (live_space(&l.buffers[i]) == SPACE_PRIVATE)
			r[n++] = (struct slab_range){ .bytes = l.buffers[i].bytes,
						      .first = l.buffers[i].first,
						      .last = l.buffers[i].last };
	live_done(&l);
	net_free(&net);
	*ret_n = n;
	return r;
}

/* The most bytes live at one moment: no placement needs less. */
static size_t find_most_live(const struct slab_range *r, int n)
{
	size_t *live, now = 0, most = 0;
	int end = 0;

	for (int i = 0; i < n; i++)
		end = r[i].last > end ? r[i].last : end;
	live = calloc((size_t)end + 2, sizeof(*live));
	assert_non_null(live);
	for (int i = 0; i < n; i++) {
		live[r[i].first] += round_up_bytes(r[i].bytes, 64);
		live[r[i].last + 1] -= round_up_bytes(r[i].bytes, 64);
	}
	for (int m = 0; m <= end; m++) {
		now += live[m];
		most = now > most ? now : most;
	}
	free(live);
	return most;
}

/* With four times as many layers a search looks at some more ranges, as a tree is deeper, and not at four times as
 * many. Deep networks waste next to nothing. */
static void test_many_layers(void **state)
{
	static const struct net_opts all[] = {
		{ .precision = F32_F32 },
		{ .precision = BF16_F32, .recompute = RECOMPUTE_SELECTIVE },
		{ .precision = BF16_F32, .recompute = RECOMPUTE_FULL },
		{ .precision = F32_F32, .offload = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct net_opts o = all[i];
		double looked[2];
		size_t size;

		o.model = "gpt2-124m";
		o.batch = 1;
		o.training = true;
		for (int big = 0; big < 2; big++) {
			struct slab_range *r;
			int n;

			o.layers = big ? 240 : 60;
			r = ranges_of(&o, &n);
			looked[big] = place_counted(r, n, &size);
			if (big && (double)size > 1.001 * (double)find_most_live(r, n))
				fail_msg("net %zu: %zu bytes of %d ranges, at least %zu needed", i, size, n,
					 find_most_live(r, n));
			free(r);
		}
		print_message("net %zu: 60 layers: %.0f ranges looked at for each, 240 layers: %.0f\n", i, looked[0],
			      looked[1]);
		assert_true(looked[1] < 3 * looked[0]);
	}
}

static void test_known_ranges(void **state)
{
	struct slab_range disjoint[] = { { 100, 0, 1, 0 }, { 100, 2, 3, 0 }, { 100, 4, 5, 0 } };
	struct slab_range together[] = { { 64, 0, 5, 0 }, { 128, 5, 5, 0 }, { 0, 0, 9, 0 } };

	(void)state;
	assert_int_equal(slab_place(disjoint, 3, 64, NULL), 128);
	assert_int_equal(slab_place(together, 3, 64, NULL), 192);
	assert_int_equal(slab_place(NULL, 0, 64, NULL), 0);
}

static struct tensor *tensor(struct graph *g, const char *name, enum tensor_kind kind, enum lifetime life, int64_t n)
{
	return graph_tensor(
		g, &(struct tensor){ .name = name, .kind = kind, .dtype = DTYPE_F32, .shape = SHAPE(n), .life = life });
}

static struct tensor *sum(struct graph *g, struct tensor *a, struct tensor *b, const char *name)
{
	struct node *n =
		graph_node(g, &(struct node_spec){ .op = &op_add, .name = name, NODE_IN(a, b), NODE_OUT(NULL) });

	return n ? n->out[0] : NULL;
}

static void make_plan(struct plan *plan, struct graph *g, struct schedule *s)
{
	struct plan_program p = { "hand", g, s };
	struct err err = ERR_INIT;

	if (schedule_make(s, g, &err) != 0 || plan_make(plan, &p, 1, &err) != 0)
		fail_msg("%s", err.text);
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
	return a->offset < b->offset + tensor_bytes(b) && b->offset < a->offset + tensor_bytes(a);
}

/* In place: a chain of sums over one buffer; the memory of inputs and kept tensors is never reused. */
static void test_takeover(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *x = tensor(g, "x", TENSOR_INPUT, LIFE_MICRO, 100), *a = sum(g, x, x, "a"),
		      *b = sum(g, a, x, "b");
	struct tensor *kept = sum(g, b, x, "kept"), *d = sum(g, kept, x, "d");
	struct schedule s;
	struct plan plan;

	(void)state;
	kept->keep = true;
	make_plan(&plan, g, &s);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(b->offset, kept->offset);
	assert_false(overlap(kept, d));
	assert_false(overlap(a, x));
	assert_int_equal(plan.slab_bytes[SPACE_PRIVATE], 3 * 448);
	graph_free(g);
}

/* Both operands are the same tensor, or the input is needed later: not in place. */
static void test_no_takeover(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *x = tensor(g, "x", TENSOR_INPUT, LIFE_MICRO, 16), *a = sum(g, x, x, "a"),
		      *twice = sum(g, a, a, "b");
	struct tensor *c = sum(g, twice, x, "c"), *d = sum(g, twice, c, "d");
	struct schedule s;
	struct plan plan;

	(void)state;
	make_plan(&plan, g, &s);
	assert_false(overlap(a, twice));
	assert_false(overlap(twice, c));
	assert_int_equal(d->offset, twice->offset);
	graph_free(g);
}

/* Views are inside their base, which is kept as long as any of them; persistent tensors come first. */
static void test_views(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *p = tensor(g, "p", TENSOR_PARAM, LIFE_PERSISTENT, 10);
	struct tensor *base = tensor(g, "base", TENSOR_GRAD, LIFE_STEP, 64), *view[2], *mid, *last;
	struct schedule s;
	struct plan plan;

	(void)state;
	base->space = SPACE_COMM;
	for (int i = 0; i < 2; i++) {
		view[i] = tensor(g, i ? "v1" : "v0", TENSOR_GRAD, LIFE_STEP, 32);
		view[i]->base = base;
		view[i]->base_offset = (size_t)i * 128;
		view[i]->space = SPACE_COMM;
	}
	graph_node(g, &(struct node_spec){ .op = &op_relu,
					   NODE_IN(tensor(g, "x", TENSOR_INPUT, LIFE_MICRO, 32)),
					   NODE_OUT(view[0]) });
	mid = sum(g, graph_find(g, "x"), graph_find(g, "x"), "mid");
	graph_node(g, &(struct node_spec){ .op = &op_relu, NODE_IN(mid), NODE_OUT(view[1]) });
	last = sum(g, view[0], view[1], "last");
	make_plan(&plan, g, &s);
	assert_int_equal(p->offset, 0);
	assert_int_equal(plan.persistent_bytes, 64);
	assert_int_equal(plan.slab_bytes[SPACE_COMM], 256);
	assert_int_equal(view[1]->offset, base->offset + 128);
	assert_true(mid->offset >= 64 && last->offset >= 64);
	graph_free(g);
}

/* While a reduction may still run, the memory of its operands is not reused. */
static void test_streams(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *x = tensor(g, "x", TENSOR_INPUT, LIFE_MICRO, 16), *a = sum(g, x, x, "a"), *b, *c, *d;
	struct schedule s;
	struct plan plan;

	(void)state;
	allreduce_add(g, a, 0, STREAM_COMM);
	b = sum(g, x, x, "b");
	c = sum(g, b, x, "c");
	d = sum(g, c, a, "d");
	make_plan(&plan, g, &s);
	assert_false(overlap(a, b));
	assert_false(overlap(a, c));
	assert_int_equal(s.items[1].wait[STREAM_COMPUTE], 1);
	assert_int_equal(s.items[0].signal, 1u << STREAM_COMM);
	assert_int_equal(s.items[1].signal, 1u << STREAM_COMPUTE);
	assert_int_equal(s.items[4].wait[STREAM_COMM], 2);
	assert_int_equal(d->offset, c->offset);
	graph_free(g);
}

/* Interleaved micro-batches get separate memory. */
static void test_slots(void **state)
{
	struct graph *g = graph_new(true);
	struct tensor *x = tensor(g, "x", TENSOR_INPUT, LIFE_MICRO, 16), *a = sum(g, x, x, "a"), *b = sum(g, x, x, "b");
	struct tensor *c = sum(g, a, b, "c");
	struct schedule_item items[6];
	struct schedule s = { .items = items, .n = 6, .slots = 2 };
	struct plan_program p = { "two slots", g, &s };
	struct plan plan;

	(void)state;
	for (int i = 0; i < 6; i++)
		items[i] = (struct schedule_item){ .node = g->nodes[i / 2], .slot = i % 2 };
	assert_int_equal(plan_make(&plan, &p, 1, NULL), 0);
	assert_non_null(a->slot_offset);
	assert_int_not_equal(a->slot_offset[0], a->slot_offset[1]);
	assert_int_not_equal(b->slot_offset[0], b->slot_offset[1]);
	assert_int_not_equal(a->slot_offset[1], b->slot_offset[0]);
	assert_int_equal(c->slot_offset[1], a->slot_offset[1]);
	assert_int_equal(c->offset, c->slot_offset[0]);
	graph_free(g);
}

/* A program whose tensor contradicts that of an earlier program is refused. */
static void test_contradiction(void **state)
{
	struct graph *g[2] = { graph_new(true), graph_new(false) };
	struct schedule s[2];
	struct plan_program p[2];
	struct plan plan;
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < 2; i++) {
		tensor(g[i], "p", TENSOR_PARAM, LIFE_PERSISTENT, 10 + 100 * i);
		assert_int_equal(schedule_make(&s[i], g[i], &err), 0);
		p[i] = (struct plan_program){ i ? "eval" : "train", g[i], &s[i] };
	}
	assert_int_equal(plan_make(&plan, p, 2, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "p has a different size"));
	graph_free(g[0]);
	graph_free(g[1]);
}

/* Memory of one space that records, for each aligned piece, which tensor wrote it last; a view counts as its base. */
struct owners {
	int *of;
	size_t pieces;
};

#define OWNER_WORKSPACE (-1)

static void own_bytes(struct owners *o, size_t offset, size_t bytes, int owner)
{
	assert_true(offset % PLAN_ALIGN_BYTES == 0);
	for (size_t i = 0; i < bytes; i += PLAN_ALIGN_BYTES) {
		assert_true((offset + i) / PLAN_ALIGN_BYTES < o->pieces);
		o->of[(offset + i) / PLAN_ALIGN_BYTES] = owner;
	}
}

static bool owned_by(const struct owners *o, size_t offset, size_t bytes, int owner)
{
	for (size_t i = 0; i < bytes; i += PLAN_ALIGN_BYTES)
		if (o->of[(offset + i) / PLAN_ALIGN_BYTES] != owner)
			return false;
	return true;
}

static int owner_id(const struct tensor *t)
{
	return (t->base ? t->base->id : t->id) + 1;
}

/* spaces: the owners, indexed by enum space. */
static void own(struct owners *spaces, const struct tensor *t)
{
	own_bytes(&spaces[t->space], t->offset, tensor_bytes(t), owner_id(t));
}

static void expect_own(const struct owners *spaces, const struct tensor *t, const struct node *reader)
{
	if (!owned_by(&spaces[t->space], t->offset, tensor_bytes(t), owner_id(t)))
		fail_msg("%s reads %s after it was overwritten", reader->name, t->name);
}

/* In a flat tensor that ranks exchange, the bytes between its views have no meaning. */
static void expect_all(const struct owners *spaces, const struct graph *g, const struct tensor *t,
		       const struct node *reader)
{
	bool flat = false;

	for (int i = 0; i < g->n_tensors && reader->op->collective; i++) {
		const struct tensor *v = g->tensors[i];

		if (v->base != t || !v->producer || v->producer->id > reader->id)
			continue;
		flat = true;
		expect_own(spaces, v, reader);
	}
	if (!flat)
		expect_own(spaces, t, reader);
}

/* Runs a program on such a memory: every node reads what was written for it. */
static void simulate(const struct net *net, const size_t *slab_bytes)
{
	struct owners o[SPACE_COUNT], *own_space = &o[SPACE_PRIVATE];

	for (int s = 0; s < SPACE_COUNT; s++) {
		o[s].pieces = slab_bytes[s] / PLAN_ALIGN_BYTES + 1;
		o[s].of = test_calloc(o[s].pieces, sizeof(*o[s].of));
	}
	for (int i = 0; i < net->g->n_tensors; i++)
		if (lifetime_spans(net->g->tensors[i]->life) || net->g->tensors[i]->kind == TENSOR_INPUT)
			own(o, net->g->tensors[i]);
	for (int i = 0; i < net->schedule.n; i++) {
		const struct node *n = net->schedule.items[i].node;

		own_bytes(own_space, n->workspace_offset, n->workspace_bytes, OWNER_WORKSPACE);
		for (int k = 0; k < n->n_in; k++)
			if (n->in[k])
				expect_all(o, net->g, n->in[k], n);
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k])
				own(o, n->out[k]);
		assert_true(owned_by(own_space, n->workspace_offset, n->workspace_bytes, OWNER_WORKSPACE));
	}
	for (int i = 0; i < net->g->n_tensors; i++) {
		const struct tensor *t = net->g->tensors[i];

		if (lifetime_spans(t->life) || t->kind == TENSOR_RESULT || t->keep)
			expect_own(o, t, net->g->nodes[0]);
	}
	for (int s = 0; s < SPACE_COUNT; s++)
		test_free(o[s].of);
}

/* The sizes of a plan without offsets are those of the plan; its slabs are their lower bounds. */
static void check_measured(const struct plan *plan, struct plan_program *programs)
{
	struct err err = ERR_INIT;
	struct plan sizes;

	assert_int_equal(plan_measure(&sizes, programs, 2, &err), 0);
	assert_memory_equal(sizes.category_bytes, plan->category_bytes, sizeof(sizes.category_bytes));
	assert_int_equal(sizes.lower_bound_bytes, plan->lower_bound_bytes);
	assert_int_equal(sizes.persistent_bytes, plan->persistent_bytes);
	for (int s = 0; s < SPACE_COUNT; s++)
		assert_true(sizes.slab_bytes[s] <= plan->slab_bytes[s]);
}

static void check_model(const struct net_opts *o)
{
	struct net_opts eval = *o;
	struct net nets[2];
	struct plan_program programs[2];
	struct plan plan, again;
	struct err err = ERR_INIT;
	const struct model *m = model_find(o->model);
	const struct tensor *weight;

	eval.training = false;
	net_make(&nets[0], o);
	net_make(&nets[1], &eval);
	for (int i = 0; i < nets[0].g->n_nodes; i += 7)
		nets[0].g->nodes[i]->workspace_bytes = (size_t)i * 100;
	for (int i = 0; i < 2; i++)
		programs[i] = nets[i].program;
	if (plan_make(&plan, programs, 2, &err) != 0)
		fail_msg("%s: %s", o->model, err.text);
	simulate(&nets[0], plan.slab_bytes);
	simulate(&nets[1], plan.slab_bytes);
	if ((double)plan.slab_bytes[SPACE_PRIVATE] > 1.05 * (double)plan.lower_bound_bytes)
		fail_msg("%s: %zu bytes planned, at least %zu needed", o->model, plan.slab_bytes[SPACE_PRIVATE],
			 plan.lower_bound_bytes);
	assert_int_equal(plan_make(&again, programs, 2, &err), 0);
	assert_memory_equal(&plan, &again, sizeof(plan));
	check_measured(&plan, programs);
	weight = graph_find(nets[0].g, m->reads_tokens ? "transformer.wte.weight" : "fc.weight");
	assert_int_equal(weight->offset, graph_find(nets[1].g, weight->name)->offset);
	net_free(&nets[0]);
	net_free(&nets[1]);
}

static void test_models(void **state)
{
	static const struct net_opts all[] = {
		{ .model = "resnet18", .batch = 4, .image = 64, .precision = F32_F32 },
		{ .model = "resnet34", .batch = 4, .image = 64, .precision = BF16_F32 },
		{ .model = "resnet50", .batch = 4, .image = 64, .precision = BF16_F32 },
		{ .model = "resnet50", .batch = 16, .precision = F32_F32 },
		{ .model = "resnet20", .batch = 128, .image = 28, .precision = F32_F32 },
		{ .model = "resnet20", .batch = 128, .image = 28, .precision = BF16_F32, .gelu = true },
		{ .model = "resnet20", .batch = 0, .image = 28, .precision = F64_F64 },
		{ .model = "resnet56", .batch = 128, .precision = F64_F64 },
		{ .model = "resnet50", .batch = 16, .precision = BF16_F32, .recompute = RECOMPUTE_SELECTIVE },
		{ .model = "resnet50", .batch = 16, .precision = F32_F32, .recompute = RECOMPUTE_FULL },
		{ .model = "gpt2-124m", .batch = 1, .precision = F32_F32 },
		{ .model = "gpt2-124m", .batch = 4, .precision = BF16_F32, .recompute = RECOMPUTE_SELECTIVE },
		{ .model = "gpt2-350m", .batch = 4, .precision = BF16_F32, .recompute = RECOMPUTE_FULL },
		{ .model = "resnet20", .batch = 32, .precision = F32_F32, .accumulate = true,
		  .recompute = RECOMPUTE_FULL },
		{ .model = "resnet20", .batch = 32, .precision = BF16_F32, .offload = true },
		{ .model = "gpt2-124m", .batch = 1, .precision = BF16_F32, .recompute = RECOMPUTE_FULL,
		  .offload = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct net_opts o = all[i];

		o.training = true;
		check_model(&o);
	}
}

static size_t compute_bytes(struct net_opts o, bool offload)
{
	struct err err = ERR_INIT;
	struct plan plan;
	struct net net;

	o.offload = offload;
	net_make(&net, &o);
	assert_int_equal(plan_make(&plan, &net.program, 1, &err), 0);
	net_free(&net);
	return plan.slab_bytes[SPACE_PRIVATE];
}

/* GPT-2 124M, f32: of 124 M parameters and their momentum two tables at a time remain (the output's weights and their
 * gradient), in addition to all gradients and the output's activations; of the activations of 12 blocks those of
 * three. */
static void test_offload_frees(void **state)
{
	const struct net_opts o = { .model = "gpt2-124m", .batch = 4, .training = true, .precision = F32_F32 };
	const size_t kept = compute_bytes(o, false), left = compute_bytes(o, true);

	(void)state;
	if (left > kept * 2 / 5)
		fail_msg("%zu bytes of %zu remain", left, kept);
}

/* Every strategy, on two ranks where it supports them. */
static void test_strategies(void **state)
{
	static const int most[] = {
#define STRATEGY(name, most, ...) most,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
	};

	(void)state;
	for (int i = 0; i < STRATEGY_COUNT; i++)
		for (int stage = 1; stage <= (strategies_table[i]->lay ? 3 : 1); stage++)
			check_model(&(struct net_opts){ .model = "resnet20",
							.batch = 32,
							.training = true,
							.precision = BF16_F32,
							.strategy = strategies_table[i],
							.zero_stage = stage,
							.world = most[i] == 1 ? 1 : 2 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_ranges),
		cmocka_unit_test(test_no_larger_than_one_order),
		cmocka_unit_test(test_many_ranges),
		cmocka_unit_test(test_many_layers),
		cmocka_unit_test(test_known_ranges),
		cmocka_unit_test(test_takeover),      cmocka_unit_test(test_no_takeover),
		cmocka_unit_test(test_views),	      cmocka_unit_test(test_streams),
		cmocka_unit_test(test_slots),	      cmocka_unit_test(test_contradiction),
		cmocka_unit_test(test_models),	      cmocka_unit_test(test_strategies),
		cmocka_unit_test(test_offload_frees),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
