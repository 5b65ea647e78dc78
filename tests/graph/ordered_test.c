/* SPDX-License-Identifier: Apache-2.0 */
/* ordered_test.c: streams and waits order all accesses of programs to their memory. The proof (ordered.h) is first
 * compared with all orders in which small random programs can run: a program it accepts computes the same in each of
 * them, also with any one wait omitted. Then it is applied to every program of runs with each strategy, recomputation
 * and accumulation, and to each of these with any one wait omitted. In full: for every model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/ordered.h"
#include "trainer/graph/rng.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"
#include "trainer/program/planning.h"

/* ---- small programs, in every order ---- */

#define GRAPHS 250
#define NODES_MAX 8
#define PIECES_MAX 128
#define ACCESSES_MAX 16

struct draws {
	struct rng_key key;
	uint64_t n;
};

static int below(struct draws *d, int n)
{
	return (int)rng_below(d->key, d->n++, (uint64_t)n);
}

static struct tensor *pick(const struct graph *g, struct draws *d)
{
	return g->tensors[below(d, g->n_tensors)];
}

/* Sums on the compute stream, reductions in place and into new tensors on all streams; some with a workspace, some with
 * a dependency on a node whose result they may not need. */
static struct graph *small_graph(struct draws *d)
{
	const int streams = 2 + below(d, 3), nodes = 3 + below(d, NODES_MAX - 2);
	struct graph *g = graph_new(true);

	assert_non_null(g);
	graph_tensor(g, &(struct tensor){ .name = "x",
					  .kind = TENSOR_INPUT,
					  .dtype = DTYPE_F32,
					  .shape = SHAPE(16),
					  .life = LIFE_MICRO });
	for (int i = 0; i < nodes; i++) {
		struct tensor *a = pick(g, d), *b = pick(g, d);
		const int kind = below(d, 3);

		if (kind == 0 && a->kind != TENSOR_INPUT)
			allreduce_add(g, a, 0, (enum stream)below(d, streams));
		else if (kind == 1)
			graph_node(g, &(struct node_spec){ .op = &op_add, NODE_IN(a, b), NODE_OUT(NULL) });
		else
			graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(a), NODE_OUT(NULL) })->stream =
				(enum stream)below(d, streams);
		g->nodes[g->n_nodes - 1]->workspace_bytes = (size_t)below(d, 3) * 40;
		if (i && below(d, 3) == 0)
			node_after(g, g->nodes[i], g->nodes[below(d, i)]);
	}
	g->tensors[g->n_tensors - 1]->keep = true;
	assert_false(graph_failed(g));
	return g;
}

/* What an item reads determines what it writes; a workspace keeps no value for other items. */
struct orders {
	const struct graph *g;
	const struct schedule *s;
	uint64_t want[NODES_MAX + 1]; /* what each item reads in the order of the schedule; finally what is kept */
	bool differs;
};

