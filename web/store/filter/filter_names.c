/* SPDX-License-Identifier: Apache-2.0 */
/* filter_names.c: the names of fields, and what each dialect allows of a field: operators, values, orders; with its
 * messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/text.h"
#include "tracker/event/event.h"
#include "web/store/filter/filter_inside.h"

static int fail_bad_clause(struct filter_parser *p)
{
	if (p->ordering)
		return err_set(p->err, ERR_USAGE, "Invalid order_by clause '%.200s'. Could not be parsed.", p->text);
	if (p->in->dialect == FILTER_MODELS)
		return err_set(
			p->err, ERR_USAGE,
			"Invalid filter string: '%.200s'. Expected a list of comparisons separated by 'AND' (e.g. "
			"'metrics.loss > 0.1 AND params.lr = 0.01').",
			p->in->filter);
	return err_set(p->err, ERR_USAGE,
		       "Invalid clause(s) in filter string: '%.200s'",
		       p->l.kind == LEXER_WORD && p->l.word ? p->l.word : p->l.start);
}

int filter_fail(struct filter_parser *p, const char *expected)
{
	if (p->in)
		return fail_bad_clause(p);
	return err_set(p->err, ERR_USAGE,
		       "%s: expected %s at character %zu, near '%.40s'",
		       p->what, expected, (size_t)(p->l.start - p->text) + 1, *p->l.start ? p->l.start : "the end");
}

/* Removes the quotes around text, if it has quotes of that kind. */
static char *strip_quotes(char *text, char quote)
{
	size_t n = strlen(text);

	if (n < 2 || text[0] != quote || text[n - 1] != quote)
		return text;
	text[n - 1] = '\0';
	return text + 1;
}

/* --- names -------------------------------------------------------------------------------------------------- */

/* The dialects of a name. */
enum {
	RUNS = 1,
	EXPERIMENTS = 2,
	MODELS = 4,
	REGISTERED = 8,
	VERSIONS = 0x10,
	ORDER_OF_REGISTERED = 0x20,
	ORDER_OF_VERSIONS = 0x40,
	NATIVE = 0x80, /* in any case */
	TAGGED = 0x7b, /* MLflow's, but of logged models */
};

static bool is_registry_dialect(const struct filter_parser *p)
{
	return p->in && (p->in->dialect == FILTER_REGISTERED || p->in->dialect == FILTER_VERSIONS);
}

static unsigned dialect_bit(const struct filter_parser *p)
{
	if (!p->in)
		return NATIVE;
	return 1u << (p->in->dialect + (p->ordering && is_registry_dialect(p) ? 2 : 0));
}

static bool is_name(const struct filter_parser *p, const char *name, const char *word, size_t n)
{
	return strlen(name) == n && !(p->in ? strncmp : strncasecmp)(name, word, n);
}

/* Returns the entity, or -1. */
static int find_filter_entity(const struct filter_parser *p, const char *word, size_t n)
{
	static const struct {
		const char *name;
		enum filter_entity entity;
		unsigned dialects;
	} names[] = {
		{ "metric", FILTER_METRIC, RUNS | NATIVE },
		{ "metrics", FILTER_METRIC, RUNS | MODELS | NATIVE },
		{ "parameter", FILTER_PARAM, RUNS | NATIVE },
		{ "parameters", FILTER_PARAM, RUNS | NATIVE },
		{ "param", FILTER_PARAM, RUNS | NATIVE },
		{ "params", FILTER_PARAM, RUNS | MODELS | NATIVE },
		{ "tag", FILTER_TAG, TAGGED | NATIVE },
		{ "tags", FILTER_TAG, TAGGED | MODELS | NATIVE },
		{ "attribute", FILTER_ATTRIBUTE, TAGGED | NATIVE },
		{ "attributes", FILTER_ATTRIBUTE, RUNS | MODELS | NATIVE },
		{ "attr", FILTER_ATTRIBUTE, RUNS | NATIVE },
		{ "run", FILTER_ATTRIBUTE, RUNS | NATIVE },
		{ "dataset", FILTER_DATASET, RUNS },
		{ "datasets", FILTER_DATASET, RUNS },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].dialects & dialect_bit(p) && is_name(p, names[i].name, word, n))
			return (int)names[i].entity;
	return -1;
}

