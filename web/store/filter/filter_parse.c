/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parse.c: the grammar of filters and orders, for our language and MLflow's: recursive descent. */
#include <stdio.h>
#include <string.h>

#include "web/store/filter/filter_inside.h"

#define MAX_DEPTH 32

static int keep_parsed_field(struct filter_parser *p, const struct filter_field *field, size_t *ret)
{
	if (filter_keep_field(p->f, field, ret))
		return 0;
	return err_set(p->err, ERR_USAGE, "%s: more than %d different fields", p->what, FILTER_MAX_FIELDS);
}

static struct filter_node *add_filter_node(struct filter_parser *p, enum node_kind kind)
{
	struct filter_node *n;

	if (++p->nodes > FILTER_MAX_NODES) {
		err_set(p->err, ERR_USAGE, "%s: more than %d conditions", p->what, FILTER_MAX_NODES);
		return NULL;
	}
	n = arena_alloc(p->a, sizeof(*n));
	n->kind = kind;
	return n;
}

/* --- tests -------------------------------------------------------------------------------------------------- */

/* Parses a list of values in brackets. */
static int parse_filter_list(struct filter_parser *p, const struct filter_ident *id, struct filter_node *n)
{
	int rc;

	if (p->l.kind != LEXER_OPEN)
		return filter_fail(p, "( after IN");
	n->values = arena_array(p->a, FILTER_MAX_LIST, sizeof(*n->values));
	do {
		lexer_next(&p->l);
		if (p->in && p->l.kind == LEXER_CLOSE) /* MLflow allows a comma at the end */
			break;
		if (n->value_count == FILTER_MAX_LIST)
			return err_set(p->err, ERR_USAGE, "%s: a list may have at most %d values", p->what,
				       FILTER_MAX_LIST);
		rc = filter_value_read(p, id, &n->values[n->value_count++]);
		if (rc)
			return rc;
	} while (p->l.kind == LEXER_COMMA);
	if (p->l.kind != LEXER_CLOSE)
		return filter_fail(p, ", or )");
	if (!n->value_count)
		return err_set(p->err, ERR_USAGE, "While parsing a list in the query, expected a non-empty list of "
						  "string values, but got empty list");
	lexer_next(&p->l);
	return 0;
}

static int parse_pattern(struct filter_parser *p, const struct filter_ident *id, struct filter_node *n)
{
	n->values = arena_alloc(p->a, sizeof(*n->values));
	if (p->in)
		return filter_value_read(p, id, n->values);
	if (p->l.kind != LEXER_TEXT && p->l.kind != LEXER_QUOTED)
		return filter_fail(p, "a pattern in quotes");
	n->values->text = p->l.word;
	lexer_next(&p->l);
	return 0;
}

/* Parses LIKE, ILIKE and IN, with an optional NOT. */
static int parse_word_test(struct filter_parser *p, const struct filter_ident *id, struct filter_node *n)
{
	static const struct {
		const char *word;
		enum node_kind kind;
	} tests[] = { { "IN", N_IN }, { "LIKE", N_LIKE }, { "ILIKE", N_ILIKE } };
	char op[48];
	int i, rc;

	n->negated = lexer_is_word(&p->l, "NOT");
	if (n->negated)
		lexer_next(&p->l);
	for (i = 0; i < 3 && !lexer_is_word(&p->l, tests[i].word); i++)
		;
	if (p->l.kind != LEXER_WORD || (i == 3 && !(p->in && n->negated)))
		return filter_fail(p, "a comparison (=, !=, <, <=, >, >=, LIKE, ILIKE, IN, IS NULL)");
	snprintf(op, sizeof(op), "%s%.40s", n->negated ? "NOT " : "", i < 3 ? tests[i].word : p->l.word);
	rc = filter_op_check(p, id, op);
	if (rc)
		return rc;
	n->kind = tests[i].kind;
	lexer_next(&p->l);
	return n->kind == N_IN ? parse_filter_list(p, id, n) : parse_pattern(p, id, n);
}

static int parse_filter_null(struct filter_parser *p, const struct filter_ident *id, struct filter_node *n)
{
	n->kind = N_NULL;
	lexer_next(&p->l);
	n->negated = lexer_is_word(&p->l, "NOT");
	if (n->negated)
		lexer_next(&p->l);
	if (!lexer_is_word(&p->l, "NULL"))
		return filter_fail(p, "NULL");
	lexer_next(&p->l);
	return filter_op_check(p, id, n->negated ? "IS NOT NULL" : "IS NULL");
}