struct memory {
	uint64_t piece[PIECES_MAX];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static uint64_t read_bytes(const struct memory *m, const struct access *r, uint64_t value)
{
	for (size_t i = r->from / PLAN_ALIGN_BYTES; i * PLAN_ALIGN_BYTES < r->to; i++)
		value = mix(value, m->piece[i]);
	return value;
}

static uint64_t run_item(const struct orders *o, struct memory *m, int item)
{
	struct access r[ACCESSES_MAX];
	const int n = accesses_of(o->g, &o->s->items[item], r);
	uint64_t value = (uint64_t)item + 1;

	for (int k = 0; k < n; k++)
		value = r[k].written ? value : read_bytes(m, &r[k], value);
	for (int k = n; k-- > 0;)
		for (size_t i = r[k].from / PLAN_ALIGN_BYTES; r[k].written && i * PLAN_ALIGN_BYTES < r[k].to; i++)
			m->piece[i] = mix(value, i - r[k].from / PLAN_ALIGN_BYTES);
	return value;
}

static uint64_t read_kept(const struct orders *o, const struct memory *m)
{
	uint64_t value = 0;

	for (int i = 0; i < o->g->n_tensors; i++) {
		const struct tensor *t = o->g->tensors[i];
		const struct access r = { t->space, t->offset, t->offset + tensor_bytes(t), false };

		value = t->keep ? read_bytes(m, &r, value) : value;
	}
	return value;
}

static bool may_run(const struct schedule *s, const bool *done, int item)
{
	for (int i = 0; i < item; i++)
		if (!done[i] && (s->items[i].stream == s->items[item].stream ||
				 i < s->items[item].wait[s->items[i].stream]))
			return false;
	return !done[item];
}

static void try_all(struct orders *o, const struct memory *m, bool *done, int left)
{
	if (!left && read_kept(o, m) != o->want[o->s->n])
		o->differs = true;
	for (int i = 0; i < o->s->n && !o->differs; i++) {
		struct memory next = *m;

		if (!may_run(o->s, done, i))
			continue;
		done[i] = true;
		if (run_item(o, &next, i) != o->want[i])
			o->differs = true;
		try_all(o, &next, done, left - 1);
		done[i] = false;
	}
}

/* Whether some order that streams and waits allow gives another result than the schedule's own order. */
static bool order_matters(const struct graph *g, const struct schedule *s)
{
	struct orders o = { .g = g, .s = s };
	struct memory m = { { 0 } };
	bool done[NODES_MAX] = { false };

	for (int i = 0; i < s->n; i++)
		o.want[i] = run_item(&o, &m, i);
	o.want[s->n] = read_kept(&o, &m);
	try_all(&o, &(struct memory){ { 0 } }, done, s->n);
	return o.differs;
}

struct count {
	int waits, caught, needless;
};

static void check_small(const struct graph *g, struct schedule *s, struct count *c)
{
	struct unordered u;

	assert_false(ordered_fails(g, s, &u));
	assert_false(order_matters(g, s));
	for (int i = 0; i < s->n * STREAM_COUNT; i++) {
		int *wait = &s->items[i / STREAM_COUNT].wait[i % STREAM_COUNT], kept = *wait;
		bool fails, matters;

		if (!kept)
			continue;
		*wait = 0;
		fails = ordered_fails(g, s, &u);
		matters = order_matters(g, s);
		*wait = kept;
		if (matters && !fails)
			fail_msg("without the wait of item %d the order matters, which was not detected",
				 i / STREAM_COUNT);
		c->waits++;
		c->caught += fails;
		c->needless += fails && !matters;
	}
}

static void small_programs_in_all_orders(void **state)
{
	struct count c = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < GRAPHS; seed++) {
		struct draws d = { { seed, rng_stream("orders") }, 0 };
		struct graph *g = small_graph(&d);
		struct schedule s;
		struct plan_program p = { "small", g, &s };
		struct plan plan;
		struct err err = ERR_INIT;

		if (schedule_make(&s, g, &err) != 0 || plan_make(&plan, &p, 1, &err) != 0)
			fail_msg("%s", err.text);
		assert_true(plan.slab_bytes[SPACE_PRIVATE] <= (size_t)PIECES_MAX * PLAN_ALIGN_BYTES);
		check_small(g, &s, &c);
		graph_free(g);
	}
	print_message("small programs: %d waits, %d detected when omitted (%d of them write unread data)\n",
		      c.waits, c.caught, c.needless);
	assert_true(c.caught > c.waits / 2 && c.caught < c.waits);
}

/* ---- programs of runs ---- */

#define WORDS_MAX 64

static const char *backend; /* cuda --precision bf16 on the fake device if it was built; else ref */
static bool full;

struct totals {
	int programs, items, waits, caught;
};

/* Memory of the pinned slab outside the programs: loaders' slots, the snapshot. */
static int rings_of(const struct prepared *p, struct access *ret)
{
	int n = 0;

	for (int s = 0; s < SPLIT_COUNT; s++)
		ret[n++] = (struct access){ SPACE_PINNED, p->loader_offset[s], p->loader_offset[s] + p->loader_bytes[s],
					   true };
	ret[n++] = (struct access){ SPACE_PINNED, p->snapshot_offset, p->snapshot_offset + p->snapshot_bytes, true };
	return n;
}

static void expect_rings_apart(const struct prepared *p)
{
	struct access ring[SPLIT_COUNT + 1];
	const int n = rings_of(p, ring);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			assert_false(accesses_conflict(&ring[i], &ring[k]));
	for (int i = 0; i < p->n_programs; i++) {
		const struct graph *g = p->program[i]->graph;

		for (int t = 0; t < g->n_tensors; t++) {
			const size_t at = g->tensors[t]->offset;
			const struct access r = { g->tensors[t]->space, at, at + tensor_bytes(g->tensors[t]), true };

			for (int k = 0; k < n; k++)
				assert_false(accesses_conflict(&r, &ring[k]));
		}
	}
}

/* The end of the persistent tensors, which are placed before everything else. */
static void find_ends(const struct prepared *p, size_t *end)
{
	for (int i = 0; i < p->n_programs; i++)
		for (int t = 0; t < p->program[i]->graph->n_tensors; t++) {
			const struct tensor *x = p->program[i]->graph->tensors[t];
			const size_t to = x->offset + tensor_bytes(x);

			if (lifetime_spans((x->base ? x->base : x)->life) && to > end[x->space])
				end[x->space] = to;
		}
}