static const struct filter_attribute_name {
	const char *name;
	enum filter_attribute attribute;
	unsigned dialects;
	bool numeric;
} attributes[] = {
	{ "run_id", FILTER_RUN_ID, RUNS | NATIVE, false },
	{ "id", FILTER_RUN_ID, NATIVE, false },
	{ "run_name", FILTER_NAME, RUNS | NATIVE, false },
	{ "run name", FILTER_NAME, RUNS | NATIVE, false },
	{ "Run name", FILTER_NAME, RUNS, false },
	{ "Run Name", FILTER_NAME, RUNS, false },
	{ "user_id", FILTER_USER, RUNS, false },
	{ "status", FILTER_STATUS, RUNS | MODELS | NATIVE, false },
	{ "artifact_uri", FILTER_ARTIFACT_URI, RUNS, false },
	{ "start_time", FILTER_START_TIME, RUNS | NATIVE, true },
	{ "end_time", FILTER_END_TIME, RUNS | NATIVE, true },
	{ "created", FILTER_START_TIME, RUNS | NATIVE, true },
	{ "Created", FILTER_START_TIME, RUNS, true },
	{ "experiment", FILTER_EXPERIMENT, NATIVE, false },
	{ "duration", FILTER_DURATION, NATIVE, true },
	{ "last_step", FILTER_LAST_STEP, NATIVE, true },
	{ "name", FILTER_NAME, EXPERIMENTS | MODELS | REGISTERED | VERSIONS | ORDER_OF_REGISTERED | ORDER_OF_VERSIONS |
	  NATIVE, false },
	{ "experiment_id", FILTER_RUN_ID, EXPERIMENTS, false },
	{ "creation_time", FILTER_CREATED, EXPERIMENTS | MODELS, true },
	{ "last_update_time", FILTER_UPDATED, EXPERIMENTS, true },
	{ "model_id", FILTER_RUN_ID, MODELS, false },
	{ "model_type", FILTER_TYPE, MODELS, false },
	{ "source_run_id", FILTER_SOURCE_RUN, MODELS, false },
	{ "creation_timestamp", FILTER_CREATED, MODELS | ORDER_OF_VERSIONS, true },
	{ "last_updated_timestamp", FILTER_UPDATED, MODELS | ORDER_OF_REGISTERED | ORDER_OF_VERSIONS, true },
	{ "last_updated_time", FILTER_UPDATED, MODELS, true },
	{ "timestamp", FILTER_UPDATED, ORDER_OF_REGISTERED, true },
	{ "version_number", FILTER_VERSION, VERSIONS | ORDER_OF_VERSIONS, true },
	{ "run_id", FILTER_SOURCE_RUN, VERSIONS, false },
	{ "source_path", FILTER_ARTIFACT_URI, VERSIONS, false },
};

static const struct filter_attribute_name *find_attribute_name(const struct filter_parser *p, const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].dialects & dialect_bit(p) && is_name(p, attributes[i].name, key, strlen(key)))
			return &attributes[i];
	return NULL;
}

/* Resolves the key of an attribute. Returns false if there is no such attribute. */
static bool resolve_attribute(const struct filter_parser *p, struct filter_ident *id)
{
	const struct filter_attribute_name *name = find_attribute_name(p, id->key);

	if (!name)
		return false;
	id->field.attribute = name->attribute;
	id->field.key = "";
	id->numeric = name->numeric;
	return true;
}

static int fail_unknown_attribute(struct filter_parser *p, const char *key)
{
	char names[400];
	size_t n = 0, i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].dialects & dialect_bit(p))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s'%s'", n ? ", " : "",
					      attributes[i].name);
	return err_set(p->err, ERR_USAGE,
		       "Invalid attribute key '%.100s' specified. Valid keys are '{%s}'", key, names);
}

