/* SPDX-License-Identifier: Apache-2.0 */
/* streams_test.c: the executor of devices on the fake device: work of several streams, as a graph and node by node, in
 * many orders; and a missing wait shows in some of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/ops/ops.h"
#include "trainer/run/exec/exec.h"

#define VALUES 64
#define RUNS 40 /* each in another order */

static const struct backend *cuda;

/* a = x + x; b = a + a on one stream in parallel with c = a + x on another; d = b + c. */
struct diamond {
	struct prepared prepared;
	struct program program;
	struct tensor *x, *d;
};

static struct tensor *sum(struct graph *g, struct tensor *a, struct tensor *b, enum stream stream)
{
	struct tensor *in[] = { a, b }, *out = NULL;
	const struct node_spec spec = { .op = &op_add, .in = in, .n_in = 2, .out = &out, .n_out = 1 };
	struct node *n = graph_node(g, &spec);

	assert_non_null(n);
	n->stream = stream;
	return n->out[0];
}

static void build(struct diamond *t)
{
	struct graph *g = graph_new(true);
	struct tensor *a, *b, *c;

	t->x = graph_tensor(g, &(struct tensor){ .name = "x",
						 .kind = TENSOR_INPUT,
						 .dtype = DTYPE_F64,
						 .shape = SHAPE(VALUES),
						 .life = LIFE_STEP });
	a = sum(g, t->x, t->x, STREAM_COMPUTE);
	b = sum(g, a, a, STREAM_COMM);
	c = sum(g, a, t->x, STREAM_GATHER);
	t->d = sum(g, b, c, STREAM_COMPUTE);
	t->d->keep = true;
	t->program = (struct program){ .name = "diamond", .graph = g };
}

/* without_waits: of the last item. */
static void prepare(struct diamond *t, bool node_by_node, bool without_waits)
{
	struct graph *g = t->program.graph;
	struct plan_program p = { "diamond", g, &t->program.schedule };
	const struct backend_opts o = { .threads = 1 };
	struct kernel_env env = { .threads = 1 };
	struct err err = ERR_INIT;

	t->prepared = (struct prepared){ .opts = { .backend = cuda, .node_by_node = node_by_node },
					 .program = { &t->program },
					 .n_programs = 1 };
	assert_int_equal(cuda->open(&o, &t->prepared.opts.module, &err), 0);
	env.module = t->prepared.opts.module;
	t->program.state = calloc((size_t)g->n_nodes, sizeof(void *));
	for (int i = 0; i < g->n_nodes; i++)
		assert_int_equal(cuda->kernel[OP_add]->prepare(&env, g->nodes[i], &t->program.state[i], &err), 0);
	assert_int_equal(schedule_make(&t->program.schedule, g, &err), 0);
	assert_int_equal(plan_make(&t->prepared.plan, &p, 1, &err), 0);
	if (without_waits)
		memset(t->program.schedule.items[t->program.schedule.n - 1].wait, 0,
		       sizeof(t->program.schedule.items[0].wait));
	assert_int_equal(prepare_memory(&t->prepared, &err), 0);
}

static void done(struct diamond *t)
{
	cuda->release(t->prepared.opts.module, SPACE_PRIVATE, t->prepared.slab[SPACE_PRIVATE],
		      t->prepared.slab_bytes[SPACE_PRIVATE]);
	cuda->close(t->prepared.opts.module);
	free(t->program.state);
	graph_free(t->program.graph);
}

/* Returns whether the result is 7 x. */
static bool run_once(struct diamond *t, struct exec *e, int round)
{
	double x[VALUES], d[VALUES], nothing[VALUES] = { 0 };
	const struct step_page page = { .step = round + 1 };
	struct err err = ERR_INIT;
	struct exec_done done;

	for (int i = 0; i < VALUES; i++)
		x[i] = 100 * round + i + 1;
	assert_int_equal(prepared_put(&t->prepared, t->d, nothing, sizeof(nothing), &err), 0);
	assert_int_equal(prepared_put(&t->prepared, t->x, x, sizeof(x), &err), 0);
	assert_int_equal(exec_run(e, &t->program, &(struct exec_call){ .page = &page }, &done, &err), 0);
	assert_int_equal(prepared_get(&t->prepared, t->d, d, sizeof(d), &err), 0);
	for (int i = 0; i < VALUES; i++)
		if (d[i] != 7 * x[i])
			return false;
	return true;
}

static int count_right(bool node_by_node, bool without_waits)
{
	struct diamond t;
	struct err err = ERR_INIT;
	struct exec *e;
	int right = 0;

	build(&t);
	prepare(&t, node_by_node, without_waits);
	assert_int_equal(exec_new(&e, &t.prepared, &err), 0);
	for (int round = 0; round < RUNS; round++)
		right += run_once(&t, e, round);
	exec_free(e);
	done(&t);
	return right;
}

static void streams_wait_for_each_other(void **state)
{
	(void)state;
	assert_int_equal(count_right(false, false), RUNS);
	assert_int_equal(count_right(true, false), RUNS);
}

static void missing_wait_is_detected(void **state)
{
	(void)state;
	assert_true(count_right(false, true) < RUNS);
	assert_true(count_right(true, true) < RUNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_wait_for_each_other),
		cmocka_unit_test(missing_wait_is_detected),
	};
	const char *build_folder = getenv("builddir");
	struct backend_choice choice = { 0 };
	struct err err = ERR_INIT;
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/fakes/cuda/.libs", build_folder ? build_folder : ".");
	setenv("DPTRAIN_BACKEND_PATH", path, 1);
	if (backend_load(&choice, "cuda", &err) != 0) {
		printf("the fake device was not built: %s\n", err.text);
		return 77;
	}
	cuda = choice.backend;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
