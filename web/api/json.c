/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: a JSON reader with limits. Independent of routes or the store. */
#include "tracker/mem/mem.h"
#include "web/api/js.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { JSON_DEPTH_MAX = 32, JSON_TOKENS_FLOOR = 65536 };

const char *json_too_much(const char *text, size_t n)
{
	size_t i, tokens = 1, tokens_max = JSON_TOKENS_FLOOR + n / 8;
	int depth = 0;
	bool quoted = false;

	if (n > 1 && (!text[0] || !text[1] || (unsigned char)text[0] >= 0xfe))
		return "UTF-16 or UTF-32: encode the text as UTF-8";
	for (i = 0; i < n; i++) {
		char ch = text[i];

		if (quoted) {
			if (ch == '\\')
				i++;
			else if (ch == '"')
				quoted = false;
			continue;
		}
		if (ch == '"') {
			quoted = true;
		} else if (ch == '[' || ch == '{') {
			tokens++;
			if (++depth > JSON_DEPTH_MAX)
				return "nested deeper than 32 levels";
		} else if (ch == ']' || ch == '}') {
			depth--;
		} else if (ch == ',') {
			tokens++;
		}
		if (tokens > tokens_max)
			return "more values than a body of this size may contain";
	}
	return NULL;
}

static bool has_json_media_type(struct call *c)
{
	static const char want[] = "application/json";
	const char *type = c->host->header(c, "Content-Type");
	size_t n = sizeof(want) - 1;

	if (!type)
		return true;
	return !strncasecmp(type, want, n) && (!type[n] || type[n] == ';' || type[n] == ' ');
}

const char *json_error_reason(const json_error_t *e)
{
	const enum json_error_code code = json_error_code(e);

	if (code == json_error_null_character || code == json_error_null_byte_in_key)
		return "a string with a NUL character (\\u0000) is not accepted: remove the character";
	if (code == json_error_invalid_utf8)
		return "a string is not UTF-8: encode the text as UTF-8";
	if (strstr(e->text, "near 'NaN'") || strstr(e->text, "near 'Infinity'") || strstr(e->text, "near '-'"))
		return "non-finite numbers are the strings \"NaN\", \"Infinity\" and \"-Infinity\"";
	return e->text;
}

/* Returns the text with quotes around bare NaN and Infinity, for the caller to free; NULL: it has none. */
static char *quote_nonfinite_words(const char *text, size_t size)
{
	static const char *const words[] = { "NaN", "-Infinity", "Infinity" };
	char *out = mem_alloc(2 * size + 1), *to = out;
	const char *at = text, *end = at + size;
	bool inside = false, any = false;
	size_t i, n;

	for (; at < end; at += n) {
		for (i = 0, n = 0; !inside && !n && i < 3; i++)
			if (*at == words[i][0] && (size_t)(end - at) >= strlen(words[i]) &&
			    !memcmp(at, words[i], strlen(words[i])))
				n = strlen(words[i]);
		any |= n > 0;
		if (n) {
			*to++ = '"';
			to = mempcpy(to, at, n);
			*to++ = '"';
			continue;
		}
		inside ^= *at == '"';
		n = inside && *at == '\\' && end - at > 1 ? 2 : 1;
		to = mempcpy(to, at, n);
	}
	*to = '\0';
	if (any)
		return out;
	free(out);
	return NULL;
}

/* Returns the text without a byte order mark. */
static const char *skip_byte_order_mark(const char *text, size_t *size)
{
	bool mark = *size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);

	*size -= mark ? 3 : 0;
	return mark ? text + 3 : text;
}

json_t *json_lenient(const char *text, size_t n, size_t flags, json_error_t *e)
{
	const char *from = skip_byte_order_mark(text, &n);
	json_error_t none, *why = e ? e : &none;
	json_t *root = json_loadb(from, n, flags, why);
	char *quoted = NULL;

	if (!root && json_error_code(why) == json_error_invalid_syntax &&
	    (memmem(from, n, "NaN", 3) || memmem(from, n, "Infinity", 8)))
		quoted = quote_nonfinite_words(from, n);
	if (quoted)
		root = json_loads(quoted, flags, why);
	free(quoted);
	return root;
}

