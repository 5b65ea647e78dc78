/* SPDX-License-Identifier: Apache-2.0 */
/* exec_test.c: exec.c passes calls to whatever executor is present; the executor of host backends: micro-batches in
 * turns, over several streams, each in its slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/ops.h"
#include "trainer/run/exec/exec.h"

/* An executor that runs nothing and counts calls. */
struct fake {
	struct exec exec;
	int runs, under_way, profiles;
	bool closed;
	double seconds;
};

static struct fake fake;
static const struct exec_ops fake_ops;

static int fake_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	(void)p, (void)err;
	fake = (struct fake){ .exec.ops = &fake_ops, .seconds = 3 };
	*ret = &fake.exec;
	return 0;
}

static void fake_close(struct exec *e)
{
	((struct fake *)e)->closed = true;
}

static int fake_ahead(const struct exec *e)
{
	(void)e;
	return EXEC_AHEAD_MAX;
}

static int fake_begin(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err)
{
	(void)p;
	if (call->page->step == 13)
		return err_set(err, ERR_PEER, "step 13");
	((struct fake *)e)->runs++;
	((struct fake *)e)->under_way++;
	return 0;
}

static int fake_fed(struct exec *e, struct err *err)
{
	return ((struct fake *)e)->under_way ? 0 : err_set(err, ERR_USAGE, "nothing is under way");
}

static int fake_end(struct exec *e, struct exec_done *ret, struct err *err)
{
	(void)err;
	ret->times.comm_total = 100 * ((struct fake *)e)->under_way--;
	return 0;
}

static void fake_profile(struct exec *e)
{
	((struct fake *)e)->profiles++;
}

static const double *fake_node_seconds(const struct exec *e, const struct program *p)
{
	(void)p;
	return &((const struct fake *)e)->seconds;
}

static const struct exec_ops fake_ops = {
	.open = fake_open,
	.close = fake_close,
	.ahead = fake_ahead,
	.begin = fake_begin,
	.fed = fake_fed,
	.end = fake_end,
	.profile = fake_profile,
	.node_seconds = fake_node_seconds,
};

static void calls_reach_the_executor(void **state)
{
	struct step_page page = { .step = 12 };
	const struct exec_call call = { .page = &page };
	struct exec_done done = { .losses = NULL };
	struct err err = ERR_INIT;
	const struct program p = { .name = "train-4" };
	struct exec *e;

	(void)state;
	assert_int_equal(fake_ops.open(&e, NULL, &err), 0);
	assert_int_equal(exec_ahead(e), EXEC_AHEAD_MAX);
	assert_int_equal(exec_run(e, &p, &call, &done, &err), 0);
	assert_true(done.times.comm_total == 100);
	assert_int_equal(exec_begin(e, &p, &call, &err), 0);
	assert_int_equal(exec_begin(e, &p, &call, &err), 0);
	assert_int_equal(exec_fed(e, &err), 0);
	assert_int_equal(exec_end(e, &done, &err), 0);
	assert_true(done.times.comm_total == 200);
	assert_int_equal(exec_end(e, &done, &err), 0);
	page.step = 13;
	assert_int_equal(exec_run(e, &p, &call, &done, &err), ERR_PEER);
	assert_int_equal(fake.runs, 3);
	exec_profile(e);
	assert_int_equal(fake.profiles, 1);
	assert_true(*exec_node_seconds(e, &p) == 3);
	exec_free(e);
	assert_true(fake.closed);
	exec_free(NULL);
}

/* ---- slots, on the executor of host backends ---- */

enum { VALUES = 50, MICROS = 6, STAGES = 3 };

/* A handmade program with memory: sums 3 x over all micro-batches, forward and backward, through another stream; at
 * the end twice that. */
struct sums {
	struct prepared prepared;
	struct program program;
	struct tensor *x, *twice;
	void *slab;
};

static struct node *node(struct graph *g, const struct op *op, struct tensor *a, struct tensor *b, struct tensor *out)
{
	struct tensor *in[] = { a, b };
	struct node *n = graph_node(
		g, &(struct node_spec){ .op = op, .in = in, .n_in = b ? 2 : 1, .out = &out, .n_out = 1 });

	assert_non_null(n);
	n->part = PART_BACKWARD;
	return n;
}

static struct tensor *values(struct graph *g, const char *name, enum tensor_kind kind, enum lifetime life)
{
	return graph_tensor(
		g, &(struct tensor){
			   .name = name, .kind = kind, .dtype = DTYPE_F64, .shape = SHAPE(VALUES), .life = life });
}

static void build(struct sums *t)
{
	struct graph *g = graph_new(true);
	struct tensor *sum = values(g, "sum", TENSOR_ACT, LIFE_ACROSS), *targets;
	struct node *forward, *moved, *n;

	t->x = values(g, "x", TENSOR_INPUT, LIFE_MICRO);
	targets = graph_tensor(g, &(struct tensor){ .name = "targets",
						    .kind = TENSOR_INPUT,
						    .dtype = DTYPE_F64,
						    .shape = SHAPE(1),
						    .life = LIFE_MICRO });
	forward = node(g, &op_add, t->x, t->x, NULL);
	forward->part = PART_FORWARD;
	moved = node(g, &op_allreduce, forward->out[0], NULL, NULL);
	moved->part = PART_FORWARD;
	moved->stream = STREAM_COMM;
	n = node(g, &op_add, moved->out[0], t->x, NULL);
	n = node(g, &op_allreduce, n->out[0], NULL, NULL);
	n->stream = STREAM_COPY_OUT;
	node(g, &op_accumulate, sum, n->out[0], sum);
	n = node(g, &op_add, sum, sum, NULL);
	n->part = PART_STEP;
	t->twice = n->out[0];
	t->twice->keep = true;
	t->program = (struct program){ .name = "sums", .graph = g, .inputs = t->x, .targets = targets };
}