static int fail_unknown_entity(struct filter_parser *p, const char *word)
{
	if (p->in->dialect == FILTER_EXPERIMENTS || is_registry_dialect(p))
		return err_set(
			p->err, ERR_USAGE, "Invalid entity type '%.100s'. Valid entity types are ('attribute', 'tag', "
			"'tags')", word);
	if (p->in->dialect == FILTER_MODELS)
		return err_set(p->err, ERR_USAGE,
				  "Invalid entity type: '%.100s'. Expected one of ['attributes', 'metrics', 'params', "
				  "'tags'].",
				  word);
	return err_set(p->err, ERR_USAGE,
			  "Invalid entity type '%.100s'. Valid values are ['metric', 'parameter', 'tag', 'attribute', "
			  "'dataset']",
			  word);
}

/* Splits a word at its first dot and resolves entity and key. */
static int resolve_mlflow_name(struct filter_parser *p, char *word, struct filter_ident *ret)
{
	static const char *const entities[] = { "attribute", "parameter", "tag", "metric", "dataset" };
	char *dot = strchr(word, '.');
	int entity = FILTER_ATTRIBUTE;

	if (dot) {
		*dot = '\0';
		word = strip_quotes(word, '`');
		entity = find_filter_entity(p, word, strlen(word));
		if (entity < 0)
			return fail_unknown_entity(p, word);
		word = dot + 1;
	}
	word = strip_quotes(strip_quotes(strip_quotes(word, '"'), '\''), '`');
	ret->field.entity = (enum filter_entity)entity;
	ret->field.key = ret->key = word;
	ret->entity = entities[entity];
	ret->numeric = entity == FILTER_METRIC;
	if (entity == FILTER_ATTRIBUTE)
		return resolve_attribute(p, ret) ? 0 : fail_unknown_attribute(p, ret->key);
	if (entity == FILTER_DATASET && strcmp(word, "name") && strcmp(word, "digest") && strcmp(word, "context"))
		return err_set(
			p->err, ERR_USAGE, "Invalid dataset key '%.100s' specified. Valid keys are '{'name', 'digest', "
			"'context'}'",
			word);
	return 0;
}

static int read_mlflow_ident(struct filter_parser *p, struct filter_ident *ret)
{
	int rc;

	if (p->l.kind != LEXER_WORD || lexer_is_word(&p->l, "NOT"))
		return fail_bad_clause(p);
	rc = resolve_mlflow_name(p, p->l.word, ret);
	if (!rc && p->ordering &&
	    (ret->field.entity == FILTER_DATASET ||
	     ((p->in->dialect == FILTER_EXPERIMENTS || is_registry_dialect(p)) &&
	      ret->field.entity != FILTER_ATTRIBUTE)))
		rc = err_set(p->err, ERR_USAGE, "Invalid order_by entity: %s", ret->entity);
	if (!rc)
		lexer_next(&p->l);
	return rc;
}

static int find_aggregate_word(const char *word)
{
	static const char *const names[] = { "last", "first", "min", "max" };
	int i;

	for (i = 0; i < 4; i++)
		if (!strcmp(names[i], word))
			return i;
	return -1;
}

/* A quoted key may only be followed by an aggregate. */
static int parse_quoted_key(struct filter_parser *p, struct filter_field *ret)
{
	int agg;

	ret->key = p->l.word;
	lexer_next(&p->l);
	if (ret->entity != FILTER_METRIC || p->l.kind != LEXER_WORD || *p->l.word != '.')
		return 0;
	agg = find_aggregate_word(p->l.word + 1);
	if (agg < 0)
		return filter_fail(p, ".first, .last, .min or .max");
	ret->aggregate = (enum filter_aggregate)agg;
	lexer_next(&p->l);
	return 0;
}

