/* SPDX-License-Identifier: Apache-2.0 */
/* Grants against brute force: every name of up to four letters, judged by thousands of random grants, as a table that
 * is searched from the whole name down to the empty prefix; and texts that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "web/store/base/grants.h"

enum { LETTERS = 3, LONGEST = 4, ROUNDS = 4000 };

/* The n-th text of up to LONGEST letters, the empty one first; false: there are no more. */
static bool nth_name(int n, char *ret)
{
	int len = 0, count = 1;

	while (n >= count) {
		n -= count;
		count *= LETTERS;
		if (++len > LONGEST)
			return false;
	}
	ret[len] = '\0';
	while (len--) {
		ret[len] = (char)('a' + n % LETTERS);
		n /= LETTERS;
	}
	return true;
}

/* What was granted, by text: "abc" a name, "abc*" a prefix. */
struct granted {
	char what[LONGEST + 2];
	int level;
	bool create;
};

static const struct granted *find_granted(const struct granted *all, int n, const char *what)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(all[i].what, what))
			return &all[i];
	return NULL;
}

/* The name itself, then its prefixes from the longest. */
static const struct granted *judge(const struct granted *all, int n, const char *name)
{
	const struct granted *found = find_granted(all, n, name);
	char what[LONGEST + 2];

	for (int len = (int)strlen(name); !found && len >= 0; len--) {
		snprintf(what, sizeof(what), "%.*s*", len, name);
		found = find_granted(all, n, what);
	}
	return found;
}

static int make_grants(struct granted *all, char *text, size_t room)
{
	int wanted = 1 + rand() % 8, n = 0, used = 0;
	char name[LONGEST + 1];

	while (n < wanted) {
		struct granted *g = &all[n];

		nth_name(rand() % 121, name);
		snprintf(g->what, sizeof(g->what), "%s%s", name, rand() % 2 || !*name ? "*" : "");
		if (find_granted(all, n, g->what))
			continue;
		g->level = rand() % 4;
		g->create = strchr(g->what, '*') && g->level >= GRANT_WRITE && rand() % 2;
		used += snprintf(text + used, room - (size_t)used, "%s%s=%s%s", n ? "," : "", g->what,
				 grant_level_name((enum grant_level)g->level), g->create ? "+create" : "");
		n++;
	}
	return n;
}

static void the_most_specific_grant_decides(void **unused)
{
	struct err err = ERR_INIT;

	(void)unused;
	srand(73);
	for (int round = 0; round < ROUNDS; round++) {
		struct granted all[8];
		struct arena *a = arena_new();
		char text[256], name[LONGEST + 1];
		int n = make_grants(all, text, sizeof(text)), least = GRANT_ADMIN;
		struct grants g;

		assert_int_equal(grants_parse(&g, a, text, &err), 0);
		for (int i = 0; nth_name(i, name); i++) {
			const struct granted *want = judge(all, n, name);

			assert_int_equal(grants_level(&g, name), want ? want->level : GRANT_NONE);
			assert_int_equal(grants_may_create(&g, name), want && want->create);
			least = !want ? GRANT_NONE : want->level < least ? want->level : least;
		}
		/* a grant can be hidden by more specific ones for all names, so the least may be lower than what was
		 * met */
		assert_true((int)grants_least(&g) <= least);
		if (find_granted(all, n, "*") && n == 1)
			assert_int_equal(grants_least(&g), all[0].level);
		arena_free(a);
	}
}

static void a_backslash_keeps_the_next_character(void **unused)
{
	struct arena *a = arena_new();
	struct err err = ERR_INIT;
	struct grants g;

	(void)unused;
	assert_int_equal(grants_parse(&g, a, "a\\,b=read,c\\==write,d\\*=admin,e\\\\*=read,\xc3\xa4 x=read", &err), 0);
	assert_int_equal(g.count, 5);
	assert_int_equal(grants_level(&g, "a,b"), GRANT_READ);
	assert_int_equal(grants_level(&g, "c="), GRANT_WRITE);
	assert_int_equal(grants_level(&g, "d*"), GRANT_ADMIN);
	assert_int_equal(grants_level(&g, "dx"), GRANT_NONE);
	assert_int_equal(grants_level(&g, "e\\x"), GRANT_READ);
	assert_int_equal(grants_level(&g, "\xc3\xa4 x"), GRANT_READ);
	arena_free(a);
}

static void bad_texts_are_refused_in_one_line(void **unused)
{
	static const char *const bad[] = { "",
					   ",",
					   "a",
					   "a=",
					   "=read",
					   "a=reed",
					   "a=read,",
					   "a**=read",
					   "a*b=read",
					   "*a=read",
					   "a*b*=read",
					   "a=read,a=write",
					   "a*=read,a*=none",
					   "a=write+create",
					   "a*=read+create",
					   "a*=none+create",
					   "a*=write+creat",
					   "a*=write+create+create",
					   "a*=write+",
					   "a=Read",
					   "a=read b=write",
					   "a=read;b=read",
					   "\xff=read",
					   "a=read=write" };
	char *large = malloc(GRANTS_TEXT_MAX + 10);
	struct arena *a = arena_new();
	struct grants g;

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = ERR_INIT;

		assert_int_equal(grants_parse(&g, a, bad[i], &err), ERR_USAGE);
		assert_true(!strncmp(err.text, "experiments: ", 13) && !strchr(err.text, '\n'));
	}
	memset(large, 'a', GRANTS_TEXT_MAX);
	memcpy(large + GRANTS_TEXT_MAX, "=read", 6);
	assert_int_equal(grants_parse(&g, a, large, NULL), ERR_USAGE);
	assert_int_equal(grants_parse(&g, a, large + 6, NULL), 0);
	free(large);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_specific_grant_decides),
		cmocka_unit_test(a_backslash_keeps_the_next_character),
		cmocka_unit_test(bad_texts_are_refused_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
