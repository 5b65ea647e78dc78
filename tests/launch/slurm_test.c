/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_test.c: expands Slurm's lists, refuses damaged ones. The innermost of nested launchers counts
 * (Lightning-AI/pytorch-lightning#18618, pytorch/pytorch#137402). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/launch/rank_env.h"

static void numbers(void **state)
{
	static const int expect[] = { 4, 4, 3, 1, 1, 1, -1 };

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_int_equal(slurm_number("4(x2),3,1(x3)", i), expect[i]);
	assert_int_equal(slurm_number("", 0), -1);
	assert_int_equal(slurm_number("4(y2)", 1), -1);
	assert_int_equal(slurm_number("4(x2", 1), -1);
	assert_int_equal(slurm_number("x", 0), -1);
	assert_int_equal(slurm_number("4(x0)", 0), -1);
}

static void names(void **state)
{
	static const char *const expect[] = { "gpu01", "gpu02", "gpu03", "gpu7", "login", "r1n08", "r1n09", "r1n10",
					      "r2n08", "r2n09", "r2n10", "a9-ib", "a10-ib" };
	const int n = (int)(sizeof(expect) / sizeof(expect[0]));
	char name[64];

	(void)state;
	for (int i = 0; i < n; i++) {
		assert_true(slurm_name("gpu[01-03,7],login,r[1-2]n[08-10],a[9-10]-ib", i, name, sizeof(name)));
		assert_string_equal(name, expect[i]);
	}
	assert_false(slurm_name("gpu[01-03,7],login,r[1-2]n[08-10],a[9-10]-ib", n, name, sizeof(name)));
}

static void damaged(void **state)
{
	static const char *const lists[] = { "", "a[", "a[]", "a[1-", "a[1-]", "a[3-1]", "a[x]", "a[1,]",
					     "a[99999999999]" };
	char name[64], text[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_false(slurm_name(lists[i], i == 7, name, sizeof(name)));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(slurm_name(text, 0, name, sizeof(name)));
	assert_false(slurm_name("abcdef", 0, name, 6));
}

/* Task 1 of two of a step of Slurm, one on each machine, and what it started. */
static void nested(void **state)
{
#define TASK "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_NTASKS=2 " \
	     "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_STEP_NODELIST=n[1-2] "
#define TORCH(rank, world, local, locals) \
	"RANK=" rank " WORLD_SIZE=" world " LOCAL_RANK=" local " LOCAL_WORLD_SIZE=" locals " "
	static const struct {
		const char *variables, *source;
		int rank, world, nodes, group, code;
	} cases[] = {
		{ TASK, "Slurm", 1, 2, 2, -1, 0 },
		{ TASK TORCH("3", "4", "1", "2") "GROUP_RANK=1 MASTER_ADDR=n1", "torchrun", 3, 4, 2, 1, 0 },
		{ TASK TORCH("0", "1", "0", "1") "TORCHELASTIC_RUN_ID=x", "alone", 0, 1, 1, -1, 0 },
		{ TASK "RANK=0 WORLD_SIZE=1", "Slurm", 1, 2, 2, -1, 0 },
		{ TASK "RANK=3 WORLD_SIZE=4", "", 0, 0, 0, 0, ERR_USAGE },
		{ TASK "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
		       "OMPI_COMM_WORLD_LOCAL_SIZE=4", "Open MPI", 5, 8, 2, -1, 0 },
		{ TASK "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", "PMI", 5, 8, 2, -1, 0 },
		{ TASK "PMI_RANK=1 PMI_SIZE=2 " TORCH("3", "4", "1", "2"), "torchrun", 3, 4, 2, -1, 0 },
		{ TORCH("1", "2", "1", "2") "GROUP_RANK=0", "torchrun", 1, 2, 1, -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rank_env p = { .rank = -1 };
		struct err err = ERR_INIT;
		char text[600], *at = text, *word;
		int rc;

		clearenv();
		snprintf(text, sizeof(text), "%s", cases[i].variables);
		while ((word = strsep(&at, " ")))
			if (*word)
				assert_int_equal(putenv(word), 0);
		rc = rank_env_find(&p, &err);
		assert_int_equal(rc, cases[i].code);
		if (rc)
			continue;
		assert_string_equal(p.source, cases[i].source);
		assert_int_equal(p.rank, cases[i].rank);
		assert_int_equal(p.world, cases[i].world);
		assert_int_equal(p.nodes, cases[i].nodes);
		assert_int_equal(p.group, cases[i].group);
	}
	clearenv();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(numbers), cmocka_unit_test(names),
					    cmocka_unit_test(damaged), cmocka_unit_test(nested) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
