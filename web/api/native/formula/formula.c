/* formula.c: a recursive-descent parser that compiles a formula to steps of a stack machine. */
#include "web/api/native/formula/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	{ "abs", fabs, NULL },   { "exp", exp, NULL },   { "log", log, NULL },   { "log2", log2, NULL },
	{ "log10", log10, NULL }, { "sqrt", sqrt, NULL }, { "min", NULL, fmin }, { "max", NULL, fmax },
};

#define FUNCTION_COUNT (sizeof functions / sizeof functions[0])

/* The state of a parse; at: the next character. depth: values on the stack; nested: depth of recursion. */
struct formula_parser {
	struct formula *f;
	const char *text, *at;
	struct arena *a;
	size_t depth, nested;
	struct err *err;
};

static int parse_formula_sum(struct formula_parser *p);

static int fail_formula(struct formula_parser *p, const char *what)
{
	err_set(p->err, ERR_USAGE, "formula: %s at character %zu of '%.200s'", what, (size_t)(p->at - p->text) + 1,
		p->text);
	return err_field(p->err, "formula");
}

static void skip_formula_blanks(struct formula_parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
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

		if (!copy)
			return err_nomem(p->err, NULL);
		f->names[f->name_count++] = (struct formula_name){ copy, param };
	}
	return add_formula_step(p, (struct formula_step){ .kind = STEP_NAME, .name = i }, 0);
}

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t formula_name_length(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || (at[n] && strchr("_./:@-", at[n])) || (unsigned char)at[n] >= 0x80)
		n++;
	return n;
}

/* Parses a name in quotes. */
static int parse_quoted_name(struct formula_parser *p, bool param)
{
	const char *end = strchr(p->at + 1, '"'), *begin = p->at + 1;

	if (!end || end == begin)
		return fail_formula(p, end ? "an empty name" : "a quote that is not closed");
	p->at = end + 1;
	return add_name_step(p, begin, (size_t)(end - begin), param);
}

static int expect_formula_char(struct formula_parser *p, char c, const char *what)
{
	skip_formula_blanks(p);
	if (*p->at != c)
		return fail_formula(p, what);
	p->at++;
	return 0;
}

static int parse_function_call(struct formula_parser *p, size_t which)
{
	int rc = expect_formula_char(p, '(', "a function without (");

	if (!rc)
		rc = parse_formula_sum(p);
	if (!rc && functions[which].two) {
		rc = expect_formula_char(p, ',', "this function takes two values, a comma is missing");
		if (!rc)
			rc = parse_formula_sum(p);
	}
	if (!rc)
		rc = expect_formula_char(p, ')', "a ) is missing");
	if (rc)
		return rc;
	if (functions[which].two)
		return add_binary_step(p, functions[which].two);
	return add_formula_step(p, (struct formula_step){ .kind = STEP_ONE, .one = functions[which].one }, 1);
}

static int parse_name_or_call(struct formula_parser *p)
{
	const char *begin = p->at, *after;
	size_t n = formula_name_length(begin), i, prefix = strlen(PARAM_PREFIX);

	for (after = begin + n; isspace((unsigned char)*after); after++)
		;
	for (i = 0; *after == '(' && i < FUNCTION_COUNT; i++) {
		if (strlen(functions[i].name) != n || memcmp(functions[i].name, begin, n))
			continue;
		p->at = after;
		return parse_function_call(p, i);
	}
	if (*after == '(')
		return fail_formula(p, "no such function (there are abs exp log log2 log10 sqrt min max)");
	p->at += n;
	if (n == prefix && *p->at == '"' && !memcmp(begin, PARAM_PREFIX, n))
		return parse_quoted_name(p, true);
	if (n > prefix && !memcmp(begin, PARAM_PREFIX, prefix))
		return add_name_step(p, begin + prefix, n - prefix, true);
	return add_name_step(p, begin, n, false);
}

static int parse_formula_number(struct formula_parser *p)
{
	char *end;
	double v = strtod(p->at, &end);

	p->at = end;
	return add_formula_step(p, (struct formula_step){ .kind = STEP_NUMBER, .number = v }, 0);
}

static int parse_formula_operand(struct formula_parser *p)
{
	int rc;

	skip_formula_blanks(p);
	if (*p->at == '(') {
		p->at++;
		rc = parse_formula_sum(p);
		return rc ? rc : expect_formula_char(p, ')', "a ) is missing");
	}
	if (*p->at == '"')
		return parse_quoted_name(p, false);
	if (isdigit((unsigned char)*p->at) || *p->at == '.')
		return isdigit((unsigned char)p->at[*p->at == '.']) ? parse_formula_number(p)
								    : fail_formula(p, "no number");
	if (is_name_start(*p->at))
		return parse_name_or_call(p);
	return fail_formula(p, *p->at ? "neither a name nor a number" : "something is missing");
}

/* -a ^ b is -(a ^ b), as in Python; a ^ -b is accepted, too. */
static int parse_formula_power(struct formula_parser *p)
{
	bool minus;
	int rc;

	skip_formula_blanks(p);
	minus = *p->at == '-';
	if (++p->nested > FORMULA_DEPTH_MAX)
		return fail_formula(p, "too deep");
	p->at += minus;
	rc = minus ? parse_formula_power(p) : parse_formula_operand(p);
	skip_formula_blanks(p);
	if (!rc && minus)
		rc = add_formula_step(p, (struct formula_step){ .kind = STEP_ONE, .one = negate_double }, 1);
	else if (!rc && *p->at == '^') {
		p->at++;
		rc = parse_formula_power(p);
		rc = rc ? rc : add_binary_step(p, pow);
	}
	p->nested--;
	return rc;
}

static int parse_formula_product(struct formula_parser *p)
{
	int rc = parse_formula_power(p);

	for (skip_formula_blanks(p); !rc && (*p->at == '*' || *p->at == '/'); skip_formula_blanks(p)) {
		bool times = *p->at++ == '*';

		rc = parse_formula_power(p);
		rc = rc ? rc : add_binary_step(p, times ? multiply_doubles : divide_doubles);
	}
	return rc;
}

static int parse_formula_sum(struct formula_parser *p)
{
	int rc = parse_formula_product(p);

	for (skip_formula_blanks(p); !rc && (*p->at == '+' || *p->at == '-'); skip_formula_blanks(p)) {
		bool plus = *p->at++ == '+';

		rc = parse_formula_product(p);
		rc = rc ? rc : add_binary_step(p, plus ? add_two_doubles : subtract_doubles);
	}
	return rc;
}

int formula_parse(struct formula **ret, const char *text, struct arena *a, struct err *err)
{
	struct formula *f = arena_alloc(a, sizeof *f);
	struct formula_parser p = { .f = f, .text = text, .at = text, .a = a, .err = err };
	int rc;

	if (!f)
		return err_nomem(err, NULL);
	f->step_count = f->name_count = 0;
	rc = parse_formula_sum(&p);
	if (!rc && *p.at)
		rc = fail_formula(&p, "an operator is missing");
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