void filter_split_aggregate(struct filter_field *ret, char *key)
{
	char *dot = strrchr(key, '.');
	int agg = dot && dot > key ? find_aggregate_word(dot + 1) : -1;

	ret->key = key;
	if (ret->entity != FILTER_METRIC || agg < 0)
		return;
	*dot = '\0';
	ret->aggregate = (enum filter_aggregate)agg;
}

/* Reads the key after an entity, with its aggregate. */
static int parse_key(struct filter_parser *p, struct filter_field *ret)
{
	char *word = p->l.word, *dot = strchr(word, '.');
	int entity = dot ? find_filter_entity(p, word, (size_t)(dot - word)) : -1;

	if (p->l.kind == LEXER_QUOTED || entity < 0) {
		ret->key = word;
		lexer_next(&p->l);
		return 0;
	}
	ret->entity = (enum filter_entity)entity;
	if (dot[1]) {
		filter_split_aggregate(ret, dot + 1);
		lexer_next(&p->l);
		return 0;
	}
	lexer_next(&p->l);
	return p->l.kind == LEXER_QUOTED ? parse_quoted_key(p, ret) : filter_fail(p, "a key");
}

/* A name without a prefix is an attribute, else a param where bare names may be params. */
static int read_native_ident(struct filter_parser *p, bool bare, struct filter_ident *ret)
{
	struct filter_field *field = &ret->field;
	bool prefixed = p->l.kind == LEXER_WORD && strchr(p->l.word, '.');
	int rc;

	if (p->l.kind != LEXER_WORD && p->l.kind != LEXER_QUOTED)
		return filter_fail(p, "a field such as metrics.loss, params.lr or status");
	prefixed = prefixed && find_filter_entity(p, p->l.word, strcspn(p->l.word, ".")) >= 0;
	rc = parse_key(p, field);
	if (rc)
		return rc;
	if (!*field->key)
		return filter_fail(p, "a key");
	ret->key = field->key;
	ret->numeric = field->entity == FILTER_METRIC;
	if (field->entity == FILTER_ATTRIBUTE && !strcasecmp(field->key, "notes")) {
		field->entity = FILTER_NOTE;
		field->key = FILTER_NOTE_KEY;
	} else if (field->entity == FILTER_ATTRIBUTE && !resolve_attribute(p, ret)) {
		if (prefixed || !bare)
			return err_set(p->err, ERR_USAGE,
				       "%s: there is no attribute '%.60s' (" FILTER_ATTRIBUTES
				       "); metrics, params and tags need their prefix", p->what, field->key);
		field->entity = FILTER_PARAM;
		field->bare = true;
	}
	return 0;
}

int filter_ident_read(struct filter_parser *p, struct filter_ident *ret)
{
	*ret = (struct filter_ident){ .field.entity = FILTER_ATTRIBUTE };
	return p->in ? read_mlflow_ident(p, ret) : read_native_ident(p, !p->ordering, ret);
}

/* --- operators ---------------------------------------------------------------------------------------------- */

static const char *allowed_ops(const struct filter_parser *p, const struct filter_ident *id)
{
	if (id->numeric)
		return "'>', '>=', '!=', '=', '<', '<='";
	if (is_registry_dialect(p) && (id->field.entity == FILTER_TAG || id->field.attribute == FILTER_ARTIFACT_URI))
		return "'!=', '=', 'LIKE', 'ILIKE'";
	if (id->field.entity == FILTER_PARAM || id->field.entity == FILTER_TAG)
		return p->in->dialect == FILTER_MODELS ? "'!=', '=', 'LIKE', 'ILIKE', 'IN', 'NOT IN'"
						       : "'!=', '=', 'LIKE', 'ILIKE', 'IS NULL', 'IS NOT NULL'";
	return "'!=', '=', 'LIKE', 'ILIKE', 'IN', 'NOT IN'";
}