static int parse_filter_compare(struct filter_parser *p, const struct filter_ident *id, struct filter_node *n)
{
	static const char *const ops[] = { "=", "!=", "<", "<=", ">", ">=", "==", "<>" };
	static const enum compare_op codes[] = { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_EQ, C_NE };
	int i, rc = filter_op_check(p, id, p->l.word);

	if (rc)
		return rc;
	for (i = 0; i < 8 && strcmp(ops[i], p->l.word); i++)
		;
	if (i == 8)
		return filter_fail(p, "a comparison");
	n->op = codes[i];
	n->value_count = 1;
	n->values = arena_alloc(p->a, sizeof(*n->values));
	lexer_next(&p->l);
	return filter_value_read(p, id, n->values);
}

static int join_nodes(struct filter_parser *p, enum node_kind kind, struct filter_node *left,
		      struct filter_node **right)
{
	struct filter_node *both = add_filter_node(p, kind);

	if (!both)
		return p->err->code;
	both->left = left;
	both->right = *right;
	*right = both;
	return 0;
}

/* Tests whether a metric can be compared as a test does: with numbers alone. */
static bool suits_metric(const struct filter_node *n)
{
	size_t i;

	for (i = 0; i < n->value_count && n->values[i].is_number; i++)
		;
	return n->kind != N_LIKE && n->kind != N_ILIKE && i == n->value_count;
}

/* Extends the test of a bare name: a run without the param is tested by the metric of that name. */
static int add_metric_twin(struct filter_parser *p, struct filter_node **ret)
{
	struct filter_field twin = { .entity = FILTER_METRIC };
	size_t field = (*ret)->field;
	char *key = arena_strdup(p->a, p->f->fields[field].key);
	struct filter_node *has = add_filter_node(p, N_NULL), *lacks = add_filter_node(p, N_NULL),
			   *other = add_filter_node(p, N_NULL);
	int rc;

	if (!has || !lacks || !other)
		return p->err->code;
	filter_split_aggregate(&twin, key);
	*other = **ret;
	rc = keep_parsed_field(p, &twin, &other->field);
	if (rc)
		return rc;
	p->f->fields[field].twin = other->field + 1;
	has->field = lacks->field = field;
	has->negated = true;
	rc = join_nodes(p, N_AND, has, ret);
	if (!rc)
		rc = join_nodes(p, N_AND, lacks, &other);
	return rc ? rc : join_nodes(p, N_OR, other, ret);
}

/* Parses one test. */
static int parse_filter_test(struct filter_parser *p, struct filter_node **ret)
{
	struct filter_node *n = add_filter_node(p, N_COMPARE);
	struct filter_ident id;
	int rc = n ? filter_ident_read(p, &id) : p->err->code;

	*ret = n;
	if (!rc)
		rc = keep_parsed_field(p, &id.field, &n->field);
	if (rc)
		return rc;
	if (p->l.kind == LEXER_OPERATOR)
		rc = parse_filter_compare(p, &id, n);
	else if (lexer_is_word(&p->l, "IS"))
		rc = parse_filter_null(p, &id, n);
	else
		rc = parse_word_test(p, &id, n);
	return rc || !id.field.bare || !suits_metric(n) ? rc : add_metric_twin(p, ret);
}

/* --- conditions --------------------------------------------------------------------------------------------- */

static int parse_or(struct filter_parser *p, struct filter_node **ret);

