/* SPDX-License-Identifier: Apache-2.0 */
/* filter_mlflow.c: MLflow's search grammar, with its messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/filter/filter_inside.h"
#include "web/store/filter/lexer.h"

static const struct lexer_rules rules = { .operators = "=!<>", .joined = true, .signs = true, .raw = true };

struct mlflow_parser {
	struct arena *a;
	struct filter *f;
	const struct filter_mlflow *in;
	struct lexer l;
	size_t nodes;
	bool ordering; /* parsing order_by */
	struct err *err;
};

/* A resolved identifier. */
struct ident {
	struct filter_field field;
	const char *entity, *key; /* for messages */
	bool numeric;
};

static int fail_parse(struct mlflow_parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail_parse(struct mlflow_parser *p, const char *fmt, ...)
{
	va_list ap;

	p->err->code = ERR_USAGE;
	va_start(ap, fmt);
	vsnprintf(p->err->text, sizeof(p->err->text), fmt, ap);
	va_end(ap);
	return ERR_USAGE;
}

static int fail_bad_clause(struct mlflow_parser *p)
{
	if (p->in->dialect == FILTER_MODELS)
		return fail_parse(
			p,
			"Invalid filter string: '%.200s'. Expected a list of comparisons separated by 'AND' (e.g. "
			"'metrics.loss > 0.1 AND params.lr = 0.01').",
			p->in->filter);
	return fail_parse(p, "Invalid clause(s) in filter string: '%.200s'",
			  p->l.kind == LEXER_WORD && p->l.word ? p->l.word : p->l.start);
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

/* --- identifiers -------------------------------------------------------------------------------------------- */

static bool is_registry_dialect(const struct mlflow_parser *p)
{
	return p->in->dialect == FILTER_REGISTERED || p->in->dialect == FILTER_VERSIONS;
}

/* The dialect's bit in the tables below; orders of the registry have bits of their own. */
static unsigned dialect_bit(const struct mlflow_parser *p)
{
	return 1u << (p->in->dialect + (p->ordering && is_registry_dialect(p) ? 2 : 0));
}

/* Dialects in both tables: 1 runs, 2 experiments, 4 logged models, 8 registered models, 0x10 versions; 0x20, 0x40:
 * orders of the last two. */
static int find_mlflow_entity(const struct mlflow_parser *p, const char *word)
{
	static const struct {
		const char *name;
		enum filter_entity entity;
		unsigned dialects;
	} names[] = {
		{ "metric", FILTER_METRIC, 1 }, { "metrics", FILTER_METRIC, 5 }, { "parameter", FILTER_PARAM, 1 },
		{ "parameters", FILTER_PARAM, 1 }, { "param", FILTER_PARAM, 1 }, { "params", FILTER_PARAM, 5 },
		{ "tag", FILTER_TAG, 0x7b }, { "tags", FILTER_TAG, 0x7f }, { "attribute", FILTER_ATTRIBUTE, 0x7b },
		{ "attributes", FILTER_ATTRIBUTE, 5 }, { "attr", FILTER_ATTRIBUTE, 1 }, { "run", FILTER_ATTRIBUTE, 1 },
		{ "dataset", FILTER_DATASET, 1 }, { "datasets", FILTER_DATASET, 1 },
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(names[i].name, word) && names[i].dialects & dialect_bit(p))
			return (int)names[i].entity;
	return -1;
}

static const struct {
	const char *name;
	enum filter_attribute attribute;
	unsigned dialects;
	bool numeric;
} attributes[] = {
	{ "run_id", FILTER_RUN_ID, 1, false },		 { "run_name", FILTER_NAME, 1, false },
	{ "run name", FILTER_NAME, 1, false },		 { "Run name", FILTER_NAME, 1, false },
	{ "Run Name", FILTER_NAME, 1, false },		 { "user_id", FILTER_USER, 1, false },
	{ "status", FILTER_STATUS, 5, false },		 { "artifact_uri", FILTER_ARTIFACT_URI, 1, false },
	{ "start_time", FILTER_START_TIME, 1, true },	 { "end_time", FILTER_END_TIME, 1, true },
	{ "created", FILTER_START_TIME, 1, true },	 { "Created", FILTER_START_TIME, 1, true },
	{ "name", FILTER_NAME, 0x7e, false },		 { "experiment_id", FILTER_RUN_ID, 2, false },
	{ "creation_time", FILTER_CREATED, 6, true },	 { "last_update_time", FILTER_UPDATED, 2, true },
	{ "model_id", FILTER_RUN_ID, 4, false },	 { "model_type", FILTER_TYPE, 4, false },
	{ "source_run_id", FILTER_SOURCE_RUN, 4, false }, { "creation_timestamp", FILTER_CREATED, 0x44, true },
	{ "last_updated_timestamp", FILTER_UPDATED, 0x64, true }, { "last_updated_time", FILTER_UPDATED, 4, true },
	{ "timestamp", FILTER_UPDATED, 0x20, true },	 { "version_number", FILTER_VERSION, 0x50, true },
	{ "run_id", FILTER_SOURCE_RUN, 0x10, false },	 { "source_path", FILTER_ARTIFACT_URI, 0x10, false },
};

static int fail_unknown_attribute(struct mlflow_parser *p, const char *key)
{
	char names[400];
	size_t n = 0, i;

	for (i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
		if (attributes[i].dialects & dialect_bit(p))
			n += (size_t)snprintf(names + n, sizeof names - n, "%s'%s'", n ? ", " : "", attributes[i].name);
	return fail_parse(p, "Invalid attribute key '%.100s' specified. Valid keys are '{%s}'", key, names);
}

static int find_attribute(struct mlflow_parser *p, struct ident *id)
{
	size_t i;

	for (i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
		if (attributes[i].dialects & dialect_bit(p) && !strcmp(attributes[i].name, id->key)) {
			id->field.attribute = attributes[i].attribute;
			id->field.key = "";
			id->numeric = attributes[i].numeric;
			return 0;
		}
	return fail_unknown_attribute(p, id->key);
}

static int fail_unknown_entity(struct mlflow_parser *p, const char *word)
{
	if (p->in->dialect == FILTER_EXPERIMENTS || is_registry_dialect(p))
		return fail_parse(
			p, "Invalid entity type '%.100s'. Valid entity types are ('attribute', 'tag', 'tags')", word);
	if (p->in->dialect == FILTER_MODELS)
		return fail_parse(p,
				  "Invalid entity type: '%.100s'. Expected one of ['attributes', 'metrics', 'params', "
				  "'tags'].",
				  word);
	return fail_parse(p,
			  "Invalid entity type '%.100s'. Valid values are ['metric', 'parameter', 'tag', 'attribute', "
			  "'dataset']",
			  word);
}

/* Splits a word at its first dot and resolves entity and key. */
static int parse_ident(struct mlflow_parser *p, char *word, struct ident *ret)
{
	static const char *const entities[] = { "attribute", "parameter", "tag", "metric", "dataset" };
	char *dot = strchr(word, '.');
	int entity = FILTER_ATTRIBUTE;

	*ret = (struct ident){ 0 };
	if (dot) {
		*dot = '\0';
		word = strip_quotes(word, '`');
		entity = find_mlflow_entity(p, word);
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
		return find_attribute(p, ret);
	if (entity == FILTER_DATASET && strcmp(word, "name") && strcmp(word, "digest") && strcmp(word, "context"))
		return fail_parse(
			p, "Invalid dataset key '%.100s' specified. Valid keys are '{'name', 'digest', 'context'}'",
			word);
	return 0;
}

static int keep_ident_field(struct mlflow_parser *p, const struct ident *id, size_t *ret)
{
	if (filter_keep_field(p->f, &id->field, ret))
		return 0;
	return fail_parse(p, "a search may have at most %d different fields", FILTER_MAX_FIELDS);
}

/* --- comparisons -------------------------------------------------------------------------------------------- */

static const char *allowed_ops(const struct mlflow_parser *p, const struct ident *id)
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

static int fail_bad_op(struct mlflow_parser *p, const struct ident *id, const char *op)
{
	static const char *const models[] = { "attributes", "params", "tags", "metrics" };
	static const enum filter_entity entities[] = { FILTER_ATTRIBUTE, FILTER_PARAM, FILTER_TAG, FILTER_METRIC };
	size_t i = 0;

	if (is_registry_dialect(p))
		return fail_parse(p, "Invalid comparator for %s%s%s: %.40s", id->entity, id->numeric ? " " : "",
				  id->numeric ? id->key : "", op);
	if (p->in->dialect != FILTER_MODELS)
		return fail_parse(p, "Invalid comparator '%.40s' not one of '{%s}'", op, allowed_ops(p, id));
	while (i < 3 && entities[i] != id->field.entity)
		i++;
	return fail_parse(
		p, "Invalid comparison operator for %s.%.100s: '%.40s'. Expected one of (%s).", models[i], id->key, op,
		id->numeric ? "'<', '<=', '>', '>=', '=', '!='" : "'=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN'");
}

static int check_mlflow_op(struct mlflow_parser *p, const struct ident *id, const char *op)
{
	const char *ops = allowed_ops(p, id);
	char quoted[24];

	snprintf(quoted, sizeof quoted, "'%.16s'", op);
	if (strstr(ops, quoted))
		return 0;
	return fail_bad_op(p, id, op);
}

static int fail_wrong_value(struct mlflow_parser *p, const struct ident *id)
{
	if (id->field.entity == FILTER_METRIC)
		return fail_parse(p, "Expected numeric value type for metric. Found %.200s", p->l.word);
	if (id->numeric)
		return fail_parse(p, "Expected numeric value type for numeric attribute: %.100s. Found %.200s", id->key,
				  p->l.word);
	if (id->field.entity == FILTER_ATTRIBUTE)
		return fail_parse(p, "Expected a quoted string value for attributes. Got value %.200s", p->l.word);
	if (id->field.entity == FILTER_DATASET)
		return fail_parse(p, "Expected a quoted string value for dataset attributes. Got value %.200s",
				  p->l.word);
	return fail_parse(p, "Expected a quoted string value for %s (e.g. 'my-value'). Got value %.200s", id->entity,
			  p->l.word);
}

/* The number of a version may be in quotes; it must be an integer. */
static int parse_version(struct mlflow_parser *p, const struct ident *id, struct filter_value *ret)
{
	char *text = p->l.kind == LEXER_TEXT ? strip_quotes(p->l.word, '\'') : p->l.word, *end;

	ret->present = ret->is_number = true;
	ret->number = (double)strtoll(text, &end, 10);
	if (end == text || *end)
		return fail_parse(p, "Invalid value for numeric attribute '%.100s': %.200s", id->key, text);
	lexer_next(&p->l);
	return 0;
}

/* Parses the value of a comparison by the type of its field. */
static int parse_mlflow_value(struct mlflow_parser *p, const struct ident *id, struct filter_value *ret)
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
		return fail_parse(
			p,
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

/* Parses a list of quoted texts in brackets. */
static int parse_mlflow_list(struct mlflow_parser *p, const struct ident *id, struct filter_node *n)
{
	int rc;

	if (id->field.entity == FILTER_ATTRIBUTE && p->in->dialect != FILTER_MODELS && !is_registry_dialect(p) &&
	    id->field.attribute != FILTER_RUN_ID)
		return fail_parse(p, "Only ['%s'] attributes support comparison with a list of quoted string values.",
				  p->in->dialect == FILTER_RUNS ? "run_id" : "experiment_id");
	if (p->l.kind != LEXER_OPEN)
		return fail_bad_clause(p);
	n->values = arena_array(p->a, FILTER_MAX_LIST, sizeof *n->values);
	if (!n->values)
		return err_nomem(p->err, NULL);
	do {
		lexer_next(&p->l);
		if (p->l.kind == LEXER_CLOSE)
			break;
		if (n->value_count == FILTER_MAX_LIST)
			return fail_parse(p, "a list may have at most %d values", FILTER_MAX_LIST);
		rc = parse_mlflow_value(p, id, &n->values[n->value_count++]);
		if (rc)
			return rc;
	} while (p->l.kind == LEXER_COMMA);
	if (p->l.kind != LEXER_CLOSE)
		return fail_bad_clause(p);
	if (!n->value_count)
		return fail_parse(
			p, "While parsing a list in the query, expected a non-empty list of string values, but got "
			   "empty list");
	lexer_next(&p->l);
	return 0;
}

static struct filter_node *add_mlflow_node(struct mlflow_parser *p, enum node_kind kind)
{
	struct filter_node *n = p->nodes < FILTER_MAX_NODES ? arena_alloc(p->a, sizeof *n) : NULL;

	p->nodes++;
	if (n)
		n->kind = kind;
	else
		fail_parse(p, "a search may have at most %d comparisons", FILTER_MAX_NODES / 3);
	return n;
}

/* IS NULL, IS NOT NULL */
static int parse_mlflow_null(struct mlflow_parser *p, const struct ident *id, struct filter_node **ret)
{
	struct filter_node *n = *ret, *not = NULL;

	lexer_next(&p->l);
	n->kind = N_NULL;
	if (lexer_is_word(&p->l, "NOT")) {
		not = add_mlflow_node(p, N_NOT);
		if (!not)
			return ERR_USAGE;
		not->left = n;
		*ret = not;
		lexer_next(&p->l);
	}
	if (!lexer_is_word(&p->l, "NULL"))
		return fail_bad_clause(p);
	lexer_next(&p->l);
	if ((id->field.entity == FILTER_TAG && !is_registry_dialect(p)) ||
	    (id->field.entity == FILTER_PARAM && p->in->dialect == FILTER_RUNS))
		return 0;
	if (is_registry_dialect(p))
		return fail_bad_op(p, id, not ? "IS NOT NULL" : "IS NULL");
	if (p->in->dialect == FILTER_EXPERIMENTS)
		return fail_parse(p, "IS NULL / IS NOT NULL is only supported for tags, not for attribute '%.100s'",
				  id->key);
	return fail_parse(p, "IS NULL / IS NOT NULL is only supported for tags and params, not for '%s' '%.100s'",
			  id->entity, id->key);
}

static int parse_like(struct mlflow_parser *p, const struct ident *id, struct filter_node *n)
{
	int rc = check_mlflow_op(p, id, n->kind == N_LIKE ? "LIKE" : "ILIKE");

	if (rc)
		return rc;
	n->values = arena_alloc(p->a, sizeof *n->values);
	if (!n->values)
		return err_nomem(p->err, NULL);
	lexer_next(&p->l);
	return parse_mlflow_value(p, id, n->values);
}

static int parse_mlflow_compare(struct mlflow_parser *p, const struct ident *id, struct filter_node *n)
{
	static const char *const ops[] = { "=", "!=", "<", "<=", ">", ">=" };
	static const enum compare_op codes[] = { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE };
	int i, rc = check_mlflow_op(p, id, p->l.word);

	for (i = 0; !rc && i < 6; i++)
		if (!strcmp(ops[i], p->l.word))
			n->op = codes[i];
	if (rc)
		return rc;
	n->value_count = 1;
	n->values = arena_alloc(p->a, sizeof *n->values);
	if (!n->values)
		return err_nomem(p->err, NULL);
	lexer_next(&p->l);
	if (p->l.kind == LEXER_OPEN)
		return fail_wrong_value(p, id);
	return parse_mlflow_value(p, id, n->values);
}

static int parse_in(struct mlflow_parser *p, const struct ident *id, struct filter_node *n)
{
	int rc = check_mlflow_op(p, id, n->negated ? "NOT IN" : "IN");

	if (rc)
		return rc;
	n->kind = N_IN;
	lexer_next(&p->l);
	return parse_mlflow_list(p, id, n);
}

/* Parses one comparison. */
static int parse_mlflow_test(struct mlflow_parser *p, struct filter_node **ret)
{
	struct filter_node *n = add_mlflow_node(p, N_COMPARE);
	struct ident id;
	int rc;

	if (!n)
		return ERR_USAGE;
	*ret = n;
	if (p->l.kind != LEXER_WORD || lexer_is_word(&p->l, "NOT"))
		return fail_bad_clause(p);
	rc = parse_ident(p, p->l.word, &id);
	if (!rc)
		rc = keep_ident_field(p, &id, &n->field);
	if (rc)
		return rc;
	lexer_next(&p->l);
	if (p->l.kind == LEXER_OPERATOR)
		return parse_mlflow_compare(p, &id, n);
	if (lexer_is_word(&p->l, "IS"))
		return parse_mlflow_null(p, &id, ret);
	n->negated = lexer_is_word(&p->l, "NOT");
	if (n->negated)
		lexer_next(&p->l);
	if (lexer_is_word(&p->l, "IN"))
		return parse_in(p, &id, n);
	n->kind = lexer_is_word(&p->l, "LIKE") ? N_LIKE : N_ILIKE;
	if ((lexer_is_word(&p->l, "LIKE") || lexer_is_word(&p->l, "ILIKE")) && !n->negated)
		return parse_like(p, &id, n);
	if ((lexer_is_word(&p->l, "LIKE") || lexer_is_word(&p->l, "ILIKE")) && p->in->dialect == FILTER_MODELS)
		return fail_bad_op(p, &id, lexer_is_word(&p->l, "LIKE") ? "NOT LIKE" : "NOT ILIKE");
	if (p->l.kind != LEXER_WORD || !n->negated)
		return fail_bad_clause(p);
	return fail_parse(p, "Invalid comparator 'NOT %.40s' not one of '{%s}'", p->l.word, allowed_ops(p, &id));
}

static int parse_mlflow_clauses(struct mlflow_parser *p)
{
	struct filter_node *both;
	int rc;

	lexer_begin(&p->l, &rules, p->a, p->in->filter);
	if (p->l.kind == LEXER_END)
		return 0;
	rc = parse_mlflow_test(p, &p->f->root);
	while (!rc && lexer_is_word(&p->l, "AND")) {
		lexer_next(&p->l);
		both = add_mlflow_node(p, N_AND);
		if (!both)
			return ERR_USAGE;
		both->left = p->f->root;
		rc = parse_mlflow_test(p, &both->right);
		p->f->root = both;
	}
	return rc ? rc : p->l.kind == LEXER_END ? 0 : fail_bad_clause(p);
}

/* --- order -------------------------------------------------------------------------------------------------- */

/* Parses one item of order_by. */
static int parse_mlflow_order(struct mlflow_parser *p, const char *text)
{
	struct filter_order *o = &p->f->order[p->f->order_count];
	struct ident id;
	size_t i;
	int rc;

	if (p->f->order_count == FILTER_MAX_ORDER)
		return fail_parse(p, "order_by: at most %d fields", FILTER_MAX_ORDER);
	lexer_begin(&p->l, &rules, p->a, text);
	if (p->l.kind != LEXER_WORD)
		return fail_parse(p, "Invalid order_by clause '%.200s'. Could not be parsed.", text);
	rc = parse_ident(p, p->l.word, &id);
	if (!rc && id.field.entity == FILTER_DATASET)
		rc = fail_parse(p, "Invalid order_by entity: %s", id.entity);
	if (!rc && (p->in->dialect == FILTER_EXPERIMENTS || is_registry_dialect(p)) &&
	    id.field.entity != FILTER_ATTRIBUTE)
		rc = fail_parse(p, "Invalid order_by entity: %s", id.entity);
	if (!rc)
		rc = keep_ident_field(p, &id, &o->field);
	if (rc)
		return rc;
	for (i = 0; i < p->f->order_count; i++)
		if (p->f->order[i].field == o->field)
			return fail_parse(p, "`order_by` contains duplicate fields: '%.200s'", text);
	lexer_next(&p->l);
	o->descending = lexer_is_word(&p->l, "DESC");
	if (p->l.kind == LEXER_WORD && !lexer_is_word(&p->l, "ASC") && !o->descending)
		return fail_parse(p, "Invalid ordering key in order_by clause '%.200s'.", text);
	if (p->l.kind == LEXER_WORD)
		lexer_next(&p->l);
	if (p->l.kind != LEXER_END)
		return fail_parse(p, "Invalid order_by clause '%.200s'. Could not be parsed.", text);
	p->f->order_count++;
	return 0;
}

int filter_parse_mlflow(struct filter **ret, struct arena *a, const struct filter_mlflow *text, struct err *err)
{
	struct err local = ERR_INIT;
	struct mlflow_parser p = { .a = a, .in = text, .err = err ? err : &local };
	size_t i;
	int rc = 0;

	p.f = arena_alloc(a, sizeof *p.f);
	if (!p.f)
		return err_nomem(err, NULL);
	p.f->mlflow = true;
	if (text->filter && strlen(text->filter) > FILTER_MAX_TEXT)
		return fail_parse(&p, "filter: longer than %d bytes", FILTER_MAX_TEXT);
	if (text->filter && *text->filter)
		rc = parse_mlflow_clauses(&p);
	p.f->tested_count = p.f->field_count;
	p.ordering = true;
	for (i = 0; i < text->order_count && !rc; i++)
		rc = strlen(text->order[i]) > FILTER_MAX_TEXT
			     ? fail_parse(&p, "order_by: longer than %d bytes", FILTER_MAX_TEXT)
			     : parse_mlflow_order(&p, text->order[i]);
	if (!rc)
		*ret = p.f;
	return rc;
}
