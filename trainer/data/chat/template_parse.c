/* SPDX-License-Identifier: Apache-2.0 */
/* template_parse.c: cuts a template at its tags, and parses these by recursive descent. After a failure nothing is left
 * to parse. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/chat/template_inside.h"

struct template_parser {
	struct chat_template *t;
	const char *at, *end;  /* of the template */
	const char *in, *stop; /* rest of the current tag */
	int line, depth;
	bool trims;	   /* white space in front of the next text goes */
	bool line_start;   /* the next text begins a line */
	bool newline;	   /* … after a newline that was dropped */
	const char *ended; /* the word that ended the nodes; NULL: the template ended */
	struct err *err;
};

__attribute__((format(printf, 2, 3))) static void fail_template(struct template_parser *p, const char *fmt, ...)
{
	va_list ap;
	struct buf text;

	if (!p->err->code) {
		buf_init(&text, 400);
		va_start(ap, fmt);
		buf_addvf(&text, fmt, ap);
		va_end(ap);
		err_set(p->err, ERR_USAGE, "%s:%d: %.300s", p->t->name, p->line, text.data ? text.data : "");
		buf_done(&text);
	}
	p->in = p->stop = p->at = p->end;
}

static void enter_nesting(struct template_parser *p)
{
	if (++p->depth > TEMPLATE_NESTING_MAX)
		fail_template(p, "is nested more than %d deep", TEMPLATE_NESTING_MAX);
}

/* ---- the inside of tags ---- */

static void skip_spaces(struct template_parser *p)
{
	for (; p->in < p->stop && isspace((unsigned char)*p->in); p->in++)
		p->line += *p->in == '\n';
}

static size_t measure_name(const struct template_parser *p)
{
	size_t n = 0;

	while (p->in + n < p->stop && (isalnum((unsigned char)p->in[n]) || p->in[n] == '_'))
		n++;
	return n && !isdigit((unsigned char)*p->in) ? n : 0;
}

/* Takes a sign or a whole word if it comes next. */
static bool take_sign(struct template_parser *p, const char *sign)
{
	size_t n = strlen(sign);

	skip_spaces(p);
	if ((size_t)(p->stop - p->in) < n || memcmp(p->in, sign, n) ||
	    (isalpha((unsigned char)*sign) && measure_name(p) != n))
		return false;
	p->in += n;
	return true;
}

static void expect_sign(struct template_parser *p, const char *sign)
{
	if (!take_sign(p, sign))
		fail_template(p, "expected '%s'", sign);
}

static const char *take_name(struct template_parser *p)
{
	size_t n;
	char *name;

	skip_spaces(p);
	n = measure_name(p);
	if (!n)
		return NULL;
	name = arena_alloc(p->t->arena, n + 1);
	memcpy(name, p->in, n);
	p->in += n;
	return name;
}

static const char *expect_name(struct template_parser *p)
{
	const char *name = take_name(p);

	if (!name)
		fail_template(p, "expected a name");
	return name ? name : "";
}

static struct template_expr *new_expr(struct template_parser *p, enum template_expr_kind kind, struct template_expr *a)
{
	struct template_expr *e = arena_alloc(p->t->arena, sizeof(*e));

	e->kind = kind;
	e->line = p->line;
	e->a = a;
	return e;
}

static struct template_expr *parse_expr(struct template_parser *p);

static struct template_expr *make_constant(struct template_parser *p, json_t *value)
{
	struct template_expr *e = new_expr(p, EXPR_VALUE, NULL);

	e->value = value;
	if (!value || json_array_append_new(p->t->values, value))
		fail_template(p, "a constant that is not valid UTF-8, or no memory");
	return e;
}

/* Parses a string with its escapes. */
static struct template_expr *parse_string(struct template_parser *p)
{
	char quote = *p->in++;
	struct buf text;
	struct template_expr *e;

	buf_init(&text, SIZE_MAX);
	for (; p->in < p->stop && *p->in != quote; p->in++) {
		static const char from[] = "nrtbf\\'\"", to[] = "\n\r\t\b\f\\'\"";
		const char *known = *p->in == '\\' && p->in + 1 < p->stop && p->in[1] ? strchr(from, p->in[1]) : NULL;

		p->line += *p->in == '\n';
		if (*p->in == '\\' && !known)
			fail_template(p, "an escape that is not supported");
		else
			buf_addc(&text, known ? to[known - from] : *p->in);
		p->in += known != NULL;
		if (p->err->code)
			break;
	}
	if (p->in == p->stop)
		fail_template(p, "a string without its end");
	else
		p->in++;
	e = make_constant(p, json_stringn(text.data ? text.data : "", text.len));
	buf_done(&text);
	return e;
}

