/* nearest.c: the name that somebody probably meant. */
#include <string.h>

#include "trainer/config/config.h"

#define NAME_MAX_CHARS 63

static char folded(char c)
{
	return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, change, swap of neighbours) from a to b; '-' and '_', upper and lower case are alike. */
static int distance(const char *a, const char *b)
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
			int change = folded(a[i - 1]) != folded(b[j - 1]);

			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
			    folded(a[i - 2]) == folded(b[j - 1]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[n];
}

static bool is_prefix(const char *typed, const char *name)
{
	while (*typed && folded(*typed) == folded(*name))
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
		cost = 2 * distance(typed, names[i]);
		if (len >= 3 && is_prefix(typed, names[i]))
			cost = least(cost, 3);
		if (cost <= 2 * (1 + (int)len / 4) && (!best || cost < best_cost)) {
			best = names[i];
			best_cost = cost;
		}
	}
	return best;
}
