/* SPDX-License-Identifier: Apache-2.0 */
/* dump_test.c: the text of graphs and plans compared with committed files. After a change that is meant to alter them,
 *     UPDATE_GOLDEN=1 make check TESTS=tests/graph/dump_test
 * rewrites them; read the difference before committing it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/net.h"

#define PROGRAMS 3
#define TEXT_MAX ((size_t)8 << 20)

static void golden_path(char *path, size_t n, const char *model)
{
	snprintf(path, n, "%s/tests/graph/golden/%s.txt", getenv("srcdir") ? getenv("srcdir") : ".", model);
}

static void write_file(const char *path, const struct buf *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text->data, 1, text->len, f), text->len);
	assert_int_equal(fclose(f), 0);
}

/* Fails with the number and both versions of the first line that differs. */
static void compare_file(const char *path, const char *text)
{
	char line[4096];
	FILE *f = fopen(path, "r");
	int number = 1;

	if (!f)
		fail_msg("%s is missing: run with UPDATE_GOLDEN=1", path);
	for (; fgets(line, sizeof(line), f); number++) {
		size_t n = strlen(line);

		if (strncmp(line, text, n) != 0)
			fail_msg("%s:%d: committed:\n%snow:\n%.*s", path, number, line, (int)(strcspn(text, "\n") + 1),
				 text);
		text += n;
	}
	fclose(f);
	if (*text)
		fail_msg("%s:%d: more lines now:\n%.*s", path, number, (int)strcspn(text, "\n"), text);
}

/* Compares the programs of one model, planned together, with the file of that name. */
static void check_all(const char *name, const struct net_opts *o, int n)
{
	struct plan_program programs[PROGRAMS];
	struct net nets[PROGRAMS];
	struct plan plan;
	struct buf text;
	char path[512];

	for (int i = 0; i < n; i++) {
		net_make(&nets[i], &o[i]);
		programs[i] = nets[i].program;
	}
	assert_int_equal(plan_make(&plan, programs, n, NULL), 0);
	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < n; i++)
		graph_dump(nets[i].g, &text);
	plan_dump(&plan, programs, n, &text);
	assert_false(buf_failed(&text));
	golden_path(path, sizeof(path), name);
	if (getenv("UPDATE_GOLDEN"))
		write_file(path, &text);
	else
		compare_file(path, text.data);
	buf_done(&text);
	for (int i = 0; i < n; i++)
		net_free(&nets[i]);
}

static void check_as(const char *name, const struct net_opts *o)
{
	struct net_opts all[] = { *o, *o };

	all[1].training = false;
	check_all(name, all, 2);
}

static void check(const struct net_opts *o)
{
	check_as(o->model, o);
}

/* Two ranks, several micro-batches per step, activations recomputed. */
static void test_shared(void **state)
{
	struct net_opts all[PROGRAMS];

	(void)state;
	for (int i = 0; i < PROGRAMS; i++)
		all[i] = (struct net_opts){ .model = "resnet20",
					    .batch = 8,
					    .training = i < 2,
					    .precision = { DTYPE_BF16, DTYPE_F32, NULL },
					    .recompute = RECOMPUTE_FULL,
					    .strategy = strategies_table[STRATEGY_ddp],
					    .world = 2,
					    .accumulate = true,
					    .more_follow = i == 1 };
	check_all("resnet20-shared", all, PROGRAMS);
}

static void test_resnet20(void **state)
{
	struct net_opts o = {
		.model = "resnet20", .batch = 128, .image = 28, .training = true,
		.precision = { DTYPE_F32, DTYPE_F32, NULL }
	};

	(void)state;
	check(&o);
}

static void test_resnet18(void **state)
{
	struct net_opts o = {
		.model = "resnet18", .batch = 16, .training = true, .precision = { DTYPE_BF16, DTYPE_F32, NULL }
	};

	(void)state;
	check(&o);
}

static void test_resnet50(void **state)
{
	struct net_opts o = {
		.model = "resnet50", .batch = 16, .training = true, .precision = { DTYPE_F32, DTYPE_F32, NULL }
	};

	(void)state;
	check(&o);
}

static void test_gpt(void **state)
{
	struct net_opts o = { .model = "gpt2-124m",
			      .small = true,
			      .batch = 3,
			      .training = true,
			      .precision = { DTYPE_BF16, DTYPE_F32, NULL } };

	(void)state;
	check_as("gpt-small", &o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resnet20),
		cmocka_unit_test(test_resnet18),
		cmocka_unit_test(test_resnet50),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_gpt),
	};

	return cmocka_run_group_tests_name("dump", tests, NULL, NULL);
}