static struct template_expr *parse_number(struct template_parser *p)
{
	char text[32];
	size_t n = 0;
	bool real = false;

	for (; n < sizeof(text) - 1 && p->in < p->stop && (isdigit((unsigned char)*p->in) || (*p->in == '.' && !real));
	     n++) {
		real |= *p->in == '.';
		text[n] = *p->in++;
	}
	text[n] = 0;
	return make_constant(p, real ? json_real(strtod(text, NULL)) : json_integer(strtoll(text, NULL, 10)));
}

/* Adds values up to `close`: arguments, with keywords "name="; items; or keys and values with a colon between them. */
static void parse_values(struct template_parser *p, struct template_expr *e, const char *close)
{
	while (!take_sign(p, close) && !p->err->code) {
		const char *before = p->in, *name = e->kind == EXPR_DICT || e->kind == EXPR_LIST ? NULL : take_name(p);

		if (e->n + 1 + (e->kind == EXPR_DICT) > TEMPLATE_ARGS_MAX) {
			fail_template(p, "more than %d values", TEMPLATE_ARGS_MAX);
			return;
		}
		skip_spaces(p);
		if (name && p->stop - p->in > 1 && p->in[0] == '=' && p->in[1] != '=')
			p->in++, e->keyword[e->n] = name;
		else
			p->in = before;
		e->arg[e->n++] = parse_expr(p);
		if (e->kind == EXPR_DICT) {
			expect_sign(p, ":");
			e->arg[e->n++] = parse_expr(p);
		}
		if (!take_sign(p, ",") && (p->in == p->stop || *p->in != *close))
			fail_template(p, "expected '%s' or a comma", close);
	}
}

/* Moves the arguments to the slots of what is called, which takes no others. */
static void place_args(struct template_parser *p, struct template_expr *e)
{
	const char *slots = template_slots(e->kind, e->name);
	struct template_expr *placed[TEMPLATE_ARGS_MAX] = { NULL };
	int n = 0, at;

	for (const char *s = slots; s && *s; s += strcspn(s, " "), s += *s == ' ')
		n++;
	for (int i = 0; slots && i < e->n; i++) {
		at = e->keyword[i] ? template_word(slots, e->keyword[i]) : i;
		if (at < 0 || at >= n || placed[at]) {
			fail_template(p, "%.40s: an argument that is not supported", e->name);
			return;
		}
		placed[at] = e->arg[i];
	}
	if (!slots)
		fail_template(p, "the %s '%.40s' is not supported",
			      e->kind == EXPR_METHOD   ? "method"
			      : e->kind == EXPR_FILTER ? "filter"
						       : "test",
			      e->name);
	memcpy(e->arg, placed, sizeof(placed));
	e->n = n;
}

/* Parses a constant, a name, a call, a list, a dictionary, or what is in parentheses. */
static struct template_expr *parse_atom(struct template_parser *p)
{
	static const char constants[] = "true True false False none None";
	struct template_expr *e;
	const char *name;
	int constant;

	skip_spaces(p);
	if (p->in < p->stop && (*p->in == '\'' || *p->in == '"'))
		return parse_string(p);
	if (p->in < p->stop && isdigit((unsigned char)*p->in))
		return parse_number(p);
	if (take_sign(p, "(")) {
		e = parse_expr(p);
		expect_sign(p, ")");
		return e;
	}
	if (take_sign(p, "[") || take_sign(p, "{")) {
		e = new_expr(p, p->in[-1] == '[' ? EXPR_LIST : EXPR_DICT, NULL);
		parse_values(p, e, e->kind == EXPR_LIST ? "]" : "}");
		return e;
	}
	name = take_name(p);
	if (!name)
		fail_template(p, p->in == p->stop ? "an expression is missing" : "'%.*s' is not supported",
			      (int)(p->stop - p->in < 20 ? p->stop - p->in : 20), p->in);
	constant = name ? template_word(constants, name) : 5;
	if (constant >= 0)
		return make_constant(p, constant < 2 ? json_true() : constant < 4 ? json_false() : json_null());
	e = new_expr(p, EXPR_NAME, NULL);
	e->name = name;
	if (take_sign(p, "(")) {
		e->kind = EXPR_CALL;
		parse_values(p, e, ")");
		if (template_slots(EXPR_CALL, name))
			place_args(p, e);
	}
	return e;
}

