/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parse.c: recursive-descent parser of our own search grammar. */
#include "web/store/filter/filter_inside.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/text.h"
#include "web/store/filter/lexer.h"

#define MAX_DEPTH 32

static const struct lexer_rules rules = { .word = "_-/:.", .operators = "=!<>", .joined = true, .signs = true };

struct filter_parser {
	struct arena *a;
	struct filter *f;
	const char *what, *text;
	struct lexer l; /* the word of a field is its whole dotted name */
	int depth, nodes;
	struct err *err;
};

static int fail_expected(struct filter_parser *p, const char *expected)
{
	return err_set(p->err, ERR_USAGE, "%s: expected %s at character %zu, near '%.40s'", p->what, expected,
		       (size_t)(p->l.start - p->text) + 1, *p->l.start ? p->l.start : "the end");
}

static int find_filter_entity(const char *word, size_t n)
{
	static const struct {
		const char *name;
		enum filter_entity entity;
	} names[] = {
		{ "metric", FILTER_METRIC }, { "metrics", FILTER_METRIC },
		{ "param", FILTER_PARAM }, { "params", FILTER_PARAM },
		{ "parameter", FILTER_PARAM }, { "parameters", FILTER_PARAM },
		{ "tag", FILTER_TAG }, { "tags", FILTER_TAG },
		{ "attribute", FILTER_ATTRIBUTE }, { "attributes", FILTER_ATTRIBUTE },
		{ "attr", FILTER_ATTRIBUTE }, { "run", FILTER_ATTRIBUTE },
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i].name) == n && !strncasecmp(names[i].name, word, n))
			return (int)names[i].entity;
	return -1;
}

static int find_attribute_word(const char *key)
{
	static const struct {
		const char *name;
		enum filter_attribute attribute;
	} names[] = {
		{ "run_id", FILTER_RUN_ID }, { "id", FILTER_RUN_ID }, { "name", FILTER_NAME },
		{ "run_name", FILTER_NAME }, { "run name", FILTER_NAME }, { "status", FILTER_STATUS },
		{ "start_time", FILTER_START_TIME }, { "created", FILTER_START_TIME }, { "end_time", FILTER_END_TIME },
		{ "experiment", FILTER_EXPERIMENT }, { "duration", FILTER_DURATION },
		{ "last_step", FILTER_LAST_STEP },
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcasecmp(names[i].name, key))
			return (int)names[i].attribute;
	return -1;
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
		return fail_expected(p, ".first, .last, .min or .max");
	ret->aggregate = (enum filter_aggregate)agg;
	lexer_next(&p->l);
	return 0;
}

static void split_aggregate(struct filter_field *ret, char *key)
{
	char *dot = strrchr(key, '.');
	int agg = dot && dot > key ? find_aggregate_word(dot + 1) : -1;

	ret->key = key;
	if (ret->entity != FILTER_METRIC || agg < 0)
		return;
	*dot = '\0';
	ret->aggregate = (enum filter_aggregate)agg;
}

/* Parses the key after an entity, with its aggregate. */
static int parse_key(struct filter_parser *p, struct filter_field *ret)
{
	char *word = p->l.word, *dot = strchr(word, '.');
	int entity = dot ? find_filter_entity(word, (size_t)(dot - word)) : -1;

	if (p->l.kind == LEXER_QUOTED) {
		ret->key = word;
		lexer_next(&p->l);
		return 0;
	}
	if (entity < 0) {
		ret->key = word;
		lexer_next(&p->l);
		return 0;
	}
	ret->entity = (enum filter_entity)entity;
	if (dot[1]) {
		split_aggregate(ret, dot + 1);
		lexer_next(&p->l);
		return 0;
	}
	lexer_next(&p->l);
	return p->l.kind == LEXER_QUOTED ? parse_quoted_key(p, ret) : fail_expected(p, "a key");
}