json_t *json_body(struct call *c)
{
	json_error_t jerr;
	size_t n = c->body_len;
	const char *why, *text = skip_byte_order_mark(c->body ? c->body : "", &n);
	json_t *root;

	if (!has_json_media_type(c)) {
		call_fail(c, CALL_media_type, NULL, "this route accepts JSON: send Content-Type: application/json");
		return NULL;
	}
	why = json_too_much(c->body, c->body_len);
	if (why) {
		call_fail(c, CALL_bad_json, NULL, "body: %s", why);
		return NULL;
	}
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &jerr);
	if (!root) {
		call_fail(c, CALL_bad_json, NULL, "body, line %d, column %d: %s", jerr.line, jerr.column,
			  json_error_reason(&jerr));
		return NULL;
	}
	if (!json_is_object(root)) {
		json_decref(root);
		call_fail(c, CALL_bad_json, NULL, "body: expected one JSON object");
		return NULL;
	}
	return root;
}

bool json_to_double(json_t *value, double *ret)
{
	const char *text;

	if (json_is_number(value)) {
		*ret = json_number_value(value);
		return true;
	}
	text = json_string_value(value);
	if (!text)
		return false;
	if (!strcmp(text, "NaN"))
		*ret = NAN;
	else if (!strcmp(text, "Infinity"))
		*ret = INFINITY;
	else if (!strcmp(text, "-Infinity"))
		*ret = -INFINITY;
	else
		return false;
	return true;
}

/* Stores the value by its kind. Returns NULL, or the name of the expected kind when it differs. */
static const char *store_json_value(const struct json_field *f, json_t *value)
{
	switch (f->kind) {
	case JSON_KIND_STRING:
		if (!json_is_string(value))
			return "a string";
		*(const char **)f->into = json_string_value(value);
		return NULL;
	case JSON_KIND_INT:
		if (!json_is_integer(value))
			return "an integer of at most 64 bits";
		*(int64_t *)f->into = json_integer_value(value);
		return NULL;
	case JSON_KIND_DOUBLE:
		return json_to_double(value, f->into) ? NULL : "a number, or \"NaN\", \"Infinity\" or \"-Infinity\"";
	case JSON_KIND_BOOL:
		if (!json_is_boolean(value))
			return "true or false";
		*(bool *)f->into = json_is_true(value);
		return NULL;
	case JSON_KIND_OBJECT:
		if (!json_is_object(value))
			return "an object";
		break;
	case JSON_KIND_ARRAY:
		if (!json_is_array(value))
			return "an array";
		break;
	case JSON_KIND_ANY:
		break;
	}
	*(json_t **)f->into = value;
	return NULL;
}

static bool refuse_json_field(struct call *c, enum call_error code, const char *at, const char *key, const char *why)
{
	const char *where = arena_printf(c->arena, "%s%s", at, key);

	call_fail(c, code, where, "%s: %s", where, why);
	return false;
}

bool json_read(struct call *c, json_t *object, const char *at, const struct json_field *fields)
{
	const struct json_field *f;
	const char *key, *want;
	json_t *value;

	if (!json_is_object(object))
		return refuse_json_field(c, CALL_bad_value, at, "", "expected an object");
	json_object_foreach(object, key, value) {
		for (f = fields; f->name && strcmp(f->name, key); f++)
			;
		if (!f->name)
			return refuse_json_field(c, CALL_unknown_field, at, key, "no such field");
		want = store_json_value(f, value);
		if (want)
			return refuse_json_field(c, CALL_bad_value, at, key,
						 arena_printf(c->arena, "expected %s", want));
		if (f->given)
			*f->given = true;
	}
	for (f = fields; f->name; f++)
		if (f->required && !json_object_get(object, f->name))
			return refuse_json_field(c, CALL_bad_value, at, f->name, "missing");
	return true;
}

static void drop_body(void *root)
{
	json_decref(root);
}

bool json_args(struct call *c, const struct json_field *fields)
{
	json_t *root = json_body(c);

	if (!root)
		return false;
	call_defer(c, drop_body, root);
	return call_args_done(c) && json_read(c, root, "", fields);
}