/* Parses [b] and [b:c:d] after a value. */
static void parse_subscript(struct template_parser *p, struct template_expr *e)
{
	for (e->n = 0; e->n < 3; e->kind = EXPR_SLICE) {
		skip_spaces(p);
		if (p->in < p->stop && *p->in != ':' && *p->in != ']')
			e->arg[e->n] = parse_expr(p);
		e->n++;
		if (e->n == 3 || !take_sign(p, ":"))
			break;
	}
	expect_sign(p, "]");
	if (e->kind == EXPR_ITEM && !e->arg[0])
		fail_template(p, "an index is missing");
}

/* Parses members, indices and methods after a value. */
static struct template_expr *parse_postfix(struct template_parser *p, struct template_expr *a)
{
	for (;;) {
		struct template_expr *e = new_expr(p, EXPR_ITEM, a);

		if (take_sign(p, "[")) {
			parse_subscript(p, e);
		} else if (take_sign(p, ".")) {
			e->name = expect_name(p);
			if (take_sign(p, "(")) {
				e->kind = EXPR_METHOD;
				parse_values(p, e, ")");
				place_args(p, e);
			} else {
				e->arg[e->n++] = make_constant(p, json_string(e->name));
			}
		} else {
			return a;
		}
		a = e;
	}
}

/* Parses filters and tests after a value. */
static struct template_expr *parse_filters(struct template_parser *p, struct template_expr *a)
{
	for (;;) {
		bool filter = take_sign(p, "|"), not;
		struct template_expr *e;

		if (!filter && !take_sign(p, "is"))
			return a;
		not = !filter && take_sign(p, "not");
		e = new_expr(p, filter ? EXPR_FILTER : EXPR_TEST, a);
		e->name = expect_name(p);
		if (take_sign(p, "("))
			parse_values(p, e, ")");
		place_args(p, e);
		a = not ? new_expr(p, EXPR_NOT, e) : e;
	}
}

static struct template_expr *new_binary(struct template_parser *p, enum template_op op, struct template_expr *a,
					struct template_expr *b)
{
	struct template_expr *e = new_expr(p, EXPR_BINARY, a);

	e->op = op;
	e->arg[e->n++] = b;
	return e;
}

static struct template_expr *parse_unary(struct template_parser *p, bool filters)
{
	struct template_expr *e;

	enter_nesting(p);
	e = take_sign(p, "-") ? new_binary(p, OP_SUB, make_constant(p, json_integer(0)), parse_unary(p, false))
			      : parse_atom(p);
	e = parse_postfix(p, e);
	p->depth--;
	return filters ? parse_filters(p, e) : e;
}

#define LEVEL_NOT 2
#define LEVEL_COMPARE 3
#define LEVEL_UNARY 7

static const struct {
	const char *sign;
	int level;
} operators[] = { { "or", 0 }, { "and", 1 }, { "==", 3 }, { "!=", 3 },	{ "<=", 3 }, { ">=", 3 },
		  { "<", 3 },  { ">", 3 },   { "in", 3 }, { "not", 3 }, { "+", 4 },  { "-", 4 },
		  { "~", 5 },  { "//", 6 },  { "*", 6 },  { "/", 6 },	{ "%", 6 } };

/* Takes an operator of a level: an enum template_op, or -1. */
static int take_operator(struct template_parser *p, int level)
{
	const char *before = p->in;

	for (int op = 0; op < (int)(sizeof(operators) / sizeof(*operators)); op++)
		if (operators[op].level == level && take_sign(p, operators[op].sign)) {
			if (op != OP_NOT_IN || take_sign(p, "in"))
				return op;
			p->in = before;
		}
	return -1;
}

static struct template_expr *parse_level(struct template_parser *p, int level)
{
	struct template_expr *e;
	int op, n = 0;

	if (level == LEVEL_UNARY)
		return parse_unary(p, true);
	enter_nesting(p);
	if (level == LEVEL_NOT && take_sign(p, "not"))
		e = new_expr(p, EXPR_NOT, parse_level(p, LEVEL_NOT));
	else
		e = parse_level(p, level + 1);
	while (level != LEVEL_NOT && (op = take_operator(p, level)) >= 0) {
		if (level == LEVEL_COMPARE && n++)
			fail_template(p, "a chain of comparisons is not supported");
		e = new_binary(p, (enum template_op)op, e, parse_level(p, level + 1));
	}
	p->depth--;
	return e;
}

