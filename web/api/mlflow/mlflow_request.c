/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_request.c: what MLflow's routes share: requests parsed as protobuf's JSON parser does (numbers may be strings,
 * names have two spellings, unknown members are ignored), error replies, submission of changes. Knows no route. */
#include "web/api/mlflow/mlflow_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- error replies, submission of changes ----------------------------------------------------------------------- */

static const struct {
	const char *name;
	int status;
} ml_codes[] = {
#define ML_ERROR(name, status) { #name, status },
#include "schema/api/mlflow_errors.def"
#undef ML_ERROR
};

enum call_next ml_fail(struct call *c, enum ml_code code, const char *fmt, ...)
{
	struct js j = { .out = &c->out };
	const char *text;
	struct buf b;
	va_list ap;

	buf_init(&b, 1 << 20);
	va_start(ap, fmt);
	buf_addvf(&b, fmt, ap);
	va_end(ap);
	text = b.data ? arena_strdup(c->arena, b.data) : "";
	buf_done(&b);
	c->status = ml_codes[code].status;
	c->type = "application/json";
	buf_reset(&c->out);
	js_open(&j, '{');
	js_key_str(&j, "error_code", ml_codes[code].name);
	js_key_str(&j, "message", text);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next ml_fail_err(struct call *c, const struct err *err)
{
	static const struct {
		int err;
		enum ml_code code;
	} map[] = {
		{ ERR_USAGE, ML_INVALID_PARAMETER_VALUE },  { ERR_LIMIT, ML_INVALID_PARAMETER_VALUE },
		{ ERR_NOENT, ML_RESOURCE_DOES_NOT_EXIST },  { ERR_GONE, ML_RESOURCE_DOES_NOT_EXIST },
		{ ERR_EXISTS, ML_RESOURCE_ALREADY_EXISTS }, { ERR_UNSUPPORTED, ML_INVALID_STATE },
		{ ERR_NOSPC, ML_TEMPORARILY_UNAVAILABLE },  { ERR_NOMEM, ML_TEMPORARILY_UNAVAILABLE },
		{ ERR_BUSY, ML_TEMPORARILY_UNAVAILABLE },   { ERR_CANCELED, ML_TEMPORARILY_UNAVAILABLE },
		{ ERR_IO, ML_TEMPORARILY_UNAVAILABLE },	    { ERR_DENIED, ML_PERMISSION_DENIED },
	};
	enum ml_code code = ML_INTERNAL_ERROR;
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].err == err->code)
			code = map[i].code;
	if (code == ML_TEMPORARILY_UNAVAILABLE)
		c->reply.retry_after_s = err->code == ERR_NOSPC || err->code == ERR_IO ? 10 : 1;
	return ml_fail(c, code, "%s", err->text);
}

enum call_next ml_submit(struct call *c, const struct mlflow_op *op,
			 enum call_next (*then)(struct call *c, const struct ingest_result *res))
{
	const struct ingest_op change = mlflow_op(op);

	return api_submit(c, &(struct api_change){ .op = &change, .fail = ml_fail_err, .then = then });
}

enum call_next ml_submit_registry(struct call *c, const struct registry_op *op,
				  enum call_next (*then)(struct call *c, const struct ingest_result *res))
{
	const struct ingest_op change = registry_op(op);

	return api_submit(c, &(struct api_change){ .op = &change, .fail = ml_fail_err, .then = then });
}

enum call_next ml_empty(struct call *c, const struct ingest_result *res)
{
	(void)res;
	buf_adds(&c->out, "{}");
	return CALL_DONE;
}

/* --- the request as an object ------------------------------------------------------------------------------ */

static void free_json(void *arg)
{
	json_decref(arg);
}

static json_t *defer_json_free(struct call *c, json_t *value)
{
	if (value)
		call_defer(c, free_json, value);
	else
		ml_fail(c, ML_TEMPORARILY_UNAVAILABLE, "out of memory");
	return value;
}

static json_t *build_request_from_args(struct call *c)
{
	json_t *root = json_object(), *have;
	size_t i;

	for (i = 0; root && i < c->address.arg_count; i++) {
		json_t *value = json_string(c->address.args[i].value);

		have = json_object_get(root, c->address.args[i].name);
		if (!have)
			json_object_set_new(root, c->address.args[i].name, value);
		else if (json_is_array(have))
			json_array_append_new(have, value);
		else
			json_object_set_new(root, c->address.args[i].name, json_pack("[O, o]", have, value));
	}
	return defer_json_free(c, root);
}

