/* SPDX-License-Identifier: Apache-2.0 */
/* template_values.c: the operators, filters, tests and methods of values, as Python and Jinja define them. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/chat/template_inside.h"

#define WHOLE_MAX 9e15 /* whole numbers up to this are exact in a double */

bool template_true(const json_t *v)
{
	if (json_is_string(v))
		return json_string_length(v) > 0;
	if (json_is_array(v))
		return json_array_size(v) > 0;
	if (json_is_object(v))
		return json_object_size(v) > 0;
	return json_is_number(v) ? json_number_value(v) != 0 : json_is_true(v);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v) || json_is_boolean(v);
}

static double number_of(const json_t *v)
{
	return json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
}

int template_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (int i = 0; list && *list; i++, list += strcspn(list, " "), list += *list == ' ')
		if (strcspn(list, " ") == n && !memcmp(list, word, n))
			return i;
	return -1;
}

/* Fails an expression: undefined. */
static json_t *refuse_value(struct err *err, const char *why)
{
	if (!err->code)
		err_set(err, ERR_USAGE, "%s", why);
	return NULL;
}

/* ---- texts of values ---- */

struct printing {
	struct buf *to;
	bool json;
	long long indent; /* < 0: on one line */
};

static void add_real(struct buf *to, double v)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_addf(to, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

/* Adds a text in quotes, as JSON or as Python's repr. */
static void add_quoted(const struct printing *p, const char *text, size_t n)
{
	const char quote = p->json || (memchr(text, '\'', n) && !memchr(text, '"', n)) ? '"' : '\'';
	static const char from[] = "\\\n\r\t\b\f", as[] = "\\nrtbf";

	buf_addc(p->to, quote);
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];
		const char *known = c ? strchr(from, c) : NULL;

		if (known && (p->json || known < from + 4))
			buf_addf(p->to, "\\%c", as[known - from]);
		else if (c == quote)
			buf_addf(p->to, "\\%c", quote);
		else if (c < 0x20 || (c == 0x7f && !p->json))
			buf_addf(p->to, p->json ? "\\u%04x" : "\\x%02x", c);
		else
			buf_addc(p->to, text[i]);
	}
	buf_addc(p->to, quote);
}

static void print_value(const struct printing *p, const json_t *v, int depth);

/* Prints a list or a dictionary. */
static void print_members(const struct printing *p, const json_t *v, int depth)
{
	const bool object = json_is_object(v);
	const size_t n = object ? json_object_size(v) : json_array_size(v);
	void *at = object ? json_object_iter((json_t *)v) : NULL;

	buf_addc(p->to, object ? '{' : '[');
	for (size_t i = 0; i < n && !buf_failed(p->to); i++) {
		if (i)
			buf_adds(p->to, p->indent < 0 ? ", " : ",");
		if (p->indent >= 0)
			buf_addf(p->to, "\n%*s", (int)p->indent * (depth + 1), "");
		if (object) {
			add_quoted(p, json_object_iter_key(at), strlen(json_object_iter_key(at)));
			buf_adds(p->to, ": ");
		}
		print_value(p, object ? json_object_iter_value(at) : json_array_get(v, i), depth + 1);
		at = object ? json_object_iter_next((json_t *)v, at) : NULL;
	}
	if (n && p->indent >= 0)
		buf_addf(p->to, "\n%*s", (int)p->indent * depth, "");
	buf_addc(p->to, object ? '}' : ']');
}

