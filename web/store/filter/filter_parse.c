/* filter_parse.c: lexer and recursive-descent parser of our own search grammar. */
#include "web/store/filter/filter_inside.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DEPTH 32

enum token { T_END, T_WORD, T_QUOTED, T_STRING, T_NUMBER, T_OP, T_OPEN, T_CLOSE, T_COMMA, T_BAD };
struct filter_parser {
	struct arena *a;
	struct filter *f;
	const char *what, *text, *at;
	enum token kind;
	char *word;        /* of the token, unquoted; fields: the whole dotted name */
	const char *start; /* of the token */
	int depth, nodes;
	struct err *err;
};

static int fail_expected(struct filter_parser *p, const char *expected)
{
	return err_set(p->err, ERR_USAGE, "%s: expected %s at character %zu, near '%.40s'", p->what, expected,
		       (size_t)(p->start - p->text) + 1, *p->start ? p->start : "the end");
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-/:.", c)) || (unsigned char)c >= 0x80;
}

static char *copy_span(struct filter_parser *p, const char *from, size_t n)
{
	char *copy = arena_alloc(p->a, n + 1);

	if (copy)
		memcpy(copy, from, n);
	return copy;
}

static void read_quoted_token(struct filter_parser *p, enum token kind)
{
	const char *end = strchr(p->at + 1, *p->at);

	if (!end) {
		p->kind = T_BAD;
		return;
	}
	p->word = copy_span(p, p->at + 1, (size_t)(end - p->at - 1));
	p->at = end + 1;
	p->kind = p->word ? kind : T_BAD;
}

static void read_operator_token(struct filter_parser *p)
{
	size_t n = (p->at[0] && p->at[1] == '=' && strchr("!<>=", p->at[0])) || !strncmp(p->at, "<>", 2) ? 2 : 1;

	p->kind = strchr("=<>", p->at[0]) || n == 2 ? T_OP : T_BAD;
	p->word = copy_span(p, p->at, n);
	p->at += n;
}

/* Reads the next token. */
static void next_filter_token(struct filter_parser *p)
{
	char *end;

	while (isspace((unsigned char)*p->at))
		p->at++;
	p->start = p->at;
	p->word = NULL;
	if (!*p->at) {
		p->kind = T_END;
	} else if (*p->at == '\'') {
		read_quoted_token(p, T_STRING);
	} else if (*p->at == '"' || *p->at == '`') {
		read_quoted_token(p, T_QUOTED);
	} else if (strchr("(),", *p->at)) {
		p->kind = *p->at == '(' ? T_OPEN : *p->at == ')' ? T_CLOSE : T_COMMA;
		p->at++;
	} else if (isdigit((unsigned char)*p->at) || (strchr("+-.", *p->at) && (isdigit((unsigned char)p->at[1]) ||
		   p->at[1] == '.'))) {
		strtod(p->at, &end);
		p->word = copy_span(p, p->at, (size_t)(end - p->at));
		p->at = end;
		p->kind = p->word && !is_word_char(*end) ? T_NUMBER : T_BAD;
	} else if (is_word_char(*p->at)) {
		while (is_word_char(*p->at))
			p->at++;
		p->word = copy_span(p, p->start, (size_t)(p->at - p->start));
		p->kind = p->word ? T_WORD : T_BAD;
	} else {
		read_operator_token(p);
	}
}

static bool is_filter_word(const struct filter_parser *p, const char *word)
{
	return p->kind == T_WORD && !strcasecmp(p->word, word);
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
		{ "experiment", FILTER_EXPERIMENT },
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

	ret->key = p->word;
	next_filter_token(p);
	if (ret->entity != FILTER_METRIC || p->kind != T_WORD || *p->word != '.')
		return 0;
	agg = find_aggregate_word(p->word + 1);
	if (agg < 0)
		return fail_expected(p, ".first, .last, .min or .max");
	ret->aggregate = (enum filter_aggregate)agg;
	next_filter_token(p);
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
	char *word = p->word, *dot = strchr(word, '.');
	int entity = dot ? find_filter_entity(word, (size_t)(dot - word)) : -1;

	if (p->kind == T_QUOTED) {
		ret->key = word;
		next_filter_token(p);
		return 0;
	}
	if (entity < 0 && dot)
		return fail_expected(p, "metrics., params., tags. or attributes. before the key");
	if (entity < 0) {
		ret->key = word;
		next_filter_token(p);
		return 0;
	}
	ret->entity = (enum filter_entity)entity;
	if (dot[1]) {
		split_aggregate(ret, dot + 1);
		next_filter_token(p);
		return 0;
	}
	next_filter_token(p);
	return p->kind == T_QUOTED ? parse_quoted_key(p, ret) : fail_expected(p, "a key");
}