static bool check_ml_media_type(struct call *c)
{
	const char *type = c->host->header(c, "Content-Type");

	if (c->route->method != METHOD_POST && c->route->method != METHOD_PUT)
		return true;
	if (!type) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Bad Request. Content-Type header is missing.");
		return false;
	}
	if (!strncasecmp(type, "application/json", 16) && (!type[16] || type[16] == ';' || type[16] == ' '))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Bad Request. Content-Type must be one of ['application/json'].");
	return false;
}

/* Returns true for valid JSON that contains a value which this program cannot store. */
static bool is_unstorable_json(const json_error_t *problem)
{
	enum json_error_code code = json_error_code(problem);

	return code == json_error_numeric_overflow || code == json_error_null_character ||
	       code == json_error_null_byte_in_key || code == json_error_invalid_utf8;
}

/* Parses the body. A body that is not JSON counts as empty. Very old clients send the JSON inside a JSON string. */
static json_t *parse_ml_body(struct call *c)
{
	const char *why = json_too_much(c->body, c->body_len);
	json_error_t problem = { 0 };
	json_t *root, *inner;

	if (why)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "the request body: %s", why), NULL;
	root = json_lenient(c->body, c->body_len, JSON_DECODE_ANY, &problem);
	if (!root && is_unstorable_json(&problem))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid value in the request body: %s",
			       json_error_reason(&problem)), NULL;
	if (json_is_string(root)) {
		inner = json_loads(json_string_value(root), JSON_DECODE_ANY, NULL);
		json_decref(root);
		root = inner;
	}
	if (!root || json_is_null(root)) {
		json_decref(root);
		root = json_object();
	}
	if (root && !json_is_object(root)) {
		json_decref(root);
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "the request body must be a JSON object"), NULL;
	}
	return defer_json_free(c, root);
}

json_t *ml_request(struct call *c)
{
	if (c->route->method == METHOD_GET && (c->address.arg_count || !c->body_len))
		return build_request_from_args(c);
	return check_ml_media_type(c) ? parse_ml_body(c) : NULL;
}

/* --- members ------------------------------------------------------------------------------------------------ */

static const char *python_type_name(json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "dict", [JSON_ARRAY] = "list", [JSON_STRING] = "str", [JSON_INTEGER] = "int",
		[JSON_REAL] = "float",	[JSON_TRUE] = "bool",  [JSON_FALSE] = "bool", [JSON_NULL] = "NoneType",
	};

	return value ? names[json_typeof(value)] : "NoneType";
}

bool ml_fail_value(struct call *c, const char *path, json_t *value, const char *hint)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);

	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid value %s for parameter '%s' supplied%s%s", text ? text : "?",
		path, *hint ? ": " : ".", hint);
	free(text);
	return false;
}

