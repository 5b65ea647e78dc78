/* SPDX-License-Identifier: Apache-2.0 */
/* chat_template.c: opens and renders a chat template. Variables are in objects, one for each scope; a loop has its own.
 */
#include "trainer/data/chat/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/mem/mem.h"
#include "trainer/data/chat/template_inside.h"

#define MACROS_MAX 64

int chat_template_new(struct chat_template **ret, const char *name, const char *text, size_t n, struct err *err)
{
	struct arena *arena = arena_new();
	struct chat_template *t = arena_alloc(arena, sizeof(*t));
	char *copy = arena_alloc(arena, n + 1);
	struct err why = ERR_INIT;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] != '\r')
			copy[k++] = text[i];
		else if (i + 1 == n || text[i + 1] != '\n')
			copy[k++] = '\n';
	t->arena = arena;
	t->values = json_array();
	snprintf(t->name, sizeof(t->name), "%.190s", name);
	template_parse(t, copy, k, &why);
	if (why.code) {
		chat_template_free(t);
		return err_set(err, why.code, "%s", why.text);
	}
	*ret = t;
	return 0;
}

void chat_template_free(struct chat_template *t)
{
	if (!t)
		return;
	json_decref(t->values);
	arena_free(t->arena);
}

struct scope {
	json_t *variables;
	struct scope *outer;
};

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

struct template_run {
	const struct chat_template *t;
	struct scope *scope, *globals;
	struct chat_rendering *to;
	struct buf *out;
	double time;
	long steps;
	int depth, line; /* line: of what is evaluated */
	enum flow flow;
	const struct template_node *macro[MACROS_MAX];
	int n_macros;
	struct err err; /* its text has no place */
};

static json_t *fail_run(struct template_run *r, const char *why, const char *what)
{
	if (!r->err.code)
		err_set(&r->err, ERR_USAGE, "%s%.250s", why, what);
	return NULL;
}

static json_t *evaluate_expr(struct template_run *r, const struct template_expr *e);
static void render_nodes(struct template_run *r, const struct template_node *n);

/* Counts n steps at a line. */
static void count_steps(struct template_run *r, int line, long n)
{
	if (r->err.code)
		return;
	r->line = line;
	r->steps += n;
	if (r->steps > TEMPLATE_STEPS_MAX)
		fail_run(r, "the template takes more than 10^6 steps", "");
	if (r->depth > TEMPLATE_NESTING_MAX)
		fail_run(r, "is nested more than 100 deep", "");
}

/* Counts the steps that a new value took, and refuses one whose depth would exhaust the stack, or that is to be stored
 * in a namespace that it holds. */
static void admit_value(struct template_run *r, const json_t *v, const json_t *space)
{
	const long most = 16L * (TEMPLATE_STEPS_MAX - r->steps), n = template_measure(v, space, most > 0 ? most : 0);

	if (n > most)
		fail_run(r, "a value that is too large, nested too deeply, or in itself", "");
	count_steps(r, r->line, n / 16 + (long)json_string_length(v) / 256);
}

/* Returns a borrowed value; NULL: undefined. The functions that templates ask for are defined. */
static json_t *find_variable(const struct template_run *r, const char *name)
{
	for (const struct scope *s = r->scope; s; s = s->outer) {
		json_t *v = json_object_get(s->variables, name);

		if (v)
			return v;
	}
	return template_slots(EXPR_CALL, name) || !strcmp(name, "namespace") ? json_true() : NULL;
}

/* Renders nodes into a text of their own. */
static json_t *capture_nodes(struct template_run *r, const struct template_node *body)
{
	struct buf text, *out = r->out;
	json_t *v;

	buf_init(&text, TEMPLATE_OUTPUT_MAX);
	r->out = &text;
	render_nodes(r, body);
	r->out = out;
	v = r->err.code ? NULL : json_stringn_nocheck(text.data ? text.data : "", text.len);
	buf_done(&text);
	return v;
}