/* Resolves the key of an attribute; false: there is no such attribute. */
static bool resolve_attribute(struct filter_field *field)
{
	int attribute = strcasecmp(field->key, "notes") ? find_attribute_word(field->key) : -1;

	if (!strcasecmp(field->key, "notes")) {
		field->entity = FILTER_NOTE;
		field->key = FILTER_NOTE_KEY;
		return true;
	}
	if (attribute < 0)
		return false;
	field->attribute = (enum filter_attribute)attribute;
	field->key = "";
	return true;
}

static int keep_parsed_field(struct filter_parser *p, const struct filter_field *field, size_t *ret)
{
	if (filter_keep_field(p->f, field, ret))
		return 0;
	return err_set(p->err, ERR_USAGE, "%s: more than %d different fields", p->what, FILTER_MAX_FIELDS);
}

/* Parses a field and adds it to the plan; bare: a name may lack its prefix and is a param then. */
static int parse_field(struct filter_parser *p, bool bare, size_t *ret)
{
	struct filter_field field = { .entity = FILTER_ATTRIBUTE };
	bool prefixed = p->l.kind == LEXER_WORD && strchr(p->l.word, '.');
	int rc;

	if (p->l.kind != LEXER_WORD && p->l.kind != LEXER_QUOTED)
		return fail_expected(p, "a field such as metrics.loss, params.lr or status");
	prefixed = prefixed && find_filter_entity(p->l.word, strcspn(p->l.word, ".")) >= 0;
	rc = parse_key(p, &field);
	if (rc)
		return rc;
	if (!*field.key)
		return fail_expected(p, "a key");
	if (field.entity == FILTER_ATTRIBUTE && !resolve_attribute(&field)) {
		if (prefixed || !bare)
			return err_set(p->err, ERR_USAGE,
				       "%s: there is no attribute '%.60s' (" FILTER_ATTRIBUTES
				       "); metrics, params and tags need their prefix", p->what, field.key);
		field.entity = FILTER_PARAM;
		field.bare = true;
	}
	return keep_parsed_field(p, &field, ret);
}

static bool is_time_field(const struct filter_field *field)
{
	return field->entity == FILTER_ATTRIBUTE &&
	       (field->attribute == FILTER_START_TIME || field->attribute == FILTER_END_TIME);
}

static bool is_numeric_field(const struct filter_field *field)
{
	return field->entity == FILTER_METRIC || is_time_field(field) ||
	       (field->entity == FILTER_ATTRIBUTE &&
		(field->attribute == FILTER_DURATION || field->attribute == FILTER_LAST_STEP));
}

static bool is_joining_word(const struct filter_parser *p)
{
	return lexer_is_word(&p->l, "AND") || lexer_is_word(&p->l, "OR") || lexer_is_word(&p->l, "NOT");
}

static int parse_filter_value(struct filter_parser *p, const struct filter_field *field, struct filter_value *ret)
{
	bool numeric = is_numeric_field(field), word = p->l.kind == LEXER_WORD && !numeric && !is_joining_word(p);
	double time_s;

	if (p->l.kind != LEXER_NUMBER && p->l.kind != LEXER_TEXT && p->l.kind != LEXER_QUOTED && !word)
		return fail_expected(p, numeric ? "a number" : "a value in quotes");
	ret->present = true;
	ret->text = p->l.word;
	ret->is_number = filter_number(p->l.word, &ret->number);
	if (is_time_field(field) && !ret->is_number && text_iso_time(p->l.word, &time_s)) {
		ret->is_number = true;
		ret->number = round(time_s * 1e3);
	}
	if (numeric && !ret->is_number)
		return fail_expected(p, is_time_field(field) ? "milliseconds or a date such as '2026-11-28 09:30'"
							     : "a number");
	lexer_next(&p->l);
	return 0;
}

static struct filter_node *add_filter_node(struct filter_parser *p, enum node_kind kind)
{
	struct filter_node *n = ++p->nodes > FILTER_MAX_NODES ? NULL : arena_alloc(p->a, sizeof *n);

	if (n)
		n->kind = kind;
	else
		err_set(p->err, p->nodes > FILTER_MAX_NODES ? ERR_USAGE : ERR_NOMEM, "%s: more than %d conditions",
			p->what, FILTER_MAX_NODES);
	return n;
}