/* Parses a field and adds it to the plan. */
static int parse_field(struct filter_parser *p, size_t *ret)
{
	struct filter_field field = { .entity = FILTER_ATTRIBUTE };
	int rc, attribute;

	if (p->kind != T_WORD && p->kind != T_QUOTED)
		return fail_expected(p, "a field such as metrics.loss, params.lr or status");
	rc = parse_key(p, &field);
	if (rc)
		return rc;
	if (!*field.key)
		return fail_expected(p, "a key");
	if (field.entity == FILTER_ATTRIBUTE) {
		attribute = find_attribute_word(field.key);
		if (attribute < 0)
			return err_set(p->err, ERR_USAGE,
				       "%s: there is no attribute '%.60s' (run_id, name, status, start_time, "
				       "end_time, experiment); metrics, params and tags need their prefix", p->what,
					       field.key);
		field.attribute = (enum filter_attribute)attribute;
		field.key = "";
	}
	if (filter_keep_field(p->f, &field, ret))
		return 0;
	return err_set(p->err, ERR_USAGE, "%s: more than %d different fields", p->what, FILTER_MAX_FIELDS);
}

static int parse_filter_value(struct filter_parser *p, const struct filter_field *field, struct filter_value *ret)
{
	bool numeric = field->entity == FILTER_METRIC || (field->entity == FILTER_ATTRIBUTE &&
		       (field->attribute == FILTER_START_TIME || field->attribute == FILTER_END_TIME));

	if (p->kind != T_NUMBER && p->kind != T_STRING && p->kind != T_QUOTED)
		return fail_expected(p, numeric ? "a number" : "a value in quotes");
	ret->present = true;
	ret->text = p->word;
	ret->is_number = filter_number(p->word, &ret->number);
	if (numeric && !ret->is_number)
		return fail_expected(p, "a number");
	next_filter_token(p);
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

	if (p->kind != T_OPEN)
		return fail_expected(p, "( after IN");
	n->values = arena_array(p->a, FILTER_MAX_LIST, sizeof *n->values);
	if (!n->values)
		return err_set(p->err, ERR_NOMEM, "out of memory");
	do {
		next_filter_token(p);
		if (n->value_count == FILTER_MAX_LIST)
			return err_set(p->err, ERR_USAGE, "%s: a list may have at most %d values", p->what,
				       FILTER_MAX_LIST);
		rc = parse_filter_value(p, field, &n->values[n->value_count++]);
		if (rc)
			return rc;
	} while (p->kind == T_COMMA);
	if (p->kind != T_CLOSE)
		return fail_expected(p, ", or )");
	next_filter_token(p);
	return 0;
}

/* Parses LIKE, ILIKE and IN, with an optional NOT. */
static int parse_word_test(struct filter_parser *p, struct filter_node *n, bool *ret_not)
{
	*ret_not = is_filter_word(p, "NOT");
	if (*ret_not)
		next_filter_token(p);
	if (is_filter_word(p, "IN")) {
		n->kind = N_IN;
		next_filter_token(p);
		return parse_filter_list(p, n);
	}
	if (is_filter_word(p, "LIKE") || is_filter_word(p, "ILIKE")) {
		n->kind = is_filter_word(p, "LIKE") ? N_LIKE : N_ILIKE;
		n->values = arena_alloc(p->a, sizeof *n->values);
		next_filter_token(p);
		if (p->kind != T_STRING && p->kind != T_QUOTED)
			return fail_expected(p, "a pattern in quotes");
		if (!n->values)
			return err_set(p->err, ERR_NOMEM, "out of memory");
		n->values->text = p->word;
		next_filter_token(p);
		return 0;
	}
	return fail_expected(p, "a comparison (=, !=, <, <=, >, >=, LIKE, ILIKE, IN, IS NULL)");
}

static int parse_filter_null(struct filter_parser *p, struct filter_node *n, bool *ret_not)
{
	n->kind = N_NULL;
	next_filter_token(p);
	*ret_not = is_filter_word(p, "NOT");
	if (*ret_not)
		next_filter_token(p);
	if (!is_filter_word(p, "NULL"))
		return fail_expected(p, "NULL");
	next_filter_token(p);
	return 0;
}