/* Converts an integer, a real without a fraction, or a string of either. */
static bool convert_to_int(json_t *value, int64_t *ret)
{
	const char *text = json_string_value(value);
	char *end;
	double v;

	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return true;
	}
	if (json_is_real(value)) {
		v = json_real_value(value);
		if (v != floor(v) || fabs(v) >= 0x1p63)
			return false;
		*ret = (int64_t)v;
		return true;
	}
	if (!text || !*text || isspace((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (!errno && !*end)
		return true;
	v = strtod(text, &end);
	if (*end || v != floor(v) || !(fabs(v) < 0x1p63))
		return false;
	*ret = (int64_t)v;
	return true;
}

static bool convert_to_double(json_t *value, double *ret)
{
	const char *text = json_string_value(value);
	char *end;

	if (json_is_boolean(value)) {
		*ret = json_is_true(value);
		return true;
	}
	if (json_to_double(value, ret))
		return true;
	if (!text || !*text || isspace((unsigned char)*text) || strpbrk(text, "xXnN"))
		return false;
	*ret = strtod(text, &end);
	return !*end;
}

static bool convert_to_bool(json_t *value, bool *ret)
{
	const char *text = json_string_value(value);

	if (text && strcasecmp(text, "true") && strcasecmp(text, "false"))
		return false;
	*ret = text ? !strcasecmp(text, "true") : json_is_true(value);
	return text || json_is_boolean(value);
}

static bool convert_to_strings(struct call *c, json_t *value, struct ml_strings *ret)
{
	size_t n = json_is_array(value) ? json_array_size(value) : 1, i;
	const char **items = arena_array(c->arena, n + 1, sizeof(*items));

	for (i = 0; i < n; i++) {
		items[i] = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
		if (!items[i])
			return false;
	}
	*ret = (struct ml_strings){ items, n };
	return json_is_array(value) || c->route->method == METHOD_GET;
}

static bool convert_ml_field(struct call *c, const struct ml_field *f, json_t *value)
{
	switch (f->kind) {
	case ML_STRING:
		*(const char **)f->into = json_string_value(value);
		return json_is_string(value);
	case ML_INT:
		return convert_to_int(value, f->into);
	case ML_DOUBLE:
		return convert_to_double(value, f->into);
	case ML_BOOL:
		return convert_to_bool(value, f->into);
	case ML_STRINGS:
		return convert_to_strings(c, value, f->into);
	case ML_LIST:
		*(json_t **)f->into = value;
		return json_is_array(value);
	default:
		*(json_t **)f->into = value;
		return json_is_object(value);
	}
}

/* Finds max_results as maxResults; for optional members only, as MLflow does. */
static json_t *find_camel_member(json_t *object, const char *name)
{
	char camel[64];
	size_t n = 0;

	for (; *name && n < sizeof(camel) - 1; name++) {
		if (*name == '_' && name[1])
			camel[n++] = (char)toupper((unsigned char)*++name);
		else
			camel[n++] = *name;
	}
	camel[n] = '\0';
	return json_object_get(object, camel);
}

static json_t *find_ml_member(json_t *object, const struct ml_field *f)
{
	json_t *value = json_object_get(object, f->name);

	if ((!value || json_is_null(value)) && !strcmp(f->name, "run_id"))
		value = json_object_get(object, "run_uuid");
	if (!value && !f->required && strchr(f->name, '_'))
		value = find_camel_member(object, f->name);
	return value && !json_is_null(value) ? value : NULL;
}

/* Position of a member: its list and its index there. */
struct ml_list_position {
	const char *what;
	size_t index;
};

/* Reads members by table. at: position of the object for error messages; NULL: the request itself. */
static bool read_ml_members(struct call *c, json_t *object, const struct ml_list_position *at,
			    const struct ml_field *fields)
{
	const struct ml_field *f;
	const char *path;

	for (f = fields; f->name; f++) {
		json_t *value = find_ml_member(object, f);
		bool missing = f->required && (!value || (json_is_string(value) && !*json_string_value(value)));

		if (!missing && (!value || convert_ml_field(c, f, value))) {
			if (f->given)
				*f->given = value != NULL;
			continue;
		}
		path = at ? arena_printf(c->arena, "%s[%zu].%s", at->what, at->index, f->name) : f->name;
		if (missing) {
			ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Missing value for required parameter '%s'.%s", path,
				ML_SEE_DOCS);
			return false;
		}
		return ml_fail_value(
			c, path, value,
			arena_printf(c->arena, " Hint: Value was of type '%s'." ML_SEE_DOCS, python_type_name(value)));
	}
	return true;
}

bool ml_read(struct call *c, json_t *object, const struct ml_field *fields)
{
	return read_ml_members(c, object, NULL, fields);
}

bool ml_read_item(struct call *c, json_t *list, const char *what, size_t index, const struct ml_field *fields)
{
	json_t *item = json_array_get(list, index);

	if (json_is_object(item))
		return read_ml_members(c, item, &(struct ml_list_position){ what, index }, fields);
	return ml_fail_value(c, what, list, " Hint: Value was of type 'list'." ML_SEE_DOCS);
}

bool ml_args(struct call *c, const struct ml_field *fields)
{
	json_t *request = ml_request(c);

	return request && ml_read(c, request, fields);
}

int ml_view_type(struct call *c, json_t *value, const char *path)
{
	static const char *const names[] = { "ACTIVE_ONLY", "DELETED_ONLY", "ALL" };
	const char *text = json_string_value(value);
	int64_t number;
	int i;

	if (!value || json_is_null(value))
		return ML_VIEW_ACTIVE;
	for (i = 0; text && i < 3; i++)
		if (!strcmp(names[i], text))
			return i;
	if (convert_to_int(value, &number) && number >= 1 && number <= 3)
		return (int)number - 1;
	ml_fail_value(c, path, value, "");
	return -1;
}
