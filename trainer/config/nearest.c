/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c: finds the name that a mistyped one most likely means. */
#include "trainer/config/config.h"

#include <string.h>

#define NAME_MAX_CHARS 63

static char fold_char(char c)
{
	return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int min_edits(int a, int b)
{
	return a < b ? a : b;
}

/* Returns the number of edits (insert, delete, change, swap of neighbours) from a to b. '-' and '_' are equal, and so
 * are upper and lower case. */
static int edit_distance(const char *a, const char *b)
{
	int rows[3][NAME_MAX_CHARS + 1];
	int *before = rows[0], *last = rows[1], *now = rows[2];
	int n = (int)strlen(b);

	for (int j = 0; j <= n; j++)
		last[j] = j;
	for (int i = 1; a[i - 1]; i++) {
		int *spare = before;

		now[0] = i;
		for (int j = 1; j <= n; j++) {
			int change = fold_char(a[i - 1]) != fold_char(b[j - 1]);

			now[j] = min_edits(min_edits(last[j], now[j - 1]) + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && fold_char(a[i - 1]) == fold_char(b[j - 2]) &&
			    fold_char(a[i - 2]) == fold_char(b[j - 1]))
				now[j] = min_edits(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[n];
}

static bool is_name_prefix(const char *typed, const char *name)
{
	while (*typed && fold_char(*typed) == fold_char(*name))
		typed++, name++;
	return !*typed;
}

const char *config_nearest(const char *typed, const char *const *names, size_t n_names)
{
	const char *best = NULL;
	size_t len = strlen(typed);
	int best_cost = 0;

	if (len > NAME_MAX_CHARS || len == 0)
		return NULL;
	for (size_t i = 0; i < n_names; i++) {
		int cost;

		if (strlen(names[i]) > NAME_MAX_CHARS)
			continue;
		cost = 2 * edit_distance(typed, names[i]);
		if (len >= 3 && is_name_prefix(typed, names[i]))
			cost = min_edits(cost, 3);
		if (cost <= 2 * (1 + (int)len / 4) && (!best || cost < best_cost)) {
			best = names[i];
			best_cost = cost;
		}
	}
	return best;
}