static int parse_filter_compare(struct filter_parser *p, struct filter_node *n)
{
	static const char *const ops[] = { "=", "!=", "<", "<=", ">", ">=", "==", "<>" };
	static const enum compare_op codes[] = { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_EQ, C_NE };
	int i;

	for (i = 0; i < 8 && strcmp(ops[i], p->word); i++)
		;
	if (i == 8)
		return fail_expected(p, "a comparison");
	n->kind = N_COMPARE;
	n->op = codes[i];
	n->value_count = 1;
	n->values = arena_alloc(p->a, sizeof *n->values);
	if (!n->values)
		return err_set(p->err, ERR_NOMEM, "out of memory");
	next_filter_token(p);
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

/* Parses one test. */
static int parse_filter_test(struct filter_parser *p, struct filter_node **ret)
{
	struct filter_node *n = add_filter_node(p, N_COMPARE), *present;
	bool not = false;
	int rc;

	if (!n)
		return p->err ? p->err->code : ERR_USAGE;
	rc = parse_field(p, &n->field);
	if (rc)
		return rc;
	*ret = n;
	if (p->kind == T_OP)
		return parse_filter_compare(p, n);
	rc = is_filter_word(p, "IS") ? parse_filter_null(p, n, &not) : parse_word_test(p, n, &not);
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
	n = rc ? NULL : add_filter_node(p, N_AND);
	if (!n)
		return p->err ? p->err->code : ERR_USAGE;
	n->left = present;
	n->right = *ret;
	*ret = n;
	return 0;
}

static int parse_or(struct filter_parser *p, struct filter_node **ret);

/* Parses NOT, brackets or a test. */
static int parse_not(struct filter_parser *p, struct filter_node **ret)
{
	int rc;

	if (++p->depth > MAX_DEPTH)
		return err_set(p->err, ERR_USAGE, "%s: nested deeper than %d", p->what, MAX_DEPTH);
	if (is_filter_word(p, "NOT")) {
		next_filter_token(p);
		rc = parse_not(p, ret);
		if (!rc)
			rc = negate_node(p, ret);
	} else if (p->kind == T_OPEN) {
		next_filter_token(p);
		rc = parse_or(p, ret);
		if (!rc && p->kind != T_CLOSE)
			rc = fail_expected(p, ")");
		if (!rc)
			next_filter_token(p);
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
	int rc = and ? parse_not(p, ret) : parse_joined(p, "AND", ret);

	while (!rc && is_filter_word(p, word)) {
		next_filter_token(p);
		both = add_filter_node(p, and ? N_AND : N_OR);
		if (!both)
			return p->err ? p->err->code : ERR_USAGE;
		both->left = *ret;
		rc = and ? parse_not(p, &both->right) : parse_joined(p, "AND", &both->right);
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
		rc = parse_field(p, &o->field);
		if (rc)
			return rc;
		for (i = 0; i < f->order_count; i++)
			if (f->order[i].field == o->field)
				return err_set(p->err, ERR_USAGE, "order_by: a field occurs twice");
		o->descending = is_filter_word(p, "DESC");
		f->order_count++;
		if (is_filter_word(p, "DESC") || is_filter_word(p, "ASC"))
			next_filter_token(p);
		if (p->kind == T_END)
			return 0;
		if (p->kind != T_COMMA)
			return fail_expected(p, "ASC, DESC or a comma");
		next_filter_token(p);
	}
}

static int parse_text(struct filter_parser *p, const char *what, const char *text)
{
	p->what = what;
	p->text = p->at = p->start = text;
	if (strlen(text) > FILTER_MAX_TEXT)
		return err_set(p->err, ERR_USAGE, "%s: longer than %d bytes", what, FILTER_MAX_TEXT);
	next_filter_token(p);
	return 0;
}

static int parse_both(struct filter_parser *p, const char *filter, const char *order)
{
	int rc = filter && *filter ? parse_text(p, "filter", filter) : 0;

	if (!rc && filter && *filter && p->kind != T_END) {
		rc = parse_or(p, &p->f->root);
		if (!rc && p->kind != T_END)
			rc = fail_expected(p, "AND, OR or the end");
	}
	p->f->tested_count = p->f->field_count;
	if (!rc && order && *order) {
		rc = parse_text(p, "order_by", order);
		if (!rc && p->kind != T_END)
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
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = parse_both(&p, filter, order);
	if (!rc)
		*ret = p.f;
	return rc;
}
