/* SPDX-License-Identifier: Apache-2.0 */
/* document.c: reads JSON by jansson and YAML by libyaml. A YAML document becomes the JSON tree with that content. */
#include <config.h> /* the build's; the quoted one is this folder's */

#include "trainer/config/document.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"

static bool is_yaml_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcasecmp(dot, ".yaml") || !strcasecmp(dot, ".yml"));
}

static int read_json(json_t **ret, const char *path, const char *text, size_t n, struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);

	if (!root)
		return err_set(err, ERR_USAGE, "%.200s:%d: %s", path, where.line, where.text);
	*ret = root;
	return 0;
}

#ifdef HAVE_YAML
#include <yaml.h>

#define DEPTH_MAX 50

struct yaml_reader {
	yaml_parser_t parser;
	const char *path;
	int depth;
	struct err *err;
};

static int read_yaml_node(struct yaml_reader *r, const yaml_event_t *event, json_t **ret);

static int fail_yaml(struct yaml_reader *r, size_t line, const char *what)
{
	return err_set(r->err, ERR_USAGE, "%.200s:%zu: %s", r->path, line + 1, what);
}

static int next_yaml_event(struct yaml_reader *r, yaml_event_t *ret)
{
	if (yaml_parser_parse(&r->parser, ret))
		return 0;
	if (r->parser.error == YAML_MEMORY_ERROR)
		return err_nomem(r->err, r->path);
	return fail_yaml(r, r->parser.problem_mark.line, r->parser.problem ? r->parser.problem : "not valid YAML");
}

/* Returns true if the text is a number of the core schema without a leading zero. */
static bool is_plain_number(const char *text)
{
	const char *digits = text + (*text == '-' || *text == '+');

	return strspn(text, "+-.0123456789eE") == strlen(text) && strpbrk(digits, "0123456789") &&
	       (*digits != '0' || !digits[1] || strchr(".eE", digits[1]));
}

/* Makes the value of a scalar that has neither quotes nor a tag. */
static json_t *make_plain_value(const char *text)
{
	char *end;

	if (!*text || !strcmp(text, "~") || !strcasecmp(text, "null"))
		return json_null();
	if (!strcasecmp(text, "true") || !strcasecmp(text, "false"))
		return json_boolean(tolower((unsigned char)*text) == 't');
	if (is_plain_number(text)) {
		long long n;
		double v;

		errno = 0;
		n = strtoll(text, &end, 10);
		if (!*end && !errno)
			return json_integer(n);
		v = strtod(text, &end);
		if (!*end && isfinite(v))
			return json_real(v);
	}
	return json_string(text);
}

static int read_yaml_scalar(struct yaml_reader *r, const yaml_event_t *event, json_t **ret)
{
	const char *text = (const char *)event->data.scalar.value;

	if (strlen(text) != event->data.scalar.length)
		return fail_yaml(r, event->start_mark.line, "a zero byte in a string");
	if (event->data.scalar.tag && strcmp((const char *)event->data.scalar.tag, YAML_STR_TAG) != 0)
		return fail_yaml(r, event->start_mark.line, "tags are not supported: omit it");
	*ret = event->data.scalar.plain_implicit ? make_plain_value(text) : json_string(text);
	return *ret ? 0 : fail_yaml(r, event->start_mark.line, "not valid UTF-8");
}

static int read_yaml_list(struct yaml_reader *r, json_t **ret)
{
	yaml_event_t event;
	json_t *one;
	int rc = 0;

	*ret = json_array();
	while (!rc && !(rc = next_yaml_event(r, &event))) {
		const bool ends = event.type == YAML_SEQUENCE_END_EVENT;

		rc = ends ? 0 : read_yaml_node(r, &event, &one);
		yaml_event_delete(&event);
		if (ends)
			break;
		if (!rc && json_array_append_new(*ret, one))
			rc = err_nomem(r->err, r->path);
	}
	return rc;
}

