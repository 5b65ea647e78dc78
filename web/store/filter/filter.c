/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c: shared by both search grammars: the plan, its evaluation, the order of values. */
#include "web/store/filter/filter_inside.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool filter_number(const char *text, double *ret)
{
	char *end;
	double v;

	if (!*text || isspace((unsigned char)*text))
		return false;
	if (!strcmp(text, "NaN") || !strcmp(text, "Infinity") || !strcmp(text, "-Infinity")) {
		*ret = text[0] == 'N' ? NAN : text[0] == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (!strchr("+-.0123456789", *text) || strpbrk(text, "xXnN"))
		return false;
	v = strtod(text, &end);
	if (*end)
		return false;
	*ret = v;
	return true;
}

bool filter_keep_field(struct filter *f, const struct filter_field *want, size_t *ret)
{
	size_t i;

	for (i = 0; i < f->field_count; i++)
		if (f->fields[i].entity == want->entity && f->fields[i].attribute == want->attribute &&
		    f->fields[i].aggregate == want->aggregate && !strcmp(f->fields[i].key, want->key))
			break;
	if (i == FILTER_MAX_FIELDS)
		return false;
	if (i == f->field_count)
		f->fields[f->field_count++] = *want;
	*ret = i;
	return true;
}

size_t filter_field_count(const struct filter *f)
{
	return f->field_count;
}

size_t filter_tested_count(const struct filter *f)
{
	return f->tested_count;
}

const struct filter_field *filter_field(const struct filter *f, size_t i)
{
	return &f->fields[i];
}

size_t filter_order_count(const struct filter *f)
{
	return f->order_count;
}

const struct filter_order *filter_order(const struct filter *f, size_t i)
{
	return &f->order[i];
}

/* % matches any bytes, _ one character. Backtracks to the last % only, so the steps are at most pattern times text. */
static bool matches_like(struct filter *f, const char *pattern, const char *text, bool fold)
{
	const char *star = NULL, *from = NULL;

	while (*text && f->steps++ < FILTER_STEPS_MAX) {
		bool same = *pattern == *text ||
			    (fold && tolower((unsigned char)*pattern) == tolower((unsigned char)*text));

		if (*pattern == '%') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '_') {
			pattern++;
			text++;
			while (((unsigned char)*text & 0xc0) == 0x80)
				text++;
		} else if (*pattern && same) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '%')
		pattern++;
	return !*pattern;
}

static bool is_ordered(enum compare_op op, int order)
{
	switch (op) {
	case C_EQ:
		return order == 0;
	case C_NE:
		return order != 0;
	case C_LT:
		return order < 0;
	case C_LE:
		return order <= 0;
	case C_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

static bool compare_values(const struct filter *f, const struct filter_node *n, const struct filter_value *have,
			   const struct filter_value *want)
{
	const struct filter_field *field = &f->fields[n->field];
	bool textual = have->text && (f->mlflow || !have->is_number || !want->is_number);

	textual |= field->entity == FILTER_ATTRIBUTE && have->text;
	if (textual && want->is_number && !have->is_number && n->op != C_EQ && n->op != C_NE && !f->mlflow &&
	    field->entity == FILTER_PARAM)
		return false;
	if (textual)
		return is_ordered(n->op, strcmp(have->text, want->text));
	if (isnan(have->number) || isnan(want->number))
		return n->op == C_NE ? !(isnan(have->number) && isnan(want->number))
				     : n->op == C_EQ && isnan(have->number) && isnan(want->number);
	return is_ordered(n->op, (have->number > want->number) - (have->number < want->number));
}

static bool list_has_value(struct filter *f, const struct filter_node *n, const struct filter_value *have)
{
	struct filter_node one = *n;
	size_t i;

	one.op = C_EQ;
	f->steps += n->value_count;
	for (i = 0; i < n->value_count; i++)
		if (compare_values(f, &one, have, &n->values[i]))
			return true;
	return false;
}

/* Of several values one must match. */
static bool eval_filter_leaf(struct filter *f, const struct filter_node *n, const struct filter_value *have)
{
	bool hit;

	for (; have && have->present && f->steps++ < FILTER_STEPS_MAX; have = have->more) {
		if (n->kind == N_LIKE || n->kind == N_ILIKE)
			hit = have->text && matches_like(f, n->values->text, have->text, n->kind == N_ILIKE);
		else
			hit = n->kind == N_IN ? list_has_value(f, n, have) : compare_values(f, n, have, n->values);
		if (hit != n->negated)
			return true;
	}
	return false;
}

static bool eval_filter(struct filter *f, const struct filter_node *n, const struct filter_value *values)
{
	switch (n->kind) {
	case N_AND:
		return eval_filter(f, n->left, values) && eval_filter(f, n->right, values);
	case N_OR:
		return eval_filter(f, n->left, values) || eval_filter(f, n->right, values);
	case N_NOT:
		return !eval_filter(f, n->left, values);
	case N_NULL:
		return values[n->field].present == n->negated;
	default:
		return eval_filter_leaf(f, n, &values[n->field]);
	}
}

int filter_match(struct filter *f, const struct filter_value *values, bool *ret, struct err *err)
{
	*ret = !f->root || eval_filter(f, f->root, values);
	if (f->steps <= FILTER_STEPS_MAX)
		return 0;
	err_set(err, ERR_USAGE,
		"the filter takes more than %d million comparisons: shorten its LIKE patterns and lists, or search "
		"fewer experiments",
		FILTER_STEPS_MAX / 1000000);
	return err_field(err, "filter");
}

static int value_class(const struct filter_value *v)
{
	if (!v->present)
		return 3;
	if (v->is_number)
		return isnan(v->number) ? 2 : 0;
	return 1;
}

static int compare_classes(const struct filter_value *a, const struct filter_value *b, const int class[2],
			   bool descending)
{
	int x = class[0], y = class[1], order;

	if (x != y)
		return descending && x < 2 && y < 2 ? y - x : x - y;
	if (x == 0)
		order = (a->number > b->number) - (a->number < b->number);
	else
		order = x == 1 ? strcmp(a->text, b->text) : 0;
	return descending ? -order : order;
}

int filter_compare(const struct filter_value *a, const struct filter_value *b, bool descending)
{
	return compare_classes(a, b, (int[2]){ value_class(a), value_class(b) }, descending);
}

static int finite_class(const struct filter_value *v)
{
	return v->present && v->is_number && !isfinite(v->number) ? 2 : value_class(v);
}

int filter_compare_finite(const struct filter_value *a, const struct filter_value *b, bool descending)
{
	return compare_classes(a, b, (int[2]){ finite_class(a), finite_class(b) }, descending);
}
