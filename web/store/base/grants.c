/* SPDX-License-Identifier: Apache-2.0 */
/* grants.c: parses and judges grants. A token has few, so a look-up visits all. */
#include "web/store/base/grants.h"

#include <string.h>

#include "tracker/base/utf8.h"
#include "web/store/base/map.h"

static const char *const level_names[] = { "none", "read", "write", "admin" };

const char *grant_level_name(enum grant_level level)
{
	return level_names[level];
}

/* Reads the name in front of '='; *io_at moves to that. */
static int parse_grant_name(const char **io_at, struct arena *a, struct grant *g, struct err *err)
{
	const char *at = *io_at;
	char *name = arena_alloc(a, strlen(at) + 1);
	bool inside = false; /* a star is not at the end */

	for (; *at && *at != '=' && *at != ','; at++) {
		inside = inside || g->prefix;
		g->prefix = g->prefix || *at == '*';
		if (*at == '*')
			continue;
		at += *at == '\\' && at[1];
		name[g->len++] = *at;
	}
	name[g->len] = '\0';
	if (inside)
		return err_set(err, ERR_USAGE, "experiments: '%.100s': expected at most one star, at the end of a name",
			       *io_at);
	if (*at != '=' || !(g->len || g->prefix))
		return err_set(err, ERR_USAGE,
			       "experiments: '%.100s': expected NAME=LEVEL or PREFIX*=LEVEL, "
			       "separated by commas",
			       *io_at);
	g->name = name;
	*io_at = at;
	return 0;
}

/* Reads "=write+create"; *io_at moves to the end of the part. */
static int parse_grant_level(const char **io_at, struct grant *g, struct err *err)
{
	const char *word = *io_at + 1;
	size_t n = strcspn(word, ","), level = 0, len = strcspn(word, "+,");

	while (level <= GRANT_ADMIN && (strlen(level_names[level]) != len || memcmp(level_names[level], word, len)))
		level++;
	g->create = n != len;
	if (level > GRANT_ADMIN ||
	    (g->create && (n - len != strlen("+create") || memcmp(word + len, "+create", n - len))))
		return err_set(err, ERR_USAGE,
			       "experiments: '%.*s': expected none, read, write or admin, and +create "
			       "after a prefix",
			       n < 100 ? (int)n : 100, word);
	g->level = (enum grant_level)level;
	*io_at = word + n;
	if (g->create && (!g->prefix || g->level < GRANT_WRITE))
		return err_set(err, ERR_USAGE,
			       "experiments: '%.100s%s=%s+create': only a prefix with write or admin "
			       "has +create",
			       g->name, g->prefix ? "*" : "", level_names[g->level]);
	return 0;
}

static bool is_same_grant(const struct grant *x, const struct grant *y)
{
	return x->prefix == y->prefix && !strcmp(x->name, y->name);
}

int grants_parse(struct grants *ret, struct arena *a, const char *text, struct err *err)
{
	struct grant *items = NULL;
	const char *at = text;
	size_t n = 0, i;
	int rc = 0;

	if (strlen(text) >= GRANTS_TEXT_MAX || !utf8_valid(text, strlen(text)))
		return err_set(err, ERR_USAGE, "experiments: expected at most %d bytes of UTF-8", GRANTS_TEXT_MAX - 1);
	do {
		struct grant g = { 0 };

		rc = parse_grant_name(&at, a, &g, err);
		if (!rc)
			rc = parse_grant_level(&at, &g, err);
		for (i = 0; i < n && !rc; i++)
			if (is_same_grant(&items[i], &g))
				rc = err_set(err, ERR_USAGE, "experiments: '%.100s%s' is given twice", g.name,
					     g.prefix ? "*" : "");
		if (!rc)
			list_push(a, &items, &n, g);
	} while (!rc && *at++);
	if (!rc)
		*ret = (struct grants){ items, n };
	return rc;
}

/* The most specific grant that has the name; NULL: none. */
static const struct grant *find_grant(const struct grants *g, const char *experiment)
{
	const struct grant *best = NULL;
	size_t i;

	for (i = 0; i < g->count; i++) {
		const struct grant *x = &g->items[i];

		if (strncmp(experiment, x->name, x->len) || (!x->prefix && experiment[x->len]))
			continue;
		if (!best || !x->prefix || (best->prefix && x->len > best->len))
			best = x;
	}
	return best;
}

enum grant_level grants_level(const struct grants *g, const char *experiment)
{
	const struct grant *found = find_grant(g, experiment);

	return found ? found->level : GRANT_NONE;
}

bool grants_may_create(const struct grants *g, const char *experiment)
{
	const struct grant *found = find_grant(g, experiment);

	return found && found->create;
}

enum grant_level grants_least(const struct grants *g)
{
	enum grant_level least = grants_level(g, "");
	bool all = false;
	size_t i;

	for (i = 0; i < g->count; i++) {
		all = all || (g->items[i].prefix && !g->items[i].len);
		least = g->items[i].level < least ? g->items[i].level : least;
	}
	return all ? least : GRANT_NONE;
}
