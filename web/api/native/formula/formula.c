/* formula.c: a formula becomes steps of a stack machine. */
#include "web/api/native/formula/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 256
#define DEPTH_MAX 64
#define PARAM "params."

enum step_kind { STEP_NUMBER, STEP_NAME, STEP_ONE, STEP_TWO };

struct step {
	enum step_kind kind;
	double number;
	size_t name;
	double (*one)(double);
	double (*two)(double, double);
};

struct formula {
	struct step steps[STEPS_MAX];
	size_t step_count;
	struct formula_name names[FORMULA_NAMES_MAX];
	size_t name_count;
};

static double add(double a, double b)
{
	return a + b;
}

static double subtract(double a, double b)
{
	return a - b;
}

static double multiply(double a, double b)
{
	return a * b;
}

static double divide(double a, double b)
{
	return a / b;
}

static double negate(double a)
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

#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* The text on its way; at: what comes next. depth: values on the stack; most: how many there ever are. */
struct parser {
	struct formula *f;
	const char *text, *at;
	struct arena *a;
	size_t depth, nested;
	struct err *err;
};

static int sum(struct parser *p);

static int wrong(struct parser *p, const char *what)
{
	err_set(p->err, ERR_USAGE, "formula: %s at character %zu of '%.200s'", what, (size_t)(p->at - p->text) + 1,
		p->text);
	return err_field(p->err, "formula");
}

static void skip(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

/* Adds a step that takes some values from the stack and leaves one there. */
static int put(struct parser *p, struct step step, size_t takes)
{
	if (p->f->step_count == STEPS_MAX || p->depth - takes + 1 > DEPTH_MAX)
		return wrong(p, "too long");
	p->depth = p->depth - takes + 1;
	p->f->steps[p->f->step_count++] = step;
	return 0;
}

static int put_two(struct parser *p, double (*two)(double, double))
{
	return put(p, (struct step){ .kind = STEP_TWO, .two = two }, 2);
}

static int put_name(struct parser *p, const char *text, size_t n, bool param)
{
	struct formula *f = p->f;
	size_t i;

	for (i = 0; i < f->name_count; i++)
		if (f->names[i].param == param && strlen(f->names[i].text) == n && !memcmp(f->names[i].text, text, n))
			break;
	if (i == FORMULA_NAMES_MAX)
		return wrong(p, "too many names");
	if (i == f->name_count) {
		const char *copy = arena_printf(p->a, "%.*s", (int)n, text);

		if (!copy)
			return err_set(p->err, ERR_NOMEM, "out of memory");
		f->names[f->name_count++] = (struct formula_name){ copy, param };
	}
	return put(p, (struct step){ .kind = STEP_NAME, .name = i }, 0);
}

static bool begins_name(char c)
{
	return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t name_length(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || (at[n] && strchr("_./:@-", at[n])) || (unsigned char)at[n] >= 0x80)
		n++;
	return n;
}

/* "a name in quotes" */
static int quoted(struct parser *p, bool param)
{
	const char *end = strchr(p->at + 1, '"'), *begin = p->at + 1;

	if (!end || end == begin)
		return wrong(p, end ? "an empty name" : "a quote that is not closed");
	p->at = end + 1;
	return put_name(p, begin, (size_t)(end - begin), param);
}

static int expect(struct parser *p, char c, const char *what)
{
	skip(p);
	if (*p->at != c)
		return wrong(p, what);
	p->at++;
	return 0;
}

static int call_of(struct parser *p, size_t which)
{
	int rc = expect(p, '(', "a function without (");

	if (!rc)
		rc = sum(p);
	if (!rc && functions[which].two) {
		rc = expect(p, ',', "this function takes two values, a comma is missing");
		if (!rc)
			rc = sum(p);
	}
	if (!rc)
		rc = expect(p, ')', "a ) is missing");
	if (rc)
		return rc;
	if (functions[which].two)
		return put_two(p, functions[which].two);
	return put(p, (struct step){ .kind = STEP_ONE, .one = functions[which].one }, 1);
}

static int name_or_call(struct parser *p)
{
	const char *begin = p->at, *behind;
	size_t n = name_length(begin), i, prefix = strlen(PARAM);

	for (behind = begin + n; isspace((unsigned char)*behind); behind++)
		;
	for (i = 0; *behind == '(' && i < FUNCTIONS; i++) {
		if (strlen(functions[i].name) != n || memcmp(functions[i].name, begin, n))
			continue;
		p->at = behind;
		return call_of(p, i);
	}
	if (*behind == '(')
		return wrong(p, "no such function (there are abs exp log log2 log10 sqrt min max)");
	p->at += n;
	if (n == prefix && *p->at == '"' && !memcmp(begin, PARAM, n))
		return quoted(p, true);
	if (n > prefix && !memcmp(begin, PARAM, prefix))
		return put_name(p, begin + prefix, n - prefix, true);
	return put_name(p, begin, n, false);
}

static int number(struct parser *p)
{
	char *end;
	double v = strtod(p->at, &end);

	p->at = end;
	return put(p, (struct step){ .kind = STEP_NUMBER, .number = v }, 0);
}

static int operand(struct parser *p)
{
	int rc;

	skip(p);
	if (*p->at == '(') {
		p->at++;
		rc = sum(p);
		return rc ? rc : expect(p, ')', "a ) is missing");
	}
	if (*p->at == '"')
		return quoted(p, false);
	if (isdigit((unsigned char)*p->at) || *p->at == '.')
		return isdigit((unsigned char)p->at[*p->at == '.']) ? number(p) : wrong(p, "no number");
	if (begins_name(*p->at))
		return name_or_call(p);
	return wrong(p, *p->at ? "neither a name nor a number" : "something is missing");
}

/* -a ^ b is -(a ^ b), as in Python; a ^ -b is taken too. */
static int power(struct parser *p)
{
	bool minus;
	int rc;

	skip(p);
	minus = *p->at == '-';
	if (++p->nested > DEPTH_MAX)
		return wrong(p, "too deep");
	p->at += minus;
	rc = minus ? power(p) : operand(p);
	skip(p);
	if (!rc && minus)
		rc = put(p, (struct step){ .kind = STEP_ONE, .one = negate }, 1);
	else if (!rc && *p->at == '^') {
		p->at++;
		rc = power(p);
		rc = rc ? rc : put_two(p, pow);
	}
	p->nested--;
	return rc;
}

static int product(struct parser *p)
{
	int rc = power(p);

	for (skip(p); !rc && (*p->at == '*' || *p->at == '/'); skip(p)) {
		bool times = *p->at++ == '*';

		rc = power(p);
		rc = rc ? rc : put_two(p, times ? multiply : divide);
	}
	return rc;
}

static int sum(struct parser *p)
{
	int rc = product(p);

	for (skip(p); !rc && (*p->at == '+' || *p->at == '-'); skip(p)) {
		bool plus = *p->at++ == '+';

		rc = product(p);
		rc = rc ? rc : put_two(p, plus ? add : subtract);
	}
	return rc;
}

int formula_parse(struct formula **ret, const char *text, struct arena *a, struct err *err)
{
	struct formula *f = arena_alloc(a, sizeof *f);
	struct parser p = { .f = f, .text = text, .at = text, .a = a, .err = err };
	int rc;

	if (!f)
		return err_set(err, ERR_NOMEM, "out of memory");
	f->step_count = f->name_count = 0;
	rc = sum(&p);
	if (!rc && *p.at)
		rc = wrong(&p, "an operator is missing");
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
	double stack[DEPTH_MAX + 1];
	const struct step *s;
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
