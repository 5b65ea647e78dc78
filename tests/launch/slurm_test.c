/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_test.c: expands Slurm's lists, refuses damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(numbers), cmocka_unit_test(names),
					    cmocka_unit_test(damaged) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
