/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: arguments that several routes of v1 share, and the error of a refused query. */
#include "web/api/native/native_inside.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/text.h"
#include "web/store/base/map.h"

#define PREFIXES_MAX 1000 /* each is looked up */

enum call_next request_refused(struct call *c, const struct err *err)
{
	if (err->code == ERR_USAGE && !strcmp(err->field, "filter"))
		return call_fail(c, CALL_bad_filter, err->field, "%s", err->text);
	if (err->code == ERR_NOENT)
		return call_fail(c, CALL_not_found, "experiment", "%s", err->text);
	return call_fail_err(c, NULL, err);
}

int64_t request_number(struct call *c, size_t var, const char *what)
{
	const char *text = c->address.vars[var];
	size_t n = strlen(text);

	if (n && n <= 18 && strspn(text, "0123456789") == n && *text != '0')
		return strtoll(text, NULL, 10);
	call_fail(c, CALL_not_found, NULL, "no %s %.40s", what, text);
	return 0;
}

const char *request_scalar(struct call *c, json_t *value)
{
	char text[JS_DOUBLE_MAX];

	switch (json_typeof(value)) {
	case JSON_STRING:
		return arena_strdup(c->arena, json_string_value(value));
	case JSON_INTEGER:
		return arena_printf(c->arena, "%lld", (long long)json_integer_value(value));
	case JSON_REAL:
		js_print_double(text, json_real_value(value));
		return arena_strdup(c->arena, text);
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	default:
		return NULL;
	}
}

bool request_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count)
{
	struct ingest_kv *kv;
	const char *key, *where;
	json_t *value;
	size_t n = 0;

	*ret = NULL;
	*ret_count = 0;
	if (!object)
		return true;
	kv = arena_array(c->arena, json_object_size(object) + 1, sizeof(*kv));
	json_object_foreach(object, key, value) {
		where = arena_printf(c->arena, "%s.%s", field, key);
		kv[n].key = arena_strdup(c->arena, key);
		kv[n].value = request_scalar(c, value);
		if (!kv[n].value)
			return call_fail(c, CALL_bad_value, where, "%s: expected a string, a number or a boolean",
					 where),
			       false;
		n++;
	}
	*ret = kv;
	*ret_count = n;
	return true;
}

bool request_rank(struct call *c, const char *text, int *rank)
{
	char *end;
	long v;

	if (!text)
		return true;
	if (!strcmp(text, "all")) {
		*rank = POINTS_ALL_RANKS;
		return true;
	}
	v = strtol(text, &end, 10);
	if (end == text || *end || v < -1 || v > INT32_MAX)
		return call_fail(c, CALL_bad_value, "rank", "rank: expected a rank, -1 (the run as a whole) or all"),
		       false;
	*rank = (int)v;
	return true;
}

bool request_segments(struct call *c, const char *text, bool *all)
{
	*all = text && !strcmp(text, "all");
	if (text && !*all && strcmp(text, "visible"))
		return call_fail(c, CALL_bad_value, "segments", "segments: expected visible or all"), false;
	return true;
}

bool request_run_ids(struct call *c, const char *field, const char *const **io_ids, size_t n)
{
	const char *const *given = *io_ids;
	const char **ids;
	size_t i, whole = 0;

	if (!n)
		return call_fail(c, CALL_bad_value, field, "%s: expected at least one run", field), false;
	while (whole < n && call_is_run_id(given[whole]))
		whole++;
	if (whole == n)
		return true;
	if (n > PREFIXES_MAX)
		return call_fail(c, CALL_bad_value, field, "%s: more than %d runs need whole ids of 32 hex digits",
				 field, PREFIXES_MAX), false;
	ids = arena_array(c->arena, n, sizeof(*ids));
	for (i = 0; i < n; i++)
		if (!text_is_hex(given[i], RUN_PREFIX_MIN, 32))
			return call_fail(c, CALL_bad_value, field,
					 "%s: expected 32 lower-case hex digits, or the first %d or more of them",
					 field, RUN_PREFIX_MIN), false;
		else if (!(ids[i] = call_whole_run_id(c, field, given[i])))
			return false;
	*io_ids = ids;
	return true;
}

bool request_name(struct call *c, const char *field, const char *name)
{
	if (!name || !strpbrk(name, "\r\n"))
		return true;
	call_fail(c, CALL_bad_value, field, "%s: contains a line break: remove it", field);
	return false;
}

void request_distinct(struct call *c, const char *const **io_texts, size_t *io_count)
{
	const char **kept = arena_array(c->arena, *io_count + 1, sizeof(*kept));
	struct map *seen = map_new(1);
	size_t n = 0, i;

	for (i = 0; i < *io_count; i++) {
		const char *text = (*io_texts)[i];

		if (map_get(seen, text, strlen(text)))
			continue;
		map_put(seen, text, strlen(text));
		kept[n++] = text;
	}
	*io_texts = kept;
	*io_count = n;
	map_free(seen);
}

const char *request_form_part(struct call *c, const char *form, const char *name)
{
	const char *at = form, *end;
	size_t len = strlen(name), n = 0;
	char *out;

	while (*at && (strncmp(at, name, len) || (at[len] && !strchr("=&", at[len])))) {
		at += strcspn(at, "&");
		at += *at == '&';
	}
	if (!*at)
		return NULL;
	at += len + (at[len] == '=');
	end = at + strcspn(at, "&");
	out = arena_alloc(c->arena, (size_t)(end - at) + 1);
	for (; at < end; at++) {
		if (*at == '%' && end - at > 2 && text_hex_digit(at[1]) >= 0 && text_hex_digit(at[2]) >= 0) {
			out[n++] = (char)(text_hex_digit(at[1]) * 16 + text_hex_digit(at[2]));
			at += 2;
		} else {
			out[n++] = *at == '+' ? ' ' : *at;
		}
	}
	return out;
}

const char *request_form_value(struct call *c, const char *name)
{
	const char *value = request_form_part(c, c->body, name);

	return value ? value : "";
}

struct grants request_grants(struct call *c)
{
	struct grants g = { 0 };

	if (c->client.grants)
		grants_parse(&g, c->arena, c->client.grants, NULL);
	return g;
}

const char *request_level(const struct call *c, const struct grants *g, const char *name)
{
	enum grant_level most = c->client.has > TOKEN_NONE ? (enum grant_level)c->client.has : GRANT_ADMIN,
			 level = most;

	if (c->client.grants)
		level = name ? grants_level(g, name) : grants_least(g);
	return grant_level_name(level < most ? level : most);
}