/* Parses a list of values in brackets. */
static int parse_filter_list(struct filter_parser *p, struct filter_node *n)
{
	const struct filter_field *field = &p->f->fields[n->field];
	int rc;

	if (p->l.kind != LEXER_OPEN)
		return fail_expected(p, "( after IN");
	n->values = arena_array(p->a, FILTER_MAX_LIST, sizeof *n->values);
	if (!n->values)
		return err_nomem(p->err, NULL);
	do {
		lexer_next(&p->l);
		if (n->value_count == FILTER_MAX_LIST)
			return err_set(p->err, ERR_USAGE, "%s: a list may have at most %d values", p->what,
				       FILTER_MAX_LIST);
		rc = parse_filter_value(p, field, &n->values[n->value_count++]);
		if (rc)
			return rc;
	} while (p->l.kind == LEXER_COMMA);
	if (p->l.kind != LEXER_CLOSE)
		return fail_expected(p, ", or )");
	lexer_next(&p->l);
	return 0;
}

/* Parses LIKE, ILIKE and IN, with an optional NOT. */
static int parse_word_test(struct filter_parser *p, struct filter_node *n, bool *ret_not)
{
	*ret_not = lexer_is_word(&p->l, "NOT");
	if (*ret_not)
		lexer_next(&p->l);
	if (lexer_is_word(&p->l, "IN")) {
		n->kind = N_IN;
		lexer_next(&p->l);
		return parse_filter_list(p, n);
	}
	if (lexer_is_word(&p->l, "LIKE") || lexer_is_word(&p->l, "ILIKE")) {
		n->kind = lexer_is_word(&p->l, "LIKE") ? N_LIKE : N_ILIKE;
		n->values = arena_alloc(p->a, sizeof *n->values);
		lexer_next(&p->l);
		if (p->l.kind != LEXER_TEXT && p->l.kind != LEXER_QUOTED)
			return fail_expected(p, "a pattern in quotes");
		if (!n->values)
			return err_nomem(p->err, NULL);
		n->values->text = p->l.word;
		lexer_next(&p->l);
		return 0;
	}
	return fail_expected(p, "a comparison (=, !=, <, <=, >, >=, LIKE, ILIKE, IN, IS NULL)");
}

static int parse_filter_null(struct filter_parser *p, struct filter_node *n, bool *ret_not)
{
	n->kind = N_NULL;
	lexer_next(&p->l);
	*ret_not = lexer_is_word(&p->l, "NOT");
	if (*ret_not)
		lexer_next(&p->l);
	if (!lexer_is_word(&p->l, "NULL"))
		return fail_expected(p, "NULL");
	lexer_next(&p->l);
	return 0;
}

static int parse_filter_compare(struct filter_parser *p, struct filter_node *n)
{
	static const char *const ops[] = { "=", "!=", "<", "<=", ">", ">=", "==", "<>" };
	static const enum compare_op codes[] = { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_EQ, C_NE };
	int i;

	for (i = 0; i < 8 && strcmp(ops[i], p->l.word); i++)
		;
	if (i == 8)
		return fail_expected(p, "a comparison");
	n->kind = N_COMPARE;
	n->op = codes[i];
	n->value_count = 1;
	n->values = arena_alloc(p->a, sizeof *n->values);
	if (!n->values)
		return err_nomem(p->err, NULL);
	lexer_next(&p->l);
	return parse_filter_value(p, &p->f->fields[n->field], n->values);
}

static int negate_node(struct filter_parser *p, struct filter_node **n)
{
	struct filter_node *not = add_filter_node(p, N_NOT);

	if (!not)
		return p->err ? p->err->code : ERR_USAGE;
	not->left = *n;
	*n = not;
	return 0;
}

static int join_nodes(struct filter_parser *p, enum node_kind kind, struct filter_node *left,
		      struct filter_node **right)
{
	struct filter_node *both = add_filter_node(p, kind);