static int fail_bad_op(struct filter_parser *p, const struct filter_ident *id, const char *op)
{
	static const char *const models[] = { "attributes", "params", "tags", "metrics" };
	static const enum filter_entity entities[] = { FILTER_ATTRIBUTE, FILTER_PARAM, FILTER_TAG, FILTER_METRIC };
	size_t i = 0;

	if (is_registry_dialect(p))
		return err_set(p->err, ERR_USAGE,
			       "Invalid comparator for %s%s%s: %.40s",
			       id->entity, id->numeric ? " " : "", id->numeric ? id->key : "", op);
	if (p->in->dialect != FILTER_MODELS)
		return err_set(p->err, ERR_USAGE,
			       "Invalid comparator '%.40s' not one of '{%s}'", op, allowed_ops(p, id));
	while (i < 3 && entities[i] != id->field.entity)
		i++;
	return err_set(
		p->err, ERR_USAGE, "Invalid comparison operator for %s.%.100s: '%.40s'. Expected one of "
		"(%s).", models[i], id->key, op,
		id->numeric ? "'<', '<=', '>', '>=', '=', '!='" : "'=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN'");
}

static int check_null(struct filter_parser *p, const struct filter_ident *id, const char *op)
{
	if ((id->field.entity == FILTER_TAG && !is_registry_dialect(p)) ||
	    (id->field.entity == FILTER_PARAM && p->in->dialect == FILTER_RUNS))
		return 0;
	if (is_registry_dialect(p))
		return fail_bad_op(p, id, op);
	if (p->in->dialect == FILTER_EXPERIMENTS)
		return err_set(p->err, ERR_USAGE,
			       "IS NULL / IS NOT NULL is only supported for tags, not for attribute '%.100s'", id->key);
	return err_set(p->err, ERR_USAGE,
		       "IS NULL / IS NOT NULL is only supported for tags and params, not for '%s' '%.100s'",
		       id->entity, id->key);
}

int filter_op_check(struct filter_parser *p, const struct filter_ident *id, const char *op)
{
	char quoted[24];

	if (!p->in)
		return 0;
	if (!strncmp(op, "IS ", 3))
		return check_null(p, id, op);
	snprintf(quoted, sizeof(quoted), "'%.16s'", op);
	if (!strstr(allowed_ops(p, id), quoted))
		return fail_bad_op(p, id, op);
	if (strcmp(op, "IN") && strcmp(op, "NOT IN"))
		return 0;
	if (id->field.entity == FILTER_ATTRIBUTE && p->in->dialect != FILTER_MODELS && !is_registry_dialect(p) &&
	    id->field.attribute != FILTER_RUN_ID)
		return err_set(p->err, ERR_USAGE,
			       "Only ['%s'] attributes support comparison with a list of quoted string values.",
			       p->in->dialect == FILTER_RUNS ? "run_id" : "experiment_id");
	return 0;
}

/* --- values ------------------------------------------------------------------------------------------------- */

static int fail_wrong_value(struct filter_parser *p, const struct filter_ident *id)
{
	if (id->field.entity == FILTER_METRIC)
		return err_set(p->err, ERR_USAGE, "Expected numeric value type for metric. Found %.200s", p->l.word);
	if (id->numeric)
		return err_set(p->err, ERR_USAGE,
			       "Expected numeric value type for numeric attribute: %.100s. Found %.200s",
			       id->key, p->l.word);
	if (id->field.entity == FILTER_ATTRIBUTE)
		return err_set(p->err, ERR_USAGE,
			       "Expected a quoted string value for attributes. Got value %.200s", p->l.word);
	if (id->field.entity == FILTER_DATASET)
		return err_set(p->err, ERR_USAGE,
			       "Expected a quoted string value for dataset attributes. Got value %.200s", p->l.word);
	return err_set(p->err, ERR_USAGE,
		       "Expected a quoted string value for %s (e.g. 'my-value'). Got value %.200s",
		       id->entity, p->l.word);
}