/* Renders a macro with its parameters as the only names besides the global ones. */
static json_t *call_macro(struct template_run *r, const struct template_node *m, const struct template_expr *e,
			  json_t *const *value)
{
	struct scope inner = { json_object(), r->globals }, *outer = r->scope;
	int known = 0;
	json_t *ret;

	for (int i = 0; i < m->n; i++) {
		json_t *v = i < e->n && !e->keyword[i] ? json_incref(value[i]) : NULL;

		known += i < e->n && !e->keyword[i];
		for (int k = 0; k < e->n && !v; k++)
			if (e->keyword[k] && !strcmp(e->keyword[k], m->name[i]))
				v = json_incref(value[k]), known++;
		if (!v && m->initial[i])
			v = evaluate_expr(r, m->initial[i]);
		if (v)
			json_object_set_new(inner.variables, m->name[i], v);
	}
	if (known < e->n)
		fail_run(r, "arguments that the macro does not have: ", m->text);
	r->scope = &inner;
	ret = capture_nodes(r, m->body);
	r->scope = outer;
	json_decref(inner.variables);
	return ret;
}

static json_t *call_range(struct template_run *r, json_t *const *value)
{
	const long long first = json_integer_value(value[0]), step = value[2] ? json_integer_value(value[2]) : 1;
	const long long from = value[1] ? first : 0, to = value[1] ? json_integer_value(value[1]) : first;
	const long long most = TEMPLATE_STEPS_MAX;
	json_t *list;

	if (!step || step > most || step < -most || to > most || to < -most || from > most || from < -most)
		return fail_run(r, "range: step 0, or a bound beyond 10^6", "");
	list = json_array();
	for (long long i = from; step > 0 ? i < to : i > to; i += step)
		json_array_append_new(list, json_integer(i));
	return list;
}

static json_t *call_strftime(struct template_run *r, const json_t *format)
{
	time_t when = (time_t)r->time;
	struct tm tm;
	char text[256];

	if (!json_is_string(format) || !gmtime_r(&when, &tm) ||
	    !strftime(text, sizeof(text), json_string_value(format), &tm))
		return fail_run(r, "strftime_now: expected a format", "");
	return json_string(text);
}

static json_t *call_function(struct template_run *r, const struct template_expr *e, json_t *const *value)
{
	json_t *space;

	for (int i = r->n_macros; i-- > 0;)
		if (!strcmp(r->macro[i]->text, e->name))
			return call_macro(r, r->macro[i], e, value);
	if (!strcmp(e->name, "range"))
		return call_range(r, value);
	if (!strcmp(e->name, "strftime_now"))
		return call_strftime(r, value[0]);
	if (!strcmp(e->name, "raise_exception"))
		return fail_run(
			r, "the template refuses it: ", json_is_string(value[0]) ? json_string_value(value[0]) : "");
	if (strcmp(e->name, "namespace") && strcmp(e->name, "dict"))
		return fail_run(r, "a function that is not supported: ", e->name);
	space = json_is_object(value[0]) && !e->keyword[0] ? json_copy(value[0]) : json_object();
	for (int i = 0; i < e->n; i++)
		if (e->keyword[i] && value[i])
			json_object_set(space, e->keyword[i], value[i]);
	return space;
}

static json_t *make_collection(const struct template_expr *e, json_t *const *value)
{
	json_t *v = e->kind == EXPR_LIST ? json_array() : json_object();

	for (int i = 0; i < e->n; i += 1 + (e->kind == EXPR_DICT))
		if (e->kind == EXPR_LIST)
			json_array_append_new(v, value[i] ? json_incref(value[i]) : json_null());
		else if (json_is_string(value[i]) && value[i + 1])
			json_object_set(v, json_string_value(value[i]), value[i + 1]);
	return v;
}

/* Evaluates what has its left side and all its arguments. */
static json_t *apply_expr(struct template_run *r, const struct template_expr *e, json_t *a, json_t *const *value)
{
	switch (e->kind) {
	case EXPR_ITEM:
		return template_item(a, value[0], &r->err);
	case EXPR_SLICE:
		return template_slice(a, value, &r->err);
	case EXPR_CALL:
		return call_function(r, e, value);
	case EXPR_METHOD:
		return template_method(e->name, a, value, &r->err);
	case EXPR_FILTER:
		return template_filter(e->name, a, value, &r->err);
	case EXPR_TEST:
		return json_boolean(template_test(e->name, a, &r->err));
	case EXPR_NOT:
		return json_boolean(!template_true(a));
	case EXPR_BINARY:
		return template_binary(e->op, a, value[0], &r->err);
	default:
		return make_collection(e, value);
	}
}