	if (!both)
		return p->err ? p->err->code : ERR_USAGE;
	both->left = left;
	both->right = *right;
	*right = both;
	return 0;
}

/* Parses the comparison of a field. */
static int parse_field_test(struct filter_parser *p, size_t field, struct filter_node **ret)
{
	struct filter_node *n = add_filter_node(p, N_COMPARE), *present;
	bool not = false;
	int rc;

	if (!n)
		return p->err ? p->err->code : ERR_USAGE;
	n->field = field;
	*ret = n;
	if (p->l.kind == LEXER_OPERATOR)
		return parse_filter_compare(p, n);
	rc = lexer_is_word(&p->l, "IS") ? parse_filter_null(p, n, &not) : parse_word_test(p, n, &not);
	if (rc || !not)
		return rc;
	rc = negate_node(p, ret);
	if (rc || n->kind == N_NULL)
		return rc;
	/* x NOT LIKE y requires x, as != does. */
	present = add_filter_node(p, N_NULL);
	if (!present)
		return p->err ? p->err->code : ERR_USAGE;
	present->field = n->field;
	rc = negate_node(p, &present);
	return rc ? rc : join_nodes(p, N_AND, present, ret);
}

/* Tests whether a metric can be compared as a node does: with numbers alone. */
static bool suits_metric(const struct filter_node *n)
{
	size_t i;

	if (!n)
		return true;
	if (n->kind == N_LIKE || n->kind == N_ILIKE)
		return false;
	for (i = 0; i < n->value_count; i++)
		if (!n->values[i].is_number)
			return false;
	return suits_metric(n->left) && suits_metric(n->right);
}

/* Copies a test for another field; NULL: too many conditions. */
static struct filter_node *copy_test(struct filter_parser *p, const struct filter_node *n, size_t field)
{
	struct filter_node *copy = n ? add_filter_node(p, n->kind) : NULL;

	if (!copy)
		return NULL;
	*copy = *n;
	copy->field = field;
	copy->left = copy_test(p, n->left, field);
	copy->right = copy_test(p, n->right, field);
	return (n->left && !copy->left) || (n->right && !copy->right) ? NULL : copy;
}

/* Extends the test of a bare name: a run without the param is tested by the metric of that name. */
static int add_metric_twin(struct filter_parser *p, size_t field, struct filter_node **ret)
{
	struct filter_field twin = { .entity = FILTER_METRIC };
	char *key = arena_strdup(p->a, p->f->fields[field].key);
	struct filter_node *lacks = add_filter_node(p, N_NULL), *has = lacks, *other;
	size_t at;
	int rc;

	if (!key || !lacks)
		return p->err->code ? p->err->code : err_nomem(p->err, NULL);
	split_aggregate(&twin, key);
	rc = keep_parsed_field(p, &twin, &at);
	if (rc)
		return rc;
	p->f->fields[field].twin = at + 1;
	lacks->field = field;
	other = copy_test(p, *ret, at);
	if (!other)
		return p->err->code;
	rc = negate_node(p, &has);
	if (!rc)
		rc = join_nodes(p, N_AND, has, ret);
	if (!rc)
		rc = join_nodes(p, N_AND, lacks, &other);
	return rc ? rc : join_nodes(p, N_OR, other, ret);
}

/* Parses one test. */
static int parse_filter_test(struct filter_parser *p, struct filter_node **ret)
{
	size_t field;
	int rc = parse_field(p, true, &field);

	if (!rc)
		rc = parse_field_test(p, field, ret);
	if (rc || !p->f->fields[field].bare || !suits_metric(*ret))
		return rc;
	return add_metric_twin(p, field, ret);
}

static int parse_or(struct filter_parser *p, struct filter_node **ret);

