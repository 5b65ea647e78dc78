/* SPDX-License-Identifier: Apache-2.0 */
/* router.c: the route table, generated from routes.def; address decoding and the match against the table. Knows nothing
 * of HTTP's headers or of the store. */
#include "web/server/gate.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "web/api/api.h"

/* What each handler names: one without an entry does not compile. */
enum handler_names {
#define NAMES(handler, what) NAMES_of_##handler = NAMES_##what,
#define SHARED(handler, what, shown) NAMES(handler, what)
#include "schema/api/access.def"
#undef SHARED
#undef NAMES
};

/* What the session of a link may ask of it: without SHARED, nothing. */
enum handler_shared {
#define NAMES(handler, what) SHARED_of_##handler = SHARED_NEVER,
#define SHARED(handler, what, shown) SHARED_of_##handler = SHARED_##shown,
#include "schema/api/access.def"
#undef SHARED
#undef NAMES
};

/* Generated from schema/api/routes.def. */
static const struct route route_table[] = {
#define ROUTE(dialect, method, pattern, handler, scope, body_max)                                                      \
	{ DIALECT_##dialect,                                                                                           \
	  METHOD_##method,                                                                                             \
	  pattern,                                                                                                     \
	  on_##handler,                                                                                                \
	  #handler,                                                                                                    \
	  SCOPE_##scope,                                                                                               \
	  (enum call_names)NAMES_of_##handler,                                                                         \
	  (enum call_shared)SHARED_of_##handler,                                                                       \
	  body_max },
#include "schema/api/routes.def"
#undef ROUTE
};

enum { ROUTE_COUNT = sizeof(route_table) / sizeof(route_table[0]) };

enum { ROUTER_SEGMENTS_MAX = 64, ROUTER_SEGMENT_MAX = 1024 };

struct router_path {
	char *segment[ROUTER_SEGMENTS_MAX];
	size_t count;
};

/* Decodes n bytes into the arena; NULL when they are malformed. plus: "+" means a space. */
static char *decode_url_text(struct arena *arena, const char *text, size_t n, bool plus)
{
	char *out = arena_alloc(arena, n + 1);
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		int high, low;

		if (plus && text[i] == '+') {
			out[len++] = ' ';
			continue;
		}
		if (text[i] != '%') {
			out[len++] = text[i];
			continue;
		}
		high = i + 2 < n ? text_hex_digit(text[i + 1]) : -1;
		low = high >= 0 ? text_hex_digit(text[i + 2]) : -1;
		if (low < 0 || !(high * 16 + low))
			return NULL;
		out[len++] = (char)(high * 16 + low);
		i += 2;
	}
	return utf8_valid(out, strlen(out)) ? out : NULL;
}

/* A decoded segment may contain slashes. Its parts obey the same rules as the segments of a multi-segment rest. */
static bool is_segment_allowed(const char *s)
{
	for (;; s++) {
		size_t n = strcspn(s, "/"), i;

		if (!n || (n <= 2 && !strncmp(s, "..", n)))
			return false;
		for (i = 0; i < n; i++)
			if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
				return false;
		s += n;
		if (!*s)
			return true;
	}
}

/* Splits a path into decoded segments; the last one of /docs/ is empty. Returns false if a segment is malformed, empty,
 * a dot segment or too long. */
static bool split_url_path(struct router_path *p, struct arena *arena, const char *path, size_t n)
{
	size_t at = 1, end;

	p->count = 0;
	while (at < n) {
		for (end = at; end < n && path[end] != '/'; end++)
			;
		if (p->count == ROUTER_SEGMENTS_MAX || end - at > 3 * ROUTER_SEGMENT_MAX)
			return false;
		p->segment[p->count] = decode_url_text(arena, path + at, end - at, false);
		if (!p->segment[p->count] || !is_segment_allowed(p->segment[p->count]))
			return false;
		p->count++;
		at = end + 1;
		if (end < n && at == n && strncmp(path, "/docs/", n) != 0)
			return false; /* a trailing slash makes another address */
		if (end < n && at == n)
			p->segment[p->count++] = arena_strdup(arena, "");
	}
	return true;
}

static char *join_segments_from(struct arena *arena, const struct router_path *p, size_t from)
{
	char *rest = arena_strdup(arena, "");
	size_t i;

	for (i = from; i < p->count; i++)
		rest = arena_printf(arena, "%s%s%s", rest, i > from ? "/" : "", p->segment[i]);
	return rest;
}

/* Matches one pattern; fills the variables of the call on success. */
static bool match_route_pattern(struct call *c, const struct router_path *p, const char *pattern)
{
	size_t i, var = 0, len;

	for (i = 0;; i++) {
		pattern++; /* the slash */
		len = strcspn(pattern, "/");
		if (len == 1 && pattern[0] == '*') {
			c->address.rest = join_segments_from(c->arena, p, i);
			/* The rest is not empty, except that the page is at / and the documents at /docs/. */
			return *c->address.rest || !i || i < p->count;
		}
		if (i == p->count)
			return len == 0;
		if (pattern[0] == '{' && var < CALL_VARS_MAX)
			c->address.vars[var++] = p->segment[i];
		else if (strlen(p->segment[i]) != len || memcmp(p->segment[i], pattern, len))
			return false;
		pattern += len;
		if (!*pattern)
			return i + 1 == p->count;
	}
}