/* No program writes where another one keeps persistent tensors. */
static void expect_persistent_apart(const struct prepared *p, const struct program *program)
{
	size_t end[SPACE_COUNT] = { 0 };

	find_ends(p, end);
	for (int i = 0; i < program->schedule.n; i++) {
		const struct schedule_item *it = &program->schedule.items[i];

		if (it->node->workspace_bytes)
			assert_true(plan_workspace(it->node, it->slot) >= end[SPACE_PRIVATE]);
		for (int k = 0; k < it->node->n_out; k++) {
			const struct tensor *x = it->node->out[k];

			if (x && tensor_bytes(x) && !lifetime_spans((x->base ? x->base : x)->life))
				assert_true(plan_offset(x, it->slot) >= end[x->space]);
		}
	}
}

static void leave_waits_out(const struct program *p, struct totals *total)
{
	struct schedule_item *items = p->schedule.items;
	struct unordered u;

	for (int i = 0; i < p->schedule.n * STREAM_COUNT; i++) {
		int *wait = &items[i / STREAM_COUNT].wait[i % STREAM_COUNT], kept = *wait;

		if (!kept)
			continue;
		*wait = 0;
		total->waits++;
		total->caught += ordered_fails(p->graph, &p->schedule, &u);
		*wait = kept;
	}
}

static void check_program(const char *flags, const struct program *p, bool without, struct totals *total)
{
	struct unordered u;

	if (ordered_fails(p->graph, &p->schedule, &u))
		fail_msg("%s: program %s: %s and %s access the same bytes unordered (at %zu of space %d)", flags,
			 p->name, p->schedule.items[u.first].node->name, p->schedule.items[u.second].node->name,
			 u.at.from, (int)u.at.space);
	total->programs++;
	total->items += p->schedule.n;
	if (without)
		leave_waits_out(p, total);
}

/* Splits text at its spaces, in place. */
static int split_words(char *text, char **argv)
{
	int argc = 0;

	for (; text; text = strchr(text, ' ')) {
		assert_true(argc < WORDS_MAX);
		if (*text == ' ')
			*text++ = '\0';
		argv[argc++] = text;
	}
	return argc;
}

static void check_rank(const char *flags, const struct run_config *cfg, int rank, bool without, struct totals *total)
{
	struct shared_status shared_status = { .stop_signal = 0 };
	const struct rank_context context = { .rank = rank,
					      .world = cfg->world,
					      .local_world = cfg->world,
					      .nodes = 1,
					      .shm_fd = -1,
					      .signal_fd = -1,
					      .shared_status = &shared_status };
	struct run_config own = *cfg; /* data and model determine the open settings */
	struct rank r = rank_of(&own, &context);
	struct workload workload;
	struct prepared prepared;
	struct train_schedule train_schedule;
	struct err err = ERR_INIT;

	r.by_rule = true; /* planning measures no times */
	if (workload_open(&workload, &own, NULL, NULL, &err) != 0 || rank_open_backend(&r, &err) != 0 ||
	    planning_make(&train_schedule, &prepared, &r, &workload, &err) != 0)
		fail_msg("%s: %s", flags, err.text);
	expect_rings_apart(&prepared);
	for (int i = 0; i < prepared.n_programs; i++) {
		expect_persistent_apart(&prepared, prepared.program[i]);
		check_program(flags, prepared.program[i], without, total);
	}
	prepare_done(&prepared);
	workload_close(&workload);
	if (r.backend->close)
		r.backend->close(r.module);
}

/* flags: of a run on `world` ranks; without: also with each wait omitted in turn. */
static void check_run(const char *flags, int world, bool without, struct totals *total)
{
	const bool pipeline = strstr(flags, "pdp") != NULL;
	struct run_config *cfg;
	struct err err = ERR_INIT;
	char text[1000], *argv[WORDS_MAX];
	int argc;

	snprintf(text, sizeof(text),
		 "dptrain plan --backend %s --synthetic --threads 1 --nproc-per-node %d --save-steps 5 %s", backend,
		 world, flags);
	argc = split_words(text, argv);
	if (config_parse(&cfg, argc, argv, &err) != 0 ||
	    config_resolve(cfg, &(struct config_world){ .world = world, .local_world = world }, &err) != 0)
		fail_msg("%s: %s", flags, err.text);
	for (int rank = 0; rank < world; rank += pipeline || world == 1 ? 1 : world - 1)
		check_rank(flags, cfg, rank, without, total);
	config_free(cfg);
}

static void say(const char *what, const struct totals *t)
{
	print_message("%s: %d programs of %d items; %d waits, of which %d are needed\n", what, t->programs, t->items,
		      t->waits, t->caught);
	assert_true(!t->waits || t->caught);
}

struct sharing {
	const char *flags;
	int world;
};