static struct template_expr *parse_expr(struct template_parser *p)
{
	struct template_expr *e = parse_level(p, 0), *chosen;

	if (!take_sign(p, "if"))
		return e;
	chosen = new_expr(p, EXPR_IF, e);
	chosen->arg[chosen->n++] = parse_level(p, 0);
	enter_nesting(p);
	if (take_sign(p, "else"))
		chosen->arg[chosen->n++] = parse_expr(p);
	p->depth--;
	return chosen;
}

/* ---- texts and tags ---- */

/* Finds the end of the tag whose inside begins at p->at, outside of strings. */
static void open_tag(struct template_parser *p, char close)
{
	const char *at = p->at;
	char quote = 0;
	int braces = 0;

	for (; at + 1 < p->end; at++) {
		if (quote) {
			at += *at == '\\';
			quote = at < p->end && *at == quote ? 0 : quote;
		} else if (close != '#' && (*at == '\'' || *at == '"')) {
			quote = *at;
		} else if (close == '}' && (*at == '{' || (*at == '}' && braces))) {
			braces += *at == '{' ? 1 : -1;
		} else if (*at == close && at[1] == '}') {
			break;
		}
	}
	if (at + 1 >= p->end) {
		fail_template(p, "a tag without its end");
		return;
	}
	p->trims = at > p->at && at[-1] == '-';
	p->in = p->at;
	p->stop = at - (p->trims || (at > p->at && at[-1] == '+'));
	p->line_start = close != '}' && at + 2 < p->end && at[2] == '\n' && at[-1] != '+';
	p->newline = p->line_start && !p->trims;
	p->at = at + 2 + p->newline;
}

static struct template_node *new_node(struct template_parser *p, enum template_node_kind kind)
{
	struct template_node *n = arena_alloc(p->t->arena, sizeof(*n));

	n->kind = kind;
	n->line = p->line;
	return n;
}

/* Takes the text up to the next tag, trimmed as the tags around it say. NULL: none. *ret_tag: the sign after "{"; 0:
 * the template ends. */
static struct template_node *take_text(struct template_parser *p, char *ret_tag)
{
	struct template_node *n = new_node(p, NODE_TEXT);
	const char *begin = p->at, *at = begin, *line, *end;

