/* SPDX-License-Identifier: Apache-2.0 */
/* formula.c: a recursive-descent parser that compiles a formula to steps of a stack machine. */
#include "web/api/native/formula/derived.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/filter/lexer.h"

#define FORMULA_STEPS_MAX 256
#define FORMULA_DEPTH_MAX 64
#define PARAM_PREFIX "params."

enum step_kind { STEP_NUMBER, STEP_NAME, STEP_ONE, STEP_TWO };

struct formula_step {
	enum step_kind kind;
	double number;
	size_t name;
	double (*one)(double);
	double (*two)(double, double);
};

struct formula {
	struct formula_step steps[FORMULA_STEPS_MAX];
	size_t step_count;
	struct formula_name names[FORMULA_NAMES_MAX];
	size_t name_count;
};

static double add_two_doubles(double a, double b)
{
	return a + b;
}

static double subtract_doubles(double a, double b)
{
	return a - b;
}

static double multiply_doubles(double a, double b)
{
	return a * b;
}

static double divide_doubles(double a, double b)
{
	return a / b;
}

static double negate_double(double a)
{
	return -a;
}

static const struct {
	const char *name;
	double (*one)(double);
	double (*two)(double, double);
} functions[] = {
	{ "abs", fabs, NULL },	  { "exp", exp, NULL },	  { "log", log, NULL },	 { "log2", log2, NULL },
	{ "log10", log10, NULL }, { "sqrt", sqrt, NULL }, { "min", NULL, fmin }, { "max", NULL, fmax },
};

#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

static const struct lexer_rules rules = { .word = "_./:@-", .operators = "+-*/^" };

/* The state of a parse. depth: values on the stack; nested: depth of recursion. */
struct formula_parser {
	struct formula *f;
	const char *text;
	struct lexer l;
	struct arena *a;
	size_t depth, nested;
	struct err *err;
};

static int parse_formula_sum(struct formula_parser *p);

static int fail_formula(struct formula_parser *p, const char *what)
{
	err_set(p->err, ERR_USAGE, "formula: %s at character %zu of '%.200s'", what, (size_t)(p->l.start - p->text) + 1,
		p->text);
	return err_field(p->err, "formula");
}

static bool is_operator(const struct formula_parser *p, const char *any)
{
	return p->l.kind == LEXER_OPERATOR && strchr(any, *p->l.word);
}

/* Adds a step that pops some values from the stack and pushes one. */
static int add_formula_step(struct formula_parser *p, struct formula_step step, size_t takes)
{
	if (p->f->step_count == FORMULA_STEPS_MAX || p->depth - takes + 1 > FORMULA_DEPTH_MAX)
		return fail_formula(p, "too long");
	p->depth = p->depth - takes + 1;
	p->f->steps[p->f->step_count++] = step;
	return 0;
}

static int add_binary_step(struct formula_parser *p, double (*two)(double, double))
{
	return add_formula_step(p, (struct formula_step){ .kind = STEP_TWO, .two = two }, 2);
}

static int add_name_step(struct formula_parser *p, const char *text, size_t n, bool param)
{
	struct formula *f = p->f;
	size_t i;

	for (i = 0; i < f->name_count; i++)
		if (f->names[i].param == param && strlen(f->names[i].text) == n && !memcmp(f->names[i].text, text, n))
			break;
	if (i == FORMULA_NAMES_MAX)
		return fail_formula(p, "too many names");
	if (i == f->name_count) {
		const char *copy = arena_printf(p->a, "%.*s", (int)n, text);

		f->names[f->name_count++] = (struct formula_name){ copy, param };
	}
	return add_formula_step(p, (struct formula_step){ .kind = STEP_NAME, .name = i }, 0);
}

static int expect_token(struct formula_parser *p, enum lexer_token kind, const char *what)
{
	if (p->l.kind != kind)
		return fail_formula(p, what);
	lexer_next(&p->l);
	return 0;
}

static int parse_function_call(struct formula_parser *p, size_t which)
{
	int rc = expect_token(p, LEXER_OPEN, "a function without (");

	if (!rc)
		rc = parse_formula_sum(p);
	if (!rc && functions[which].two) {
		rc = expect_token(p, LEXER_COMMA, "expected a comma: this function takes two values");
		if (!rc)
			rc = parse_formula_sum(p);
	}
	if (!rc)
		rc = expect_token(p, LEXER_CLOSE, "expected )");
	if (rc)
		return rc;
	if (functions[which].two)
		return add_binary_step(p, functions[which].two);
	return add_formula_step(p, (struct formula_step){ .kind = STEP_ONE, .one = functions[which].one }, 1);
}

/* Parses the name of a series or param: KEY, "KEY", params.KEY or params."KEY". */
static int parse_formula_name(struct formula_parser *p)
{
	bool quoted = p->l.kind == LEXER_QUOTED, param = false;
	const char *name = p->l.word;
	size_t prefix = strlen(PARAM_PREFIX);

	if (!quoted && !strncmp(name, PARAM_PREFIX, prefix)) {
		param = true;
		name += prefix;
		quoted = !*name && *p->l.at == '"';
		if (quoted)
			lexer_next(&p->l);
		name = quoted ? p->l.word : name;
		param = quoted || *name;
	}
	if (p->l.kind == LEXER_BAD)
		return fail_formula(p, "a quote is not closed");
	if (quoted && !*name)
		return fail_formula(p, "a name is empty");
	name = *name ? name : p->l.word;
	lexer_next(&p->l);
	return add_name_step(p, name, strlen(name), param);
}