/* Evaluates all but constants and names. */
static json_t *evaluate_operands(struct template_run *r, const struct template_expr *e)
{
	json_t *value[TEMPLATE_ARGS_MAX] = { NULL }, *a = e->a && e->kind != EXPR_IF ? evaluate_expr(r, e->a) : NULL,
	       *ret = NULL;

	if (e->kind == EXPR_IF) {
		a = evaluate_expr(r, e->arg[0]);
		ret = template_true(a) ? evaluate_expr(r, e->a) : e->arg[1] ? evaluate_expr(r, e->arg[1]) : NULL;
	} else if (e->kind == EXPR_BINARY && e->op <= OP_AND) {
		ret = template_true(a) == (e->op == OP_OR) ? json_incref(a) : evaluate_expr(r, e->arg[0]);
	} else {
		for (int i = 0; i < e->n; i++)
			value[i] = e->arg[i] ? evaluate_expr(r, e->arg[i]) : NULL;
		r->line = r->err.code ? r->line : e->line;
		if (!r->err.code)
			ret = apply_expr(r, e, a, value);
		if (e->kind != EXPR_ITEM && !r->err.code)
			admit_value(r, ret, NULL);
	}
	for (int i = 0; i < TEMPLATE_ARGS_MAX; i++)
		json_decref(value[i]);
	json_decref(a);
	return ret;
}

/* Returns a new reference, or NULL for an undefined value and after a failure. */
static json_t *evaluate_expr(struct template_run *r, const struct template_expr *e)
{
	json_t *ret = NULL;

	count_steps(r, e->line, 1);
	r->depth++;
	if (!r->err.code)
		ret = e->kind == EXPR_VALUE  ? json_incref(e->value)
		      : e->kind == EXPR_NAME ? json_incref(find_variable(r, e->name))
					     : evaluate_operands(r, e);
	r->depth--;
	return ret;
}

/* ---- nodes ---- */

static void assign_names(struct template_run *r, const struct template_node *n, json_t *v)
{
	if (n->n > 1 && (!json_is_array(v) || json_array_size(v) != (size_t)n->n)) {
		fail_run(r, "a value cannot be divided among the names", "");
		return;
	}
	for (int i = 0; i < n->n; i++) {
		json_t *part = n->n > 1 ? json_array_get(v, (size_t)i) : v;

		if (part)
			json_object_set(r->scope->variables, n->name[i], part);
		else
			json_object_del(r->scope->variables, n->name[i]);
	}
}

static void render_set(struct template_run *r, const struct template_node *n)
{
	json_t *v = n->body ? capture_nodes(r, n->body) : evaluate_expr(r, n->expr), *space;

	r->line = r->err.code ? r->line : n->line;
	if (n->text && !r->err.code) {
		space = find_variable(r, n->name[0]);
		if (!json_is_object(space))
			fail_run(r, "set: expected a namespace", "");
		admit_value(r, v, space);
		if (!r->err.code)
			json_object_set(space, n->text, v ? v : json_null());
	} else if (!r->err.code) {
		assign_names(r, n, v);
	}
	json_decref(v);
}

static json_t *describe_loop(const json_t *items, size_t i)
{
	const size_t n = json_array_size(items);
	json_t *loop = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "index", (json_int_t)i + 1, "index0",
				 (json_int_t)i, "revindex", (json_int_t)(n - i), "revindex0", (json_int_t)(n - i - 1),
				 "length", (json_int_t)n, "first", !i, "last", i + 1 == n);

	if (i)
		json_object_set(loop, "previtem", json_array_get(items, i - 1));
	if (i + 1 < n)
		json_object_set(loop, "nextitem", json_array_get(items, i + 1));
	return loop;
}