/* The number of a version may be in quotes; it must be an integer. */
static int parse_version(struct filter_parser *p, const struct filter_ident *id, struct filter_value *ret)
{
	char *text = p->l.kind == LEXER_TEXT ? strip_quotes(p->l.word, '\'') : p->l.word, *end;

	ret->present = ret->is_number = true;
	ret->number = (double)strtoll(text, &end, 10);
	if (end == text || *end)
		return err_set(p->err, ERR_USAGE,
			       "Invalid value for numeric attribute '%.100s': %.200s", id->key, text);
	lexer_next(&p->l);
	return 0;
}

/* Parses the value of a comparison by the type of its field. */
static int parse_mlflow_value(struct filter_parser *p, const struct filter_ident *id, struct filter_value *ret)
{
	char *text = p->l.word;

	if (p->l.kind == LEXER_END || p->l.kind == LEXER_BAD)
		return fail_bad_clause(p);
	if (id->field.attribute == FILTER_VERSION && (p->l.kind == LEXER_NUMBER || p->l.kind == LEXER_TEXT))
		return parse_version(p, id, ret);
	ret->present = true;
	if (id->numeric) {
		if (p->l.kind != LEXER_NUMBER)
			return fail_wrong_value(p, id);
		ret->is_number = true;
		ret->number = strtod(p->l.word, NULL);
	} else if (p->l.kind == LEXER_TEXT) {
		ret->text = strip_quotes(text, '\'');
	} else if (p->l.kind == LEXER_WORD && *text == '"' && strip_quotes(text, '"') != text) {
		ret->text = text + 1;
	} else if (p->l.kind == LEXER_WORD) {
		return err_set(
			p->err, ERR_USAGE,
			"Parameter value is either not quoted or unidentified quote types used for string value "
			"%.200s. "
			"Use either single or double quotes.",
			text);
	} else {
		return fail_wrong_value(p, id);
	}
	lexer_next(&p->l);
	return 0;
}

static bool is_time_field(const struct filter_field *field)
{
	return field->entity == FILTER_ATTRIBUTE &&
	       (field->attribute == FILTER_START_TIME || field->attribute == FILTER_END_TIME);
}

static bool is_joining_word(const struct filter_parser *p)
{
	return lexer_is_word(&p->l, "AND") || lexer_is_word(&p->l, "OR") || lexer_is_word(&p->l, "NOT");
}

/* Puts the name of a status, which is given in any case, into *ret. */
static int find_status(struct filter_parser *p, const char **ret)
{
	char names[120] = "";
	size_t n = 0;
	int i;

	for (i = 0; (*ret = event_status_name((enum event_status)i)) && strcasecmp(*ret, p->l.word); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "a status: ", *ret);
	return *ret ? 0 : filter_fail(p, names);
}

static int parse_native_value(struct filter_parser *p, const struct filter_ident *id, struct filter_value *ret)
{
	bool numeric = id->numeric, word = p->l.kind == LEXER_WORD && !numeric && !is_joining_word(p);
	double time_s;

	if (p->l.kind != LEXER_NUMBER && p->l.kind != LEXER_TEXT && p->l.kind != LEXER_QUOTED && !word)
		return filter_fail(p, numeric ? "a number" : "a value in quotes");
	ret->present = true;
	ret->text = p->l.word;
	ret->is_number = filter_number(p->l.word, &ret->number);
	if (is_time_field(&id->field) && !ret->is_number && text_iso_time(p->l.word, &time_s)) {
		ret->is_number = true;
		ret->number = round(time_s * 1e3);
	}
	if (numeric && !ret->is_number)
		return filter_fail(p, is_time_field(&id->field) ? "milliseconds or a date such as '2026-11-28 09:30'"
							     : "a number");
	if (id->field.entity == FILTER_ATTRIBUTE && id->field.attribute == FILTER_STATUS && find_status(p, &ret->text))
		return p->err->code;
	lexer_next(&p->l);
	return 0;
}

int filter_value_read(struct filter_parser *p, const struct filter_ident *id, struct filter_value *ret)
{
	return p->in ? parse_mlflow_value(p, id, ret) : parse_native_value(p, id, ret);
}