static int parse_name_or_call(struct formula_parser *p)
{
	const char *after = p->l.at;
	size_t i;

	while (isspace((unsigned char)*after))
		after++;
	if (p->l.kind != LEXER_WORD || *after != '(')
		return parse_formula_name(p);
	for (i = 0; i < FUNCTION_COUNT; i++)
		if (!strcmp(functions[i].name, p->l.word)) {
			lexer_next(&p->l);
			return parse_function_call(p, i);
		}
	return fail_formula(p, "unknown function: expected one of abs, exp, log, log2, log10, sqrt, min, max");
}

/* Parses a number, a name, a call or a sum in brackets. */
static int parse_formula_operand(struct formula_parser *p)
{
	double v;
	int rc;

	switch (p->l.kind) {
	case LEXER_OPEN:
		lexer_next(&p->l);
		rc = parse_formula_sum(p);
		return rc ? rc : expect_token(p, LEXER_CLOSE, "expected )");
	case LEXER_NUMBER:
		v = strtod(p->l.word, NULL);
		lexer_next(&p->l);
		return add_formula_step(p, (struct formula_step){ .kind = STEP_NUMBER, .number = v }, 0);
	case LEXER_QUOTED:
		return parse_formula_name(p);
	case LEXER_WORD:
		if (isalpha((unsigned char)*p->l.word) || *p->l.word == '_' || (unsigned char)*p->l.word >= 0x80)
			return parse_name_or_call(p);
		return fail_formula(p, *p->l.word == '.' ? "expected a number" : "expected a name or a number");
	case LEXER_BAD:
		return fail_formula(p, *p->l.start == '"' ? "a quote is not closed" : "expected a name or a number");
	case LEXER_END:
		return fail_formula(p, "the formula is incomplete: expected a name or a number");
	default:
		return fail_formula(p, "expected a name or a number");
	}
}

/* -a ^ b is -(a ^ b), as in Python; a ^ -b is accepted, too. */
static int parse_formula_power(struct formula_parser *p)
{
	bool minus = is_operator(p, "-");
	int rc;

	if (++p->nested > FORMULA_DEPTH_MAX)
		return fail_formula(p, "too deep");
	if (minus)
		lexer_next(&p->l);
	rc = minus ? parse_formula_power(p) : parse_formula_operand(p);
	if (!rc && minus)
		rc = add_formula_step(p, (struct formula_step){ .kind = STEP_ONE, .one = negate_double }, 1);
	else if (!rc && is_operator(p, "^")) {
		lexer_next(&p->l);
		rc = parse_formula_power(p);
		rc = rc ? rc : add_binary_step(p, pow);
	}
	p->nested--;
	return rc;
}

static int parse_formula_product(struct formula_parser *p)
{
	int rc = parse_formula_power(p);

	while (!rc && is_operator(p, "*/")) {
		bool times = *p->l.word == '*';

		lexer_next(&p->l);
		rc = parse_formula_power(p);
		rc = rc ? rc : add_binary_step(p, times ? multiply_doubles : divide_doubles);
	}
	return rc;
}

static int parse_formula_sum(struct formula_parser *p)
{
	int rc = parse_formula_product(p);

	while (!rc && is_operator(p, "+-")) {
		bool plus = *p->l.word == '+';

		lexer_next(&p->l);
		rc = parse_formula_product(p);
		rc = rc ? rc : add_binary_step(p, plus ? add_two_doubles : subtract_doubles);
	}
	return rc;
}

int formula_parse(struct formula **ret, const char *text, struct arena *a, struct err *err)
{
	struct formula *f = arena_alloc(a, sizeof(*f));
	struct formula_parser p = { .f = f, .text = text, .a = a, .err = err };
	int rc;

	f->step_count = f->name_count = 0;
	lexer_begin(&p.l, &rules, a, text);
	rc = parse_formula_sum(&p);
	if (!rc && p.l.kind != LEXER_END)
		rc = fail_formula(&p, "expected an operator");
	if (!rc)
		*ret = f;
	return rc;
}

const struct formula_name *formula_names(const struct formula *f, size_t *ret_count)
{
	*ret_count = f->name_count;
	return f->names;
}

double formula_value(const struct formula *f, const double *values)
{
	double stack[FORMULA_DEPTH_MAX + 1];
	const struct formula_step *s;
	size_t n = 0;

	for (s = f->steps; s < f->steps + f->step_count; s++) {
		switch (s->kind) {
		case STEP_NUMBER:
			stack[n++] = s->number;
			break;
		case STEP_NAME:
			stack[n++] = values[s->name];
			break;
		case STEP_ONE:
			stack[n - 1] = s->one(stack[n - 1]);
			break;
		case STEP_TWO:
			n--;
			stack[n - 1] = s->two(stack[n - 1], stack[n]);
			break;
		}
	}
	return stack[0];
}