/* Fills the query arguments of the call. Returns NULL, or the reason of a failure. */
static const char *read_query_args(struct call *c, const char *query)
{
	static const char undecoded[] = "a query argument has a '%' that begins no escape, or is not UTF-8";
	const char *at = query, *end, *eq;
	size_t max = 1;

	for (end = query; *end; end++)
		max += *end == '&';
	if (max > CALL_ARGS_MAX)
		return "more than 2048 query arguments; use the POST form of the query";
	c->address.args = arena_array(c->arena, max, sizeof(*c->address.args));
	while (*at) {
		size_t n = strcspn(at, "&");

		end = at + n;
		eq = memchr(at, '=', n);
		if (n) {
			struct call_arg *a = &c->address.args[c->address.arg_count];

			a->name = decode_url_text(c->arena, at, (size_t)((eq ? eq : end) - at), true);
			a->value = eq ? decode_url_text(c->arena, eq + 1, (size_t)(end - eq - 1), true) : "";
			if (!a->name || !a->value)
				return undecoded;
			c->address.arg_count++;
		}
		at = *end ? end + 1 : end;
	}
	return NULL;
}

/* A line of spaces.def: the dialect of the addresses below a prefix, and the errors for those that are no routes. */
struct address_space {
	enum call_dialect dialect;
	const char *prefix;
	const char *missing, *undecoded; /* error messages */
};

static const struct address_space *find_address_space(const char *target)
{
	static const struct address_space spaces[] = {
#define SPACE(dialect, prefix, missing, undecoded) { DIALECT_##dialect, prefix, missing, undecoded },
#include "schema/api/spaces.def"
#undef SPACE
	};
	size_t i, last = sizeof(spaces) / sizeof(spaces[0]) - 1;

	for (i = 0; i < last && strncmp(target, spaces[i].prefix, strlen(spaces[i].prefix)); i++)
		;
	return &spaces[i];
}

/* The catch-all serves the files of the page; an unknown address of the API must not reach it. */
static bool is_catch_all_skipped(const struct router_match *m, const struct router_path *p, const struct route *r)
{
	if (strcmp(r->pattern, "/*"))
		return false;
	return m->methods || (p->count && (!strcmp(p->segment[0], "api") || !strcmp(p->segment[0], "ajax-api")));
}

/* MLflow's server accepts several slashes in front of its addresses, and its clients send them. */
static const char *trim_leading_slashes(const char *target)
{
	const char *one = target + strspn(target, "/") - 1;

	return *target == '/' && find_address_space(one)->dialect == DIALECT_MLFLOW ? one : target;
}

bool router_find(struct router_match *ret, struct call *c, enum call_method method, const char *target)
{
	size_t path_len, i;
	const struct address_space *space;
	struct router_path path;

	target = trim_leading_slashes(target);
	path_len = strcspn(target, "?");
	space = find_address_space(target);
	c->dialect = space->dialect;
	*ret = (struct router_match){ .code = CALL_bad_request, .why = space->undecoded };
	if (!split_url_path(&path, c->arena, target, path_len))
		return false;
	ret->why = target[path_len] == '?' ? read_query_args(c, target + path_len + 1) : NULL;
	if (ret->why)
		return false;
	for (i = 0; i < ROUTE_COUNT; i++) {
		const struct route *r = &route_table[i];

		if (is_catch_all_skipped(ret, &path, r) || !match_route_pattern(c, &path, r->pattern))
			continue;
		ret->methods |= 1u << r->method;
		c->dialect = r->dialect;
		if (r->method == method && !ret->route)
			ret->route = r;
	}
	if (ret->route) {
		c->dialect = ret->route->dialect;
		match_route_pattern(c, &path, ret->route->pattern);
		return true;
	}
	ret->code = ret->methods ? CALL_method_not_allowed : CALL_not_found;
	ret->why = ret->methods ? "this route does not support that method" : space->missing;
	return ret->methods != 0;
}

void router_allow(unsigned methods, char *text)
{
	int m;
	size_t n = 0;

	for (m = METHOD_GET; m <= METHOD_DELETE; m++) {
		if (!(methods & 1u << m))
			continue;
		n += (size_t)snprintf(text + n, 64 - n, "%s%s", n ? ", " : "", call_method_name((enum call_method)m));
		if (m == METHOD_GET)
			n += (size_t)snprintf(text + n, 64 - n, ", HEAD");
	}
	snprintf(text + n, 64 - n, "%sOPTIONS", n ? ", " : "");
}