/* Parses NOT, brackets or a test. */
static int parse_not(struct filter_parser *p, struct filter_node **ret)
{
	int rc;

	if (++p->depth > MAX_DEPTH)
		return err_set(p->err, ERR_USAGE, "%s: nested deeper than %d", p->what, MAX_DEPTH);
	if (lexer_is_word(&p->l, "NOT")) {
		lexer_next(&p->l);
		rc = parse_not(p, ret);
		if (!rc)
			rc = negate_node(p, ret);
	} else if (p->l.kind == LEXER_OPEN) {
		lexer_next(&p->l);
		rc = parse_or(p, ret);
		if (!rc && p->l.kind != LEXER_CLOSE)
			rc = fail_expected(p, ")");
		if (!rc)
			lexer_next(&p->l);
	} else {
		rc = parse_filter_test(p, ret);
	}
	p->depth--;
	return rc;
}

/* One or more operands joined by the word. */
static int parse_joined(struct filter_parser *p, const char *word, struct filter_node **ret)
{
	bool and = word[0] == 'A';
	struct filter_node *both;
	int rc = and? parse_not(p, ret) : parse_joined(p, "AND", ret);

	while (!rc && lexer_is_word(&p->l, word)) {
		lexer_next(&p->l);
		both = add_filter_node(p, and? N_AND : N_OR);
		if (!both)
			return p->err ? p->err->code : ERR_USAGE;
		both->left = *ret;
		rc = and? parse_not(p, &both->right) : parse_joined(p, "AND", &both->right);
		*ret = both;
	}
	return rc;
}

static int parse_or(struct filter_parser *p, struct filter_node **ret)
{
	return parse_joined(p, "OR", ret);
}

/* Parses order_by. */
static int parse_filter_order(struct filter_parser *p)
{
	struct filter *f = p->f;
	size_t i;
	int rc;

	for (;;) {
		struct filter_order *o = &f->order[f->order_count];

		if (f->order_count == FILTER_MAX_ORDER)
			return err_set(p->err, ERR_USAGE, "order_by: more than %d fields", FILTER_MAX_ORDER);
		rc = parse_field(p, false, &o->field);
		if (rc)
			return rc;
		for (i = 0; i < f->order_count; i++)
			if (f->order[i].field == o->field)
				return err_set(p->err, ERR_USAGE, "order_by: a field occurs twice");
		o->descending = lexer_is_word(&p->l, "DESC");
		f->order_count++;
		if (lexer_is_word(&p->l, "DESC") || lexer_is_word(&p->l, "ASC"))
			lexer_next(&p->l);
		if (p->l.kind == LEXER_END)
			return 0;
		if (p->l.kind != LEXER_COMMA)
			return fail_expected(p, "ASC, DESC or a comma");
		lexer_next(&p->l);
	}
}

static int parse_text(struct filter_parser *p, const char *what, const char *text)
{
	p->what = what;
	p->text = text;
	if (strlen(text) > FILTER_MAX_TEXT)
		return err_set(p->err, ERR_USAGE, "%s: longer than %d bytes", what, FILTER_MAX_TEXT);
	lexer_begin(&p->l, &rules, p->a, text);
	return 0;
}

static int parse_both(struct filter_parser *p, const char *filter, const char *order)
{
	int rc = filter && *filter ? parse_text(p, "filter", filter) : 0;

	if (!rc && filter && *filter && p->l.kind != LEXER_END) {
		rc = parse_or(p, &p->f->root);
		if (!rc && p->l.kind != LEXER_END)
			rc = fail_expected(p, "AND, OR or the end");
	}
	p->f->tested_count = p->f->field_count;
	if (!rc && order && *order) {
		rc = parse_text(p, "order_by", order);
		if (!rc && p->l.kind != LEXER_END)
			rc = parse_filter_order(p);
	}
	return rc == ERR_USAGE ? err_field(p->err, "%s", p->what) : rc;
}

int filter_parse(struct filter **ret, struct arena *a, const char *filter, const char *order, struct err *err)
{
	struct err local = ERR_INIT;
	struct filter_parser p = { .a = a, .err = err ? err : &local };
	int rc;

	p.f = arena_alloc(a, sizeof *p.f);
	if (!p.f)
		return err_nomem(err, NULL);
	rc = parse_both(&p, filter, order);
	if (!rc)
		*ret = p.f;
	return rc;
}
