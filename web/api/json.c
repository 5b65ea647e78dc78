/* json.c: JSON writing and bounded JSON reading. Knows nothing of routes or the store. */
#include "web/api/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/double.h"

enum { JSON_DEPTH_MAX = 32, JSON_TOKENS_FLOOR = 65536 };

static void js_value(struct js *j)
{
	if (j->comma)
		buf_addc(j->out, ',');
	j->comma = true;
}

void js_open(struct js *j, char bracket)
{
	js_value(j);
	buf_addc(j->out, bracket);
	j->comma = false;
}

void js_close(struct js *j, char bracket)
{
	buf_addc(j->out, bracket);
	j->comma = true;
}

/* Length of the well-formed UTF-8 sequence at s (n bytes left), 0 when it is not one. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf && n > 1 && (s[1] & 0xc0) == 0x80)
		return 2;
	if (s[0] >= 0xe0 && s[0] <= 0xef && n > 2 && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80) {
		if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
			return 0;
		return 3;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4 && n > 3 && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 &&
	    (s[3] & 0xc0) == 0x80) {
		if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
			return 0;
		return 4;
	}
	return 0;
}

static void js_quote(struct buf *out, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0, len;

	buf_addc(out, '"');
	while (i < n) {
		len = utf8_length(s + i, n - i);
		if (!len) {
			buf_adds(out, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (s[i] == '"' || s[i] == '\\')
			buf_addf(out, "\\%c", s[i]);
		else if (s[i] == '\n')
			buf_adds(out, "\\n");
		else if (s[i] < 0x20 || s[i] == 0x7f)
			buf_addf(out, "\\u%04x", s[i]);
		else
			buf_add(out, s + i, len);
		i += len;
	}
	buf_addc(out, '"');
}

void js_key(struct js *j, const char *key)
{
	js_value(j);
	js_quote(j->out, key, strlen(key));
	buf_addc(j->out, ':');
	j->comma = false;
}

void js_strn(struct js *j, const char *text, size_t n)
{
	js_value(j);
	js_quote(j->out, text, n);
}

void js_str(struct js *j, const char *text)
{
	if (text)
		js_strn(j, text, strlen(text));
	else
		js_null(j);
}

void js_int(struct js *j, int64_t v)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRId64, v);

	js_value(j);
	buf_add(j->out, text, (size_t)n);
}

size_t json_print_double(char *text, double v)
{
	const char *word = NULL;

	if (isnan(v))
		word = "NaN";
	else if (isinf(v))
		word = v > 0 ? "Infinity" : "-Infinity";
	else if (v == 0)
		word = signbit(v) ? "-0.0" : "0";
	if (!word)
		return double_print(text, v);
	memcpy(text, word, strlen(word) + 1);
	return strlen(word);
}

void js_double(struct js *j, double v)
{
	char text[JSON_DOUBLE_MAX];
	size_t n = json_print_double(text, v);

	if (!isfinite(v)) {
		js_strn(j, text, n);
		return;
	}
	js_value(j);
	buf_add(j->out, text, n);
}

void js_bool(struct js *j, bool v)
{
	js_raw(j, v ? "true" : "false");
}

void js_null(struct js *j)
{
	js_raw(j, "null");
}

void js_raw(struct js *j, const char *json)
{
	js_value(j);
	buf_adds(j->out, json);
}

void js_key_str(struct js *j, const char *key, const char *text)
{
	js_key(j, key);
	js_str(j, text);
}

void js_key_int(struct js *j, const char *key, int64_t v)
{
	js_key(j, key);
	js_int(j, v);
}

void js_key_double(struct js *j, const char *key, double v)
{
	js_key(j, key);
	js_double(j, v);
}

const char *json_too_much(const char *text, size_t n)
{
	size_t i, tokens = 1, tokens_max = JSON_TOKENS_FLOOR + n / 8;
	int depth = 0;
	bool quoted = false;

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
			return "more values than a body of this size may hold";
	}
	return NULL;
}

static bool json_media_type(struct call *c)
{
	static const char want[] = "application/json";
	const char *type = c->host->header(c, "Content-Type");
	size_t n = sizeof(want) - 1;

	if (!type)
		return true;
	return !strncasecmp(type, want, n) && (!type[n] || type[n] == ';' || type[n] == ' ');
}

json_t *json_body(struct call *c)
{
	json_error_t jerr;
	const char *why;
	json_t *root;

	if (!json_media_type(c)) {
		call_fail(c, CALL_media_type, NULL, "this address takes JSON: send Content-Type: application/json");
		return NULL;
	}
	why = json_too_much(c->body, c->body_len);
	if (why) {
		call_fail(c, CALL_bad_json, NULL, "body: %s", why);
		return NULL;
	}
	root = json_loadb(c->body ? c->body : "", c->body_len, JSON_REJECT_DUPLICATES, &jerr);
	if (!root) {
		call_fail(c, CALL_bad_json, NULL, "body, line %d, column %d: %s", jerr.line, jerr.column, jerr.text);
		return NULL;
	}
	if (!json_is_object(root)) {
		json_decref(root);
		call_fail(c, CALL_bad_json, NULL, "body: want one JSON object");
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

/* The name of what was wanted when the value is of another kind, NULL when it was stored. */
static const char *json_store(const struct json_field *f, json_t *value)
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

static bool json_refuse(struct call *c, enum call_error code, const char *at, const char *key, const char *why)
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
		return json_refuse(c, CALL_bad_value, at, "", "want an object");
	json_object_foreach(object, key, value) {
		for (f = fields; f->name && strcmp(f->name, key); f++)
			;
		if (!f->name)
			return json_refuse(c, CALL_unknown_field, at, key, "no such field");
		want = json_store(f, value);
		if (want)
			return json_refuse(c, CALL_bad_value, at, key, arena_printf(c->arena, "want %s", want));
		if (f->given)
			*f->given = true;
	}
	for (f = fields; f->name; f++)
		if (f->required && !json_object_get(object, f->name))
			return json_refuse(c, CALL_bad_value, at, f->name, "missing");
	return true;
}