	p->line += p->newline;
	p->newline = false;
	while (at + 1 < p->end && !(at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')))
		at++;
	*ret_tag = at + 1 < p->end ? at[1] : 0;
	end = *ret_tag ? at : p->end;
	p->at = *ret_tag ? at + 2 : p->end;
	for (const char *c = begin; c < end; c++)
		p->line += *c == '\n';
	while (p->trims && begin < end && isspace((unsigned char)*begin))
		begin++;
	for (line = end; line > begin && (line[-1] == ' ' || line[-1] == '\t'); line--)
		;
	if (*ret_tag && p->at < p->end && (*p->at == '-' || *p->at == '+')) {
		while (*p->at == '-' && end > begin && isspace((unsigned char)end[-1]))
			end--;
		p->at++;
	} else if (*ret_tag && *ret_tag != '{' && (line > begin ? line[-1] == '\n' : p->line_start)) {
		end = line;
	}
	n->text = begin;
	n->n_text = (size_t)(end - begin);
	return n->n_text ? n : NULL;
}

static struct template_node *parse_nodes(struct template_parser *p, const char *ends);

static void parse_names(struct template_parser *p, struct template_node *n)
{
	do
		n->name[n->n++] = expect_name(p);
	while (take_sign(p, ",") && n->n < TEMPLATE_ARGS_MAX);
}

static void parse_for(struct template_parser *p, struct template_node *n)
{
	parse_names(p, n);
	expect_sign(p, "in");
	n->expr = parse_level(p, 0);
	if (take_sign(p, "if"))
		n->filter = parse_expr(p);
	n->body = parse_nodes(p, "endfor else");
	if (p->ended && !strcmp(p->ended, "else"))
		n->other = parse_nodes(p, "endfor");
}

static void parse_if(struct template_parser *p, struct template_node *n)
{
	n->expr = parse_expr(p);
	n->body = parse_nodes(p, "endif elif else");
	if (p->ended && !strcmp(p->ended, "else")) {
		n->other = parse_nodes(p, "endif");
	} else if (p->ended && !strcmp(p->ended, "elif")) {
		n->other = new_node(p, NODE_IF);
		enter_nesting(p);
		parse_if(p, n->other);
		p->depth--;
	}
}

static void parse_assignment(struct template_parser *p, struct template_node *n)
{
	parse_names(p, n);
	if (take_sign(p, "."))
		n->text = expect_name(p);
	skip_spaces(p);
	if (p->in == p->stop && n->n == 1 && !n->text) {
		n->body = parse_nodes(p, "endset");
	} else {
		expect_sign(p, "=");
		n->expr = parse_expr(p);
	}
}

static void parse_macro(struct template_parser *p, struct template_node *n)
{
	n->text = expect_name(p);
	expect_sign(p, "(");
	while (!take_sign(p, ")") && !p->err->code) {
		n->name[n->n] = expect_name(p);
		if (take_sign(p, "="))
			n->initial[n->n] = parse_expr(p);
		if (++n->n == TEMPLATE_ARGS_MAX)
			fail_template(p, "macro: more than %d parameters", TEMPLATE_ARGS_MAX - 1);
		take_sign(p, ",");
	}
	n->body = parse_nodes(p, "endmacro");
}

static void parse_generation(struct template_parser *p, struct template_node *n)
{
	n->body = parse_nodes(p, "endgeneration");
}

/* Parses the rest of a block tag after its word, and what it encloses. */
static struct template_node *parse_block(struct template_parser *p, const char *word)
{
	static void (*const parse[])(struct template_parser *p, struct template_node *n) = {
		parse_assignment, parse_for, parse_if, parse_macro, NULL, NULL, parse_generation
	};
	int kind = template_word("set for if macro break continue generation", word);
	struct template_node *n = new_node(p, (enum template_node_kind)(NODE_SET + kind));

	if (kind < 0)
		fail_template(p, "the block '%.40s' is not supported", word);
	else if (parse[kind])
		parse[kind](p, n);
	p->ended = NULL;
	return n;
}

/* Parses a tag. Returns its node; NULL: it has none, or it ends the nodes (p->ended). */
static struct template_node *parse_tag(struct template_parser *p, char tag, const char *ends)
{
	struct template_node *n = NULL;

	open_tag(p, tag == '{' ? '}' : tag);
	if (tag == '#') {
		for (; p->in < p->stop; p->in++)
			p->line += *p->in == '\n';
	} else if (tag == '{') {
		n = new_node(p, NODE_OUTPUT);
		n->expr = parse_expr(p);
	} else {
		const char *word = expect_name(p);

		if (template_word(ends, word) < 0)
			n = parse_block(p, word);
		else
			p->ended = word;
	}
	skip_spaces(p);
	if (p->in < p->stop && !(p->ended && !strcmp(p->ended, "elif")))
		fail_template(p, "'%.*s' is not supported here", (int)(p->stop - p->in < 20 ? p->stop - p->in : 20),
			      p->in);
	return n;
}

/* Parses nodes up to a block of one of the words `ends`; NULL: to the end of the template. */
static struct template_node *parse_nodes(struct template_parser *p, const char *ends)
{
	struct template_node *first = NULL, **to = &first, *n;
	char tag = ' ';

	skip_spaces(p);
	if (p->in < p->stop)
		fail_template(p, "'%.*s' is not supported here", (int)(p->stop - p->in < 20 ? p->stop - p->in : 20),
			      p->in);
	enter_nesting(p);
	for (p->ended = NULL; !p->ended && tag && !p->err->code;) {
		n = take_text(p, &tag);
		if (n)
			*to = n, to = &n->next;
		n = tag ? parse_tag(p, tag, ends) : NULL;
		if (n)
			*to = n, to = &n->next;
	}
	p->depth--;
	if (!p->ended && ends)
		fail_template(p, "the block's %.*s is missing", (int)strcspn(ends, " "), ends);
	return first;
}

void template_parse(struct chat_template *t, const char *text, size_t n, struct err *err)
{
	struct template_parser p = { .t = t, .at = text, .end = text + n, .line = 1, .line_start = true, .err = err };

	p.in = p.stop = p.at;
	if (n && text[n - 1] == '\n')
		p.end--;
	t->first = parse_nodes(&p, NULL);
}