static void print_value(const struct printing *p, const json_t *v, int depth)
{
	if (json_is_string(v))
		add_quoted(p, json_string_value(v), json_string_length(v));
	else if (json_is_integer(v))
		buf_addf(p->to, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		add_real(p->to, json_real_value(v));
	else if (json_is_boolean(v))
		buf_adds(p->to, json_is_true(v) ? (p->json ? "true" : "True") : p->json ? "false" : "False");
	else if (!v || json_is_null(v))
		buf_adds(p->to, p->json ? "null" : v ? "None" : "");
	else
		print_members(p, v, depth);
}

/* Prints a value that is not nested too deeply. */
static void print_bounded(const struct printing *p, const json_t *v, struct err *err)
{
	if (template_measure(v, NULL, TEMPLATE_STEPS_MAX) > TEMPLATE_STEPS_MAX)
		refuse_value(err, "a value that is too large, or nested too deeply");
	else
		print_value(p, v, 0);
	if (buf_failed(p->to))
		refuse_value(err, "a text of more than 16 MiB");
}

void template_print(struct buf *to, const json_t *v, struct err *err)
{
	if (json_is_string(v))
		buf_add(to, json_string_value(v), json_string_length(v));
	else
		print_bounded(&(struct printing){ to, false, -1 }, v, err);
	if (buf_failed(to))
		refuse_value(err, "a text of more than 16 MiB");
}

static long measure_below(const json_t *v, const json_t *without, long most, int depth)
{
	const char *key;
	json_t *item;
	size_t i;
	long n = 1;

	if (depth > TEMPLATE_NESTING_MAX || (without && v == without))
		return most + 1;
	if (json_is_array(v)) {
		json_array_foreach(v, i, item)
			if (n <= most)
				n += measure_below(item, without, most - n, depth + 1);
	} else if (json_is_object(v)) {
		json_object_foreach((json_t *)v, key, item)
			if (n <= most)
				n += measure_below(item, without, most - n, depth + 1);
	}
	return n;
}

long template_measure(const json_t *v, const json_t *without, long most)
{
	return measure_below(v, without, most, 0);
}

/* Takes the text of a buffer as a value. */
static json_t *take_text_value(struct buf *text, struct err *err)
{
	json_t *v = buf_failed(text) ? refuse_value(err, "a text of more than 16 MiB")
		    : err->code	     ? NULL
				     : json_stringn_nocheck(text->data ? text->data : "", text->len);

	buf_done(text);
	return v;
}

/* ---- indices and slices ---- */

static const char *skip_characters(const char *at, const char *end, long long n)
{
	for (; n > 0 && at < end; n--) {
		size_t step = utf8_step((const unsigned char *)at, (size_t)(end - at));

		at += step ? step : 1;
	}
	return at;
}

static long long count_of(const json_t *v)
{
	return json_is_string(v)  ? (long long)utf8_chars(json_string_value(v))
	       : json_is_array(v) ? (long long)json_array_size(v)
				  : (long long)json_object_size(v);
}

static json_t *cut_text(const json_t *v, long long begin, long long n)
{
	const char *end = json_string_value(v) + json_string_length(v);
	const char *at = skip_characters(json_string_value(v), end, begin);

	return json_stringn_nocheck(at, (size_t)(skip_characters(at, end, n) - at));
}

static json_t *get_at(json_t *v, long long i)
{
	return json_is_string(v) ? cut_text(v, i, 1) : json_incref(json_array_get(v, (size_t)i));
}

json_t *template_item(json_t *v, const json_t *key, struct err *err)
{
	long long n, i;

	if (!v)
		return refuse_value(err, "a member of a value that is undefined");
	if (json_is_object(v) && json_is_string(key))
		return json_incref(json_object_get(v, json_string_value(key)));
	if ((!json_is_array(v) && !json_is_string(v)) || !json_is_integer(key))
		return NULL;
	n = count_of(v);
	i = json_integer_value(key);
	i += i < 0 ? n : 0;
	return i >= 0 && i < n ? get_at(v, i) : NULL;
}

json_t *template_slice(json_t *v, json_t *const part[3], struct err *err)
{
	long long n = count_of(v), step = json_is_integer(part[2]) ? json_integer_value(part[2]) : 1, bound[2];
	json_t *list;

	if (!json_is_array(v) && !json_is_string(v))
		return refuse_value(err, "a slice of a value that is neither list nor text");
	if (!step || (json_is_string(v) && step != 1))
		return refuse_value(err, "a slice with step 0, or of a text with a step");
	step = step > n + 1 ? n + 1 : step < -n - 1 ? -n - 1 : step;
	for (int i = 0; i < 2; i++) {
		const long long low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;

		bound[i] = json_is_integer(part[i]) ? json_integer_value(part[i]) : (i == 0) == (step > 0) ? low : high;
		if (json_is_integer(part[i]) && bound[i] < 0)
			bound[i] += n;
		bound[i] = bound[i] < low ? low : bound[i] > high ? high : bound[i];
	}
	if (json_is_string(v))
		return cut_text(v, bound[0], bound[1] - bound[0]);
	list = json_array();
	for (long long i = bound[0]; step > 0 ? i < bound[1] : i > bound[1]; i += step)
		json_array_append(list, json_array_get(v, (size_t)i));
	return list;
}

/* ---- operators ---- */

static bool equals_value(const json_t *a, const json_t *b)
{
	if (is_number(a) && is_number(b))
		return number_of(a) == number_of(b);
	return a == b || (a && b && json_equal(a, b));
}

static json_t *join_values(const json_t *a, const json_t *b, struct err *err)
{
	struct buf text;

	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	template_print(&text, a, err);
	template_print(&text, b, err);
	return take_text_value(&text, err);
}

static json_t *find_value(const json_t *in, const json_t *v, bool wanted, struct err *err)
{
	const json_t *item;
	bool found = false;
	size_t i;

	if (!json_is_string(in) && !json_is_array(in) && !json_is_object(in))
		return refuse_value(err, "in: the right side is neither text, list nor dictionary");
	if (json_is_string(in) && !json_is_string(v))
		return refuse_value(err, "in: a text holds texts only");
	if (json_is_string(in))
		found = memmem(json_string_value(in), json_string_length(in), json_string_value(v),
			       json_string_length(v));
	else if (json_is_object(in))
		found = json_is_string(v) && json_object_get(in, json_string_value(v));
	json_array_foreach(in, i, item)
		found |= equals_value(item, v);
	return json_boolean(found == wanted);
}

static json_t *compute_numbers(enum template_op op, const json_t *a, const json_t *b, struct err *err)
{
	const bool whole = !json_is_real(a) && !json_is_real(b) && op != OP_DIV;
	const double x = number_of(a), y = number_of(b);
	double v = op == OP_ADD ? x + y : op == OP_SUB ? x - y : x * y;

	if (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) {
		if (y == 0)
			return refuse_value(err, "a division by zero");
		v = op == OP_DIV ? x / y : op == OP_FLOORDIV ? floor(x / y) : x - y * floor(x / y);
	}
	if (whole && !(fabs(v) < WHOLE_MAX && fabs(x) < WHOLE_MAX && fabs(y) < WHOLE_MAX))
		return refuse_value(err, "a number beyond 9e15");
	return !isfinite(v) ? refuse_value(err, "a number that is not finite")
	       : whole	    ? json_integer((json_int_t)v)
			    : json_real(v);
}

static json_t *order_values(enum template_op op, const json_t *a, const json_t *b, struct err *err)
{
	int order;

	if (is_number(a) && is_number(b))
		order = (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
	else if (json_is_string(a) && json_is_string(b))
		order = strcmp(json_string_value(a), json_string_value(b));
	else
		return refuse_value(err, "a comparison of values of different types");
	return json_boolean(op == OP_LT ? order < 0 : op == OP_LE ? order <= 0 : op == OP_GT ? order > 0 : order >= 0);
}

static json_t *repeat_text(const json_t *v, long long n, struct err *err)
{
	struct buf text;

	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	for (long long i = 0; json_string_length(v) && i < n && !buf_failed(&text); i++)
		buf_add(&text, json_string_value(v), json_string_length(v));
	return take_text_value(&text, err);
}

json_t *template_binary(enum template_op op, json_t *a, json_t *b, struct err *err)
{
	json_t *list;

	if (op == OP_JOIN || (op == OP_ADD && json_is_string(a) && json_is_string(b)))
		return join_values(a, b, err);
	/* a comparison takes no more steps than its smaller side has values */
	if (op >= OP_EQ && op <= OP_NOT_IN && template_measure(a, NULL, TEMPLATE_STEPS_MAX) > TEMPLATE_STEPS_MAX)
		return refuse_value(err, "a comparison of a value that is too large");
	if (op == OP_EQ || op == OP_NE)
		return json_boolean(equals_value(a, b) == (op == OP_EQ));
	if (op == OP_IN || op == OP_NOT_IN)
		return find_value(b, a, op == OP_IN, err);
	if (op >= OP_LE && op <= OP_GT)
		return order_values(op, a, b, err);
	if (op == OP_ADD && json_is_array(a) && json_is_array(b)) {
		list = json_copy(a);
		json_array_extend(list, b);
		return list;
	}
	if (op == OP_MUL && json_is_string(a) && json_is_integer(b))
		return repeat_text(a, json_integer_value(b), err);
	if (!is_number(a) || !is_number(b))
		return refuse_value(err, "an operator between values that it cannot compute with");
	return compute_numbers(op, a, b, err);
}

/* ---- methods and filters ---- */

/* Python's white space, by UTF-8. */
static bool is_python_space(const char *at, size_t n)
{
	static const char *const wide[] = { "\xc2\x85",	    "\xc2\xa0",	    "\xe1\x9a\x80", "\xe2\x80\xa8",
					    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80" };

	if (n == 1)
		return (*at >= 9 && *at <= 13) || (*at >= 0x1c && *at <= 0x20);
	if (n == 3 && !memcmp(at, "\xe2\x80", 2) && (unsigned char)at[2] >= 0x80 && (unsigned char)at[2] <= 0x8a)
		return true;
	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
		if (n == strlen(wide[i]) && !memcmp(at, wide[i], n))
			return true;
	return false;
}

/* Returns true if a character is to be stripped: one of `set`, or white space. */
static bool is_stripped(const json_t *set, const char *at, size_t n)
{
	return json_is_string(set) ? memmem(json_string_value(set), json_string_length(set), at, n) != NULL
				   : is_python_space(at, n);
}

static json_t *strip_text(const json_t *v, const json_t *set, bool left, bool right)
{
	const char *begin = json_string_value(v), *end = begin + json_string_length(v), *last;

	while (left && begin < end && is_stripped(set, begin, (size_t)(skip_characters(begin, end, 1) - begin)))
		begin = skip_characters(begin, end, 1);
	for (; right && begin < end; end = last) {
		for (last = end - 1; last > begin && ((unsigned char)*last & 0xC0) == 0x80; last--)
			;
		if (!is_stripped(set, last, (size_t)(end - last)))
			break;
	}
	return json_stringn_nocheck(begin, (size_t)(end - begin));
}

static json_t *change_case(const json_t *v, const char *how, struct err *err)
{
	const size_t n = json_string_length(v);
	char *text = mem_dup(json_string_value(v), n + 1);
	json_t *changed;

	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c >= 0x80)
			refuse_value(err, "a change of case in a text that is not ASCII is not supported");
		text[i] = (char)(*how == 'u' || (*how == 'c' && !i) ? toupper(c) : tolower(c));
	}
	changed = err->code ? NULL : json_stringn_nocheck(text, n);
	free(text);
	return changed;
}

/* Cuts a text at each `by`: to a list, or with what replaces it to a text. */
static json_t *split_text(const json_t *v, const json_t *by, const json_t *with, struct err *err)
{
	const char *at = json_string_value(v), *end = at + json_string_length(v), *next;
	const size_t n = json_string_length(by);
	json_t *list = with ? NULL : json_array();
	struct buf text;

	if (!n || (with && !json_is_string(with))) {
		json_decref(list);
		return refuse_value(err, "split, replace: expected texts");
	}
	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	for (; at; at = next ? next + n : NULL) {
		next = memmem(at, (size_t)(end - at), json_string_value(by), n);
		if (list)
			json_array_append_new(list, json_stringn_nocheck(at, (size_t)((next ? next : end) - at)));
		else
			buf_add(&text, at, (size_t)((next ? next : end) - at));
		if (next && with)
			buf_add(&text, json_string_value(with), json_string_length(with));
	}
	if (!list)
		return take_text_value(&text, err);
	buf_done(&text);
	return list;
}

static json_t *list_pairs(const json_t *v, bool keys, bool values)
{
	json_t *list = json_array(), *item, *pair;
	const char *key;

	json_object_foreach((json_t *)v, key, item) {
		pair = json_array();
		json_array_append_new(pair, json_string(key));
		json_array_append(pair, item);
		json_array_append(list, keys && values ? pair : json_array_get(pair, values));
		json_decref(pair);
	}
	return list;
}

json_t *template_keys(const json_t *object)
{
	return list_pairs(object, true, false);
}

static const struct {
	enum template_expr_kind kind;
	const char *name, *slots;
} callables[] = {
	{ EXPR_METHOD, "strip", "chars" },
	{ EXPR_METHOD, "lstrip", "chars" },
	{ EXPR_METHOD, "rstrip", "chars" },
	{ EXPR_METHOD, "split", "sep" },
	{ EXPR_METHOD, "startswith", "prefix" },
	{ EXPR_METHOD, "endswith", "suffix" },
	{ EXPR_METHOD, "upper", "" },
	{ EXPR_METHOD, "lower", "" },
	{ EXPR_METHOD, "capitalize", "" },
	{ EXPR_METHOD, "replace", "old new" },
	{ EXPR_METHOD, "items", "" },
	{ EXPR_METHOD, "keys", "" },
	{ EXPR_METHOD, "values", "" },
	{ EXPR_METHOD, "get", "key default" },
	{ EXPR_FILTER, "trim", "chars" },
	{ EXPR_FILTER, "length", "" },
	{ EXPR_FILTER, "count", "" },
	{ EXPR_FILTER, "tojson", "ensure_ascii indent" },
	{ EXPR_FILTER, "upper", "" },
	{ EXPR_FILTER, "lower", "" },
	{ EXPR_FILTER, "capitalize", "" },
	{ EXPR_FILTER, "replace", "old new" },
	{ EXPR_FILTER, "join", "d" },
	{ EXPR_FILTER, "default", "default_value boolean" },
	{ EXPR_FILTER, "d", "default_value boolean" },
	{ EXPR_FILTER, "first", "" },
	{ EXPR_FILTER, "last", "" },
	{ EXPR_FILTER, "string", "" },
	{ EXPR_FILTER, "int", "" },
	{ EXPR_FILTER, "list", "" },
	{ EXPR_FILTER, "items", "" },
	{ EXPR_FILTER, "safe", "" },
	{ EXPR_CALL, "range", "start stop step" },
	{ EXPR_CALL, "strftime_now", "format" },
	{ EXPR_CALL, "raise_exception", "message" },
};

static const char tests[] =
	"defined undefined none string number integer boolean true false mapping iterable sequence odd even";

const char *template_slots(enum template_expr_kind kind, const char *name)
{
	for (size_t i = 0; i < sizeof(callables) / sizeof(*callables); i++)
		if (callables[i].kind == kind && !strcmp(callables[i].name, name))
			return callables[i].slots;
	return kind == EXPR_TEST && template_word(tests, name) >= 0 ? "" : NULL;
}

static bool has_end(const json_t *v, const json_t *part, bool front)
{
	const size_t n = json_string_length(v), k = json_string_length(part);

	return json_is_string(part) && k <= n &&
	       !memcmp(json_string_value(v) + (front ? 0 : n - k), json_string_value(part), k);
}

/* Calls a method of a text, or of a dictionary. */
json_t *template_method(const char *name, json_t *v, json_t *const *value, struct err *err)
{
	const int of_object = template_word("items keys values get", name);
	json_t *found;

	if (json_is_object(v) ? of_object < 0 : !json_is_string(v) || of_object >= 0)
		return refuse_value(err, "a method that the value does not have");
	if (of_object >= 0 && of_object < 3)
		return list_pairs(v, of_object != 2, of_object != 1);
	if (of_object == 3) {
		found = json_is_string(value[0]) ? json_object_get(v, json_string_value(value[0])) : NULL;
		return found ? json_incref(found) : value[1] ? json_incref(value[1]) : json_null();
	}
	if (strstr(name, "strip"))
		return strip_text(v, value[0], *name != 'r', *name != 'l');
	if (strstr(name, "with"))
		return json_boolean(has_end(v, value[0], *name == 's'));
	if (!strcmp(name, "split"))
		return split_text(v, value[0], NULL, err);
	if (!strcmp(name, "replace"))
		return split_text(v, value[0], value[1] ? value[1] : value[0], err);
	return change_case(v, name, err);
}

static json_t *join_items(const json_t *v, const json_t *by, struct err *err)
{
	const json_t *item;
	struct buf text;
	size_t i;

	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	json_array_foreach(v, i, item) {
		if (i && json_is_string(by))
			buf_add(&text, json_string_value(by), json_string_length(by));
		template_print(&text, item, err);
	}
	return take_text_value(&text, err);
}

static json_t *filter_json(const json_t *v, json_t *const *value, struct err *err)
{
	const long long indent = json_is_integer(value[1]) ? json_integer_value(value[1]) : -1;
	struct buf text;

	if (!v || indent > 16 || template_true(value[0]))
		return refuse_value(err, "tojson: of an undefined value, indented by more than 16, or in ASCII");
	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	print_bounded(&(struct printing){ &text, true, indent }, v, err);
	return take_text_value(&text, err);
}

static json_t *round_value(const json_t *v)
{
	const double x = json_is_string(v) ? strtod(json_string_value(v), NULL) : number_of(v);

	return json_integer(fabs(x) < WHOLE_MAX ? (json_int_t)x : 0);
}

json_t *template_filter(const char *name, json_t *v, json_t *const *value, struct err *err)
{
	const long long n = count_of(v);
	json_t *text, *ret;

	if (!strcmp(name, "tojson"))
		return filter_json(v, value, err);
	if (*name == 'd') /* default */
		return (template_true(value[1]) ? template_true(v) : v != NULL) ? json_incref(v)
		       : value[0]						? json_incref(value[0])
										: json_string("");
	if (!strcmp(name, "length") || !strcmp(name, "count"))
		return json_integer(n);
	if (!strcmp(name, "first") || !strcmp(name, "last"))
		return n && !json_is_object(v) ? get_at(v, *name == 'f' ? 0 : n - 1) : NULL;
	if (!strcmp(name, "join"))
		return join_items(v, value[0], err);
	if (!strcmp(name, "int"))
		return round_value(v);
	if (!strcmp(name, "items") || (!strcmp(name, "list") && json_is_object(v)))
		return list_pairs(v, true, *name == 'i');
	if (!strcmp(name, "list") || !strcmp(name, "safe"))
		return json_incref(v);
	text = join_values(v, NULL, err);
	ret = !text			? NULL
	      : !strcmp(name, "string") ? json_incref(text)
					: template_method(!strcmp(name, "trim") ? "strip" : name, text, value, err);
	json_decref(text);
	return ret;
}

bool template_test(const char *name, const json_t *v, struct err *err)
{
	switch (template_word(tests, name)) {
	case 0:
		return v;
	case 1:
		return !v;
	case 2:
		return json_is_null(v);
	case 3:
		return json_is_string(v);
	case 4:
		return is_number(v);
	case 5:
		return json_is_integer(v);
	case 6:
		return json_is_boolean(v);
	case 7:
		return json_is_true(v);
	case 8:
		return json_is_false(v);
	case 9:
		return json_is_object(v);
	case 10:
	case 11:
		return !v || json_is_string(v) || json_is_array(v) || json_is_object(v);
	default: /* odd, even */
		if (!json_is_integer(v))
			refuse_value(err, "odd, even: expected a whole number");
		return (json_integer_value(v) % 2 != 0) == (*name == 'o');
	}
}