/* Returns what a loop runs over as a list: the keys of a dictionary, without what the filter drops. */
static json_t *list_loop_items(struct template_run *r, const struct template_node *n, json_t *v)
{
	json_t *items = json_is_object(v) ? template_keys(v) : json_is_array(v) ? json_copy(v) : json_array(), *kept;

	if (v && !json_is_object(v) && !json_is_array(v))
		fail_run(r, "for: expected a list or a dictionary", "");
	count_steps(r, n->line, (long)json_array_size(items) / 16);
	if (!n->filter)
		return items;
	kept = json_array();
	for (size_t i = 0; !r->err.code && i < json_array_size(items); i++) {
		json_t *holds;

		assign_names(r, n, json_array_get(items, i));
		holds = evaluate_expr(r, n->filter);
		if (template_true(holds))
			json_array_append(kept, json_array_get(items, i));
		json_decref(holds);
	}
	json_decref(items);
	return kept;
}

static void render_for(struct template_run *r, const struct template_node *n)
{
	struct scope inner = { json_object(), r->scope };
	json_t *v = evaluate_expr(r, n->expr), *items;

	r->scope = &inner;
	items = list_loop_items(r, n, v);
	if (!json_array_size(items))
		render_nodes(r, n->other);
	for (size_t i = 0; !r->err.code && r->flow != FLOW_BREAK && i < json_array_size(items); i++) {
		json_object_clear(inner.variables);
		json_object_set_new(inner.variables, "loop", describe_loop(items, i));
		assign_names(r, n, json_array_get(items, i));
		render_nodes(r, n->body);
		r->flow = r->flow == FLOW_BREAK ? FLOW_BREAK : FLOW_ON;
	}
	r->flow = FLOW_ON;
	r->scope = inner.outer;
	json_decref(items);
	json_decref(v);
	json_decref(inner.variables);
}

static void render_generation(struct template_run *r, const struct template_node *n)
{
	struct chat_span span = { .begin = r->out->len };

	render_nodes(r, n->body);
	span.end = r->out->len;
	if (r->out == &r->to->text)
		buf_add(&r->to->spans, &span, sizeof(span));
}

/* Renders one node by its kind. */
static void render_node(struct template_run *r, const struct template_node *n)
{
	json_t *v = n->expr && n->kind != NODE_SET && n->kind != NODE_FOR ? evaluate_expr(r, n->expr) : NULL;
	const bool holds = template_true(v);

	if (n->kind == NODE_OUTPUT && !r->err.code)
		template_print(r->out, v, &r->err);
	json_decref(v);
	switch (n->kind) {
	case NODE_TEXT:
		buf_add(r->out, n->text, n->n_text);
		break;
	case NODE_SET:
		render_set(r, n);
		break;
	case NODE_FOR:
		render_for(r, n);
		break;
	case NODE_IF:
		render_nodes(r, holds ? n->body : n->other);
		break;
	case NODE_MACRO:
		if (r->n_macros == MACROS_MAX)
			fail_run(r, "more than 64 macros", "");
		else
			r->macro[r->n_macros++] = n;
		break;
	case NODE_GENERATION:
		render_generation(r, n);
		break;
	case NODE_OUTPUT:
		break;
	default:
		r->flow = n->kind == NODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
	}
	if (buf_failed(r->out))
		fail_run(r, "the output is larger than 16 MiB", "");
}

static void render_nodes(struct template_run *r, const struct template_node *n)
{
	r->depth++;
	for (; n && r->flow == FLOW_ON && !r->err.code; n = n->next) {
		count_steps(r, n->line, 1);
		if (!r->err.code)
			render_node(r, n);
	}
	r->depth--;
}

int chat_template_render(const struct chat_template *t, json_t *variables, double time, struct chat_rendering *ret,
			 struct err *err)
{
	struct scope outer = { variables, NULL }, top = { json_object(), &outer };
	struct template_run r = { .t = t, .scope = &top, .globals = &top, .to = ret, .out = &ret->text, .time = time };

	buf_reset(&ret->text);
	buf_reset(&ret->spans);
	ret->text.max = TEMPLATE_OUTPUT_MAX;
	render_nodes(&r, t->first);
	json_decref(top.variables);
	return r.err.code ? err_set(err, r.err.code, "%s:%d: %.250s", t->name, r.line, r.err.text) : 0;
}