static void prepare_sums(struct sums *t, enum pipeline kind, int stage, int micros)
{
	struct schedule_turn turn[2 * MICROS + 1];
	const struct schedule_order o = { .turn = turn, .n = schedule_turns(micros), .micros = micros };
	struct graph *g = t->program.graph;
	struct plan_program p = { "sums", g, &t->program.schedule };
	const struct kernel_env env = { .threads = 1 };
	struct err err = ERR_INIT;

	schedule_pipeline(turn, kind, STAGES, stage, micros);
	t->prepared = (struct prepared){ .opts.backend = &backend_ref, .program = { &t->program }, .n_programs = 1 };
	t->program.state = calloc((size_t)g->n_nodes, sizeof(void *));
	for (int i = 0; i < g->n_nodes; i++) {
		const struct kernel *k = backend_kernel(&backend_ref, g->nodes[i]);

		if (k->prepare)
			assert_int_equal(k->prepare(&env, g->nodes[i], &t->program.state[i], &err), 0);
	}
	assert_int_equal(schedule_make_turns(&t->program.schedule, g, &o, &err), 0);
	assert_int_equal(plan_make(&t->prepared.plan, &p, 1, &err), 0);
	t->slab = aligned_alloc(64, t->prepared.plan.slab_bytes[SPACE_PRIVATE]);
	memset(t->slab, 0xff, t->prepared.plan.slab_bytes[SPACE_PRIVATE]); /* NaN */
	t->prepared.slab[SPACE_PRIVATE] = t->slab;
}

static double value(int micro, int i)
{
	return 1000 * micro + i;
}

static int copies_left; /* before refuse_late fails */

static int refuse_late(void *module, void *to, const void *from, size_t bytes, struct err *err)
{
	return copies_left-- ? backend_ref.copy(module, to, from, bytes, err) : err_set(err, ERR_IO, "no more data");
}

static void sums_done(struct sums *t)
{
	for (int i = 0; i < t->program.graph->n_nodes; i++) {
		const struct kernel *k = backend_kernel(&backend_ref, t->program.graph->nodes[i]);

		if (k->release && t->program.state[i])
			k->release(t->program.state[i]);
	}
	free(t->program.state);
	free(t->slab);
	graph_free(t->program.graph);
}

static int run_fed(struct exec *e, struct sums *t, struct err *err)
{
	const struct step_page page = { .step = 1 };
	double inputs[MICROS * VALUES], targets[MICROS] = { 0 };
	struct exec_done done;

	for (int i = 0; i < MICROS * VALUES; i++)
		inputs[i] = value(i / VALUES, i % VALUES);
	return exec_run(e, &t->program,
			&(struct exec_call){ .page = &page, .inputs = inputs, .targets = targets }, &done, err);
}

static void run_sums(enum pipeline kind, int stage, int micros)
{
	struct sums t;
	const double *twice;
	struct err err = ERR_INIT;
	struct exec *e;

	build(&t);
	prepare_sums(&t, kind, stage, micros);
	assert_int_equal(exec_new(&e, &t.prepared, &err), 0);
	twice = prepared_address(&t.prepared, t.twice);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(run_fed(e, &t, &err), 0);
		for (int i = 0; i < VALUES; i++) {
			double sum = 0;

			for (int m = 0; m < micros; m++)
				sum += 3 * value(m, i);
			assert_true(twice[i] == 2 * sum);
		}
	}
	exec_free(e);
	sums_done(&t);
}

static void micro_batches_have_their_own_slots(void **state)
{
	(void)state;
	for (int stage = 0; stage < STAGES; stage++)
		for (int micros = 1; micros <= MICROS; micros++) {
			run_sums(PIPELINE_1F1B, stage, micros);
			run_sums(PIPELINE_GPIPE, stage, micros);
		}
}

static void a_feed_that_fails_ends_the_run(void **state)
{
	struct backend failing = backend_ref;
	struct sums t;
	struct err err = ERR_INIT;
	struct exec *e;

	(void)state;
	failing.copy = refuse_late;
	copies_left = 3; /* the second micro-batch's targets */
	build(&t);
	prepare_sums(&t, PIPELINE_GPIPE, 0, 4);
	t.prepared.opts.backend = &failing;
	assert_int_equal(exec_new(&e, &t.prepared, &err), 0);
	assert_int_equal(run_fed(e, &t, &err), ERR_IO);
	assert_non_null(strstr(err.text, "no more data"));
	assert_int_equal(run_fed(e, &t, &err), ERR_PEER);
	exec_free(e);
	sums_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_reach_the_executor),
		cmocka_unit_test(micro_batches_have_their_own_slots),
		cmocka_unit_test(a_feed_that_fails_ends_the_run),
	};

	return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