/* Parses NOT, brackets or a test. */
static int parse_not(struct filter_parser *p, struct filter_node **ret)
{
	int rc;

	if (p->in) /* MLflow joins tests by AND alone */
		return parse_filter_test(p, ret);
	if (++p->depth > MAX_DEPTH)
		return err_set(p->err, ERR_USAGE, "%s: nested deeper than %d", p->what, MAX_DEPTH);
	if (lexer_is_word(&p->l, "NOT")) {
		lexer_next(&p->l);
		*ret = add_filter_node(p, N_NOT);
		rc = *ret ? parse_not(p, &(*ret)->left) : p->err->code;
	} else if (p->l.kind == LEXER_OPEN) {
		lexer_next(&p->l);
		rc = parse_or(p, ret);
		if (!rc && p->l.kind != LEXER_CLOSE)
			rc = filter_fail(p, ")");
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
			return p->err->code;
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

/* --- order -------------------------------------------------------------------------------------------------- */

/* Parses a field with ASC or DESC. */
static int parse_order_item(struct filter_parser *p)
{
	struct filter *f = p->f;
	struct filter_order *o = &f->order[f->order_count];
	struct filter_ident id;
	size_t i;
	int rc;

	if (f->order_count == FILTER_MAX_ORDER)
		return err_set(p->err, ERR_USAGE, "order_by: more than %d fields", FILTER_MAX_ORDER);
	rc = filter_ident_read(p, &id);
	if (!rc)
		rc = keep_parsed_field(p, &id.field, &o->field);
	if (rc)
		return rc;
	for (i = 0; i < f->order_count; i++)
		if (f->order[i].field == o->field && p->in)
			return err_set(p->err, ERR_USAGE, "`order_by` contains duplicate fields: '%.200s'", p->text);
		else if (f->order[i].field == o->field)
			return err_set(p->err, ERR_USAGE, "order_by: a field occurs twice");
	o->descending = lexer_is_word(&p->l, "DESC");
	f->order_count++;
	if (o->descending || lexer_is_word(&p->l, "ASC"))
		lexer_next(&p->l);
	else if (p->in && p->l.kind == LEXER_WORD)
		return err_set(p->err, ERR_USAGE, "Invalid ordering key in order_by clause '%.200s'.", p->text);
	return 0;
}

/* --- texts -------------------------------------------------------------------------------------------------- */

static int begin_text(struct filter_parser *p, const char *what, const char *text)
{
	static const struct lexer_rules native = { .word = "_-/:.", .operators = "=!<>", .joined = true,
						   .signs = true },
					mlflow = { .operators = "=!<>", .joined = true, .signs = true, .raw = true };

	p->what = what;
	p->text = text;
	if (strlen(text) > FILTER_MAX_TEXT)
		return err_set(p->err, ERR_USAGE, "%s: longer than %d bytes", what, FILTER_MAX_TEXT);
	lexer_begin(&p->l, p->in ? &mlflow : &native, p->a, text);
	return 0;
}

/* Parses a filter; NULL and "": none. */
static int parse_filter_text(struct filter_parser *p, const char *text)
{
	int rc = begin_text(p, "filter", text ? text : "");

	if (!rc && p->l.kind != LEXER_END) {
		rc = p->in ? parse_joined(p, "AND", &p->f->root) : parse_or(p, &p->f->root);
		if (!rc && p->l.kind != LEXER_END)
			rc = filter_fail(p, "AND, OR or the end");
	}
	p->f->tested_count = p->f->field_count;
	p->ordering = true;
	return rc;
}

/* Parses an order: items with commas between them; of MLflow one item. */
static int parse_order_text(struct filter_parser *p, const char *text)
{
	int rc = begin_text(p, "order_by", text);

	if (rc || (!p->in && p->l.kind == LEXER_END))
		return rc;
	rc = parse_order_item(p);
	while (!rc && !p->in && p->l.kind == LEXER_COMMA) {
		lexer_next(&p->l);
		rc = parse_order_item(p);
	}
	return rc || p->l.kind == LEXER_END ? rc : filter_fail(p, "ASC, DESC or a comma");
}

int filter_parse(struct filter **ret, struct arena *a, const char *filter, const char *order, struct err *err)
{
	struct err local = ERR_INIT;
	struct filter_parser p = { .a = a, .f = arena_alloc(a, sizeof(*p.f)), .err = err ? err : &local };
	int rc;

	rc = parse_filter_text(&p, filter);
	if (!rc && order)
		rc = parse_order_text(&p, order);
	if (!rc)
		*ret = p.f;
	return rc == ERR_USAGE ? err_field(p.err, "%s", p.what) : rc;
}

int filter_parse_mlflow(struct filter **ret, struct arena *a, const struct filter_mlflow *text, struct err *err)
{
	struct err local = ERR_INIT;
	struct filter_parser p = { .a = a, .f = arena_alloc(a, sizeof(*p.f)), .in = text, .err = err ? err : &local };
	size_t i;
	int rc;

	p.f->mlflow = true;
	rc = parse_filter_text(&p, text->filter);
	for (i = 0; i < text->order_count && !rc; i++)
		rc = parse_order_text(&p, text->order[i]);
	if (!rc)
		*ret = p.f;
	return rc;
}
