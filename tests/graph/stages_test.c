/* SPDX-License-Identifier: Apache-2.0 */
/* stages_test.c: how a model is divided into stages of a pipeline: compared with every possible division, and by hand.
 * Nodes read nothing that a later stage computes, and every node has a stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/graph/op.h"
#include "trainer/models/models.h"
#include "trainer/strategies/strategy_inside.h"

#define BLOCKS_MAX 64

static struct graph *build(const char *name)
{
	const struct model *m = model_find(name);
	const struct model_config c = m->defaults;
	struct graph *g = graph_new(false);
	struct err err = ERR_INIT;

	if (model_build(m, g, &c, 1, &err) != 0)
		fail_msg("%s", err.text);
	return g;
}

/* The work of each block; the parts before and after the blocks count for the first and the last. */
static int work_of_blocks(const struct graph *g, double *work)
{
	int blocks = 0, at = 1;

	memset(work, 0, sizeof(*work) * BLOCKS_MAX);
	for (int i = 0; i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];

		at = n->block > at ? n->block : at;
		blocks = at;
		work[at] += n->op->flops ? n->op->flops(n) : 0;
		for (int k = 0; k < n->n_in; k++)
			work[at] += n->in[k] ? 8.0 * (double)tensor_bytes(n->in[k]) : 0;
		for (int k = 0; k < n->n_out; k++)
			work[at] += n->out[k] ? 8.0 * (double)tensor_bytes(n->out[k]) : 0;
	}
	return blocks;
}

/* The minimum over all divisions of blocks [from, blocks] into stages of the work of the largest stage. */
static double best_cut(const double *work, int from, int blocks, int stages)
{
	double own = 0, best = -1;

	for (int end = from; end <= blocks - stages + 1; end++) {
		double rest, most;

		own += work[end];
		if (stages == 1 && end < blocks)
			continue;
		rest = stages > 1 ? best_cut(work, end + 1, blocks, stages - 1) : 0;
		most = own > rest ? own : rest;
		best = best < 0 || most < best ? most : best;
	}
	return best;
}

static void check_cut(const char *name, int stages)
{
	const struct strategy_opts o = { .stages = stages };
	double work[BLOCKS_MAX], most = 0;
	struct graph *g = build(name);
	int blocks = work_of_blocks(g, work);
	struct err err = ERR_INIT;
	struct stages s;

	if (stages_cut(&s, g, &o, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(s.first[0], 1);
	assert_int_equal(s.first[stages], blocks + 1);
	for (int i = 0; i < stages; i++) {
		double own = 0;

		assert_true(s.first[i] < s.first[i + 1]);
		for (int b = s.first[i]; b < s.first[i + 1]; b++)
			own += work[b];
		most = own > most ? own : most;
	}
	if (most > 1.0000001 * best_cut(work, 1, blocks, stages))
		fail_msg("%s in %d stages: the largest has %g, it could be %g", name, stages, most,
			 best_cut(work, 1, blocks, stages));
	graph_free(g);
}

static void test_balanced(void **state)
{
	(void)state;
	for (int stages = 1; stages <= 5; stages++) {
		check_cut("gpt2-124m", stages);
		check_cut("resnet50", stages);
	}
}

static void test_nodes(void **state)
{
	const struct strategy_opts o = { .stages = 3, .partition = "2,6,4" };
	struct graph *g = build("gpt2-124m");
	int stage[1000], last = 0;
	struct err err = ERR_INIT;
	struct stages s;

	(void)state;
	assert_int_equal(stages_cut(&s, g, &o, &err), 0);
	assert_true(g->n_nodes <= 1000);
	stages_of_nodes(stage, g, &s);
	for (int i = 0; i < g->n_nodes; i++) {
		int block = g->nodes[i]->block;

		if (block)
			assert_int_equal(stage[i], block <= 2 ? 0 : block <= 8 ? 1 : 2);
		assert_true(stage[i] >= last);
		last = stage[i];
	}
	assert_int_equal(stage[0], 0);
	assert_int_equal(last, 2);
	graph_free(g);
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "6,7", "12", "6,6,0", "6,0", "-1,13", "6,x", "6,6,", "", "6;6" };
	struct graph *g = build("gpt2-124m");
	struct stages s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct strategy_opts o = { .stages = 2, .partition = bad[i] };
		struct err err = ERR_INIT;

		if (stages_cut(&s, g, &o, &err) != ERR_USAGE)
			fail_msg("--pp-partition %s is accepted", bad[i]);
	}
	assert_int_equal(stages_cut(&s, g, &(struct strategy_opts){ .stages = 13 }, NULL), ERR_USAGE);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balanced),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}