static const struct sharing sharings[] = {
	{ "--strategy single", 1 },
	{ "--strategy ddp --bucket-cap-mb 0.05", 2 },
	{ "--strategy fsdp --zero-stage 1", 2 },
	{ "--strategy fsdp --zero-stage 2", 3 },
	{ "--strategy fsdp --zero-stage 3", 2 },
	{ "--strategy fsdp --zero-stage 3 --shard-degree 2 --gather-prefetch 2 --fsdp-unit layer", 4 },
	{ "--strategy fsdp --zero-stage 3 --no-reshard-after-forward --gather-prefetch 0", 2 },
	{ "--strategy pdp --pp-stages 2 --microbatches 4", 2 },
	{ "--strategy pdp --pp-stages 2 --microbatches 3 --pp-schedule gpipe", 4 },
	{ "--strategy pdp --pp-stages 2 --microbatches 2 --zero-stage 1", 4 },
	{ "--strategy dp --dp-devices 3", 1 },
};

static const char *const recomputations[] = { "none", "selective", "full" };

static void check_sharing(const char *model, const struct sharing *s, bool without)
{
	struct totals total = { 0 };

	for (size_t r = 0; r < sizeof(recomputations) / sizeof(recomputations[0]); r++)
		for (int accumulate = 1; accumulate < 4; accumulate += 2) {
			const bool cut = strstr(s->flags, "pdp") || strstr(s->flags, " dp "); /* into micro-batches */
			char flags[600];

			snprintf(flags, sizeof(flags), "%s %s --activation-checkpointing %s --grad-accum-steps %d",
				 model, s->flags, recomputations[r], accumulate);
			if (accumulate == 1 || !cut)
				check_run(flags, s->world, without, &total);
		}
	say(s->flags, &total);
}

static void check_all_sharings(const char *model, bool without)
{
	for (size_t i = 0; i < sizeof(sharings) / sizeof(sharings[0]); i++)
		check_sharing(model, &sharings[i], without);
}

#define SMALL_GPT                                                                                                      \
	"--model gpt2-124m --n-layer 4 --n-head 2 --n-embd 16 --block-size 8 --vocab-size 32 --seq-len 8 -b 12 "       \
	"--dropout 0.1 --clip-grad-norm 1 --opt adamw"

static void language_models(void **state)
{
	struct totals total = { 0 };

	(void)state;
	check_all_sharings(SMALL_GPT, true);
	check_run(SMALL_GPT " --strategy ddp --deterministic", 3, true, &total);
	say("--deterministic", &total);
	total = (struct totals){ 0 };
	for (size_t i = 0; i < sizeof(sharings) / sizeof(sharings[0]); i++) {
		const char *way = sharings[i].flags;
		const bool whole = strstr(way, "stage 1") || strstr(way, "stage 2"); /* parameters, for the step */
		char flags[600];

		snprintf(flags, sizeof(flags), SMALL_GPT " --model-ema %s --activation-offload --optim-offload%s", way,
			 whole ? "" : " --param-offload");
		check_run(flags, sharings[i].world, true, &total);
	}
	say("offloads", &total);
}

#define SMALL_RESNET "--model resnet20 --image-size 8 -b 12"

static void convolutional_networks(void **state)
{
	struct totals total = { 0 };

	(void)state;
	if (full) {
		check_all_sharings(SMALL_RESNET, true);
		return;
	}
	check_run(SMALL_RESNET " --sync-bn --strategy fsdp", 2, true, &total);
	say("resnet20, --strategy fsdp --sync-bn", &total);
}

/* At their real size: a plan needs no memory. */
static void every_model(void **state)
{
	(void)state;
	for (int i = 0; full && i < MODEL_COUNT; i++) {
		struct totals total = { 0 };
		char flags[300];

		snprintf(flags, sizeof(flags), "--model %s -b 8 --strategy fsdp --activation-checkpointing full",
			 models_table[i]->name);
		check_run(flags, 2, false, &total);
		say(models_table[i]->name, &total);
	}
	if (!full)
		print_message("left out: every model at its real size (DPT_TEST_FULL=1)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_programs_in_all_orders),
		cmocka_unit_test(language_models),
		cmocka_unit_test(convolutional_networks),
		cmocka_unit_test(every_model),
	};
	const char *build_folder = getenv("builddir"), *asked = getenv("DPT_TEST_FULL");
	struct backend_choice choice;
	struct err err = ERR_INIT;
	char path[4096];

	full = asked && !strcmp(asked, "1");
	snprintf(path, sizeof(path), "%s/tests/fakes/cuda/.libs", build_folder ? build_folder : ".");
	setenv("DPTRAIN_BACKEND_PATH", path, 0);
	setenv("DPTRAIN_FAKE_DEVICES", "16", 0); /* one for each rank */
	backend = backend_load(&choice, "cuda", &err) ? "ref --precision fp64" : "cuda --precision bf16";
	print_message("programs of backend %s\n", backend);
	return cmocka_run_group_tests_name("ordered", tests, NULL, NULL);
}