/* Reads one key, whose event is given, and its value. */
static int read_yaml_member(struct yaml_reader *r, const yaml_event_t *key, json_t *object)
{
	yaml_event_t event;
	const char *name;
	json_t *value;
	char text[200];
	int rc;

	if (key->type != YAML_SCALAR_EVENT)
		return fail_yaml(r, key->start_mark.line, "a key must be a string");
	name = (const char *)key->data.scalar.value;
	if (json_object_get(object, name)) {
		snprintf(text, sizeof(text), "'%.100s' is given twice", name);
		return fail_yaml(r, key->start_mark.line, text);
	}
	rc = next_yaml_event(r, &event);
	if (rc)
		return rc;
	rc = read_yaml_node(r, &event, &value);
	yaml_event_delete(&event);
	return rc || !json_object_set_new(object, name, value) ? rc : err_nomem(r->err, r->path);
}

static int read_yaml_map(struct yaml_reader *r, json_t **ret)
{
	yaml_event_t event;
	bool ends = false;
	int rc = 0;

	*ret = json_object();
	while (!rc && !ends) {
		rc = next_yaml_event(r, &event);
		if (rc)
			break;
		ends = event.type == YAML_MAPPING_END_EVENT;
		rc = ends ? 0 : read_yaml_member(r, &event, *ret);
		yaml_event_delete(&event);
	}
	return rc;
}

/* Reads the node that begins with the event. On failure *ret is freed. */
static int read_yaml_node(struct yaml_reader *r, const yaml_event_t *event, json_t **ret)
{
	int rc;

	*ret = NULL;
	if (event->type == YAML_ALIAS_EVENT)
		return fail_yaml(r, event->start_mark.line, "aliases are not supported: repeat the value");
	if (event->type == YAML_SCALAR_EVENT)
		return read_yaml_scalar(r, event, ret);
	if (++r->depth > DEPTH_MAX)
		return fail_yaml(r, event->start_mark.line, "nested too deeply");
	rc = event->type == YAML_SEQUENCE_START_EVENT  ? read_yaml_list(r, ret)
	     : event->type == YAML_MAPPING_START_EVENT ? read_yaml_map(r, ret)
						       : fail_yaml(r, event->start_mark.line, "expected a value");
	r->depth--;
	if (rc) {
		json_decref(*ret);
		*ret = NULL;
	}
	return rc;
}

/* Reads the one document of the stream; an empty one is null. */
static int read_yaml_stream(struct yaml_reader *r, json_t **ret)
{
	yaml_event_t event;
	bool ends = false;
	int rc = 0;

	while (!rc && !ends && !(rc = next_yaml_event(r, &event))) {
		ends = event.type == YAML_STREAM_END_EVENT;
		if (event.type == YAML_DOCUMENT_START_EVENT && *ret)
			rc = fail_yaml(r, event.start_mark.line, "expected one document");
		else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT &&
			 event.type != YAML_DOCUMENT_END_EVENT && !ends)
			rc = read_yaml_node(r, &event, ret);
		yaml_event_delete(&event);
	}
	return rc;
}

static int read_yaml(json_t **ret, const char *path, const char *text, size_t n, struct err *err)
{
	struct yaml_reader r = { .path = path, .err = err };
	json_t *root = NULL;
	int rc;

	if (!yaml_parser_initialize(&r.parser))
		return err_nomem(err, path);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	rc = read_yaml_stream(&r, &root);
	yaml_parser_delete(&r.parser);
	if (rc) {
		json_decref(root);
		return rc;
	}
	*ret = root ? root : json_null();
	return 0;
}
#else
static int read_yaml(json_t **ret, const char *path, const char *text, size_t n, struct err *err)
{
	(void)ret, (void)text, (void)n;
	return err_set(err, ERR_USAGE,
		       "%.200s: dptrain was built without libyaml (Debian: libyaml-dev): use JSON, or build again",
		       path);
}
#endif

int document_read(json_t **ret, const char *path, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *from;
	struct buf text;
	int rc;

	buf_init(&text, DOCUMENT_BYTES_MAX);
	rc = file_load(&text, path, err);
	if (!rc) {
		from = text.len ? text.data : "";
		from += text.len >= 3 && !memcmp(from, mark, 3) ? 3 : 0;
		rc = (is_yaml_name(path) ? read_yaml : read_json)(
			ret, path, from, text.len ? (size_t)(text.data + text.len - from) : 0, err);
	}
	buf_done(&text);
	return rc;
}
