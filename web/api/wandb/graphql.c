/* SPDX-License-Identifier: Apache-2.0 */
/* graphql.c: a parser of GraphQL's queries (https://spec.graphql.org/October2021/) that expands fragments while it
 * reads, and the execution of root fields one after the other. */
#include "web/api/wandb/graphql.h"

#include <stdlib.h>
#include <string.h>

/* --- tokens ----------------------------------------------------------------------------------------------------- */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_MARK, TOKEN_NUMBER, TOKEN_STRING, TOKEN_BLOCK, TOKEN_BAD };

struct graphql_lexer {
	const char *at, *end; /* what follows the token */
	enum token_kind kind;
	const char *text; /* the token; a mark is one character, "..." is '.' */
	size_t len;
};

static bool is_graphql_name_char(char ch)
{
	return ch == '_' || (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static void skip_ignored(struct graphql_lexer *l)
{
	while (l->at < l->end && (strchr(" \t\r\n,", *l->at) || *l->at == '#'))
		if (*l->at++ == '#')
			while (l->at < l->end && *l->at != '\n')
				l->at++;
}

/* The end of a string that begins at l->at; NULL: it has none. */
static const char *find_string_end(const struct graphql_lexer *l, bool block)
{
	const char *at = l->at + (block ? 3 : 1);

	for (; at < l->end; at++) {
		if (block && l->end - at >= 3 && !memcmp(at, "\"\"\"", 3))
			return at + 3;
		if (*at == '\\')
			at++;
		else if (!block && *at == '"')
			return at + 1;
		else if (!block && *at == '\n')
			return NULL;
	}
	return NULL;
}

/* Reads the token at l->at. */
static void next_token(struct graphql_lexer *l)
{
	const char *end;
	bool block;

	skip_ignored(l);
	l->text = l->at;
	l->kind = l->at == l->end ? TOKEN_END : TOKEN_MARK;
	if (l->kind == TOKEN_END)
		return;
	if (*l->at == '"') {
		block = l->end - l->at >= 3 && !memcmp(l->at, "\"\"\"", 3);
		end = find_string_end(l, block);
		l->kind = !end ? TOKEN_BAD : block ? TOKEN_BLOCK : TOKEN_STRING;
		l->at = end ? end : l->end;
	} else if (*l->at == '-' || (*l->at >= '0' && *l->at <= '9')) {
		l->kind = TOKEN_NUMBER;
		for (l->at++; l->at < l->end && (is_graphql_name_char(*l->at) || strchr("+-.", *l->at)); l->at++)
			;
	} else if (is_graphql_name_char(*l->at)) {
		l->kind = TOKEN_NAME;
		while (l->at < l->end && is_graphql_name_char(*l->at))
			l->at++;
	} else if (l->end - l->at >= 3 && !memcmp(l->at, "...", 3)) {
		l->at += 3;
	} else {
		l->kind = strchr("!$&():=@[]{|}", *l->at) ? TOKEN_MARK : TOKEN_BAD;
		l->at++;
	}
	l->len = (size_t)(l->at - l->text);
}

static bool is_mark(const struct graphql_lexer *l, char mark)
{
	return l->kind == TOKEN_MARK && *l->text == mark;
}

static bool is_word(const struct graphql_lexer *l, const char *word)
{
	return l->kind == TOKEN_NAME && strlen(word) == l->len && !memcmp(l->text, word, l->len);
}

/* --- the selection ---------------------------------------------------------------------------------------------- */

/* A fragment of the document: its selection is read again wherever it is spread. */
struct fragment {
	struct fragment *next;
	const char *name;
	struct graphql_lexer body; /* at its opening brace */
	bool open;		   /* it is being read: a spread inside is a cycle */
};

struct graphql {
	const struct graphql_schema *schema;
	struct graphql_lexer lex;
	struct fragment *fragments;
	json_t *variables; /* with the defaults of the operation */
	json_t *kept;	   /* a list that owns arguments and variables */
	const char *why;   /* what is wrong with the request; NULL: nothing */
	size_t fields, work;
	struct graphql_field *roots, *at; /* at: the root field that runs */
	struct js js;
	struct buf errors;
	void *own, *cache;
};

static struct graphql *graphql_of(struct call *c)
{
	return c->own;
}

void **graphql_cache(struct call *c)
{
	return &graphql_of(c)->cache;
}

void **graphql_own(struct call *c)
{
	return &graphql_of(c)->own;
}

static bool fail_parse(struct graphql *g, const char *why)
{
	g->why = g->why ? g->why : why;
	return false;
}

static bool take_mark(struct graphql *g, char mark)
{
	if (!is_mark(&g->lex, mark))
		return fail_parse(g, "it is no GraphQL document");
	next_token(&g->lex);
	return true;
}

/* The name, in the arena; NULL: the token is something else. */
static const char *take_name(struct call *c, struct graphql *g)
{
	const char *name =
		g->lex.kind == TOKEN_NAME ? arena_printf(c->arena, "%.*s", (int)g->lex.len, g->lex.text) : NULL;

	if (!name)
		fail_parse(g, "a name is missing");
	else
		next_token(&g->lex);
	return name;
}

static json_t *parse_value(struct call *c, struct graphql *g, int depth);

/* A list, or an object. */
static json_t *parse_compound(struct call *c, struct graphql *g, int depth)
{
	const bool list = is_mark(&g->lex, '[');
	json_t *all = list ? json_array() : json_object(), *value;
	const char *key = NULL;

	next_token(&g->lex);
	while (!g->why && !is_mark(&g->lex, list ? ']' : '}')) {
		if (!list && (!(key = take_name(c, g)) || !take_mark(g, ':')))
			break;
		value = parse_value(c, g, depth + 1);
		if (list)
			json_array_append_new(all, value);
		else
			json_object_set_new(all, key, value);
	}
	next_token(&g->lex);
	return all;
}

/* Returns a new reference, also after a failure. */
static json_t *parse_value(struct call *c, struct graphql *g, int depth)
{
	struct graphql_lexer *l = &g->lex;
	json_t *value = NULL;
	const char *name;

	if (depth > GRAPHQL_DEPTH_MAX)
		fail_parse(g, "a value is nested deeper than 32 levels");
	else if (is_mark(l, '[') || is_mark(l, '{'))
		return parse_compound(c, g, depth);
	else if (is_mark(l, '$')) {
		next_token(l);
		name = take_name(c, g);
		value = name ? json_incref(json_object_get(g->variables, name)) : NULL;
		return value ? value : json_null();
	} else if (l->kind == TOKEN_STRING || l->kind == TOKEN_NUMBER)
		value = json_loadb(l->text, l->len, JSON_DECODE_ANY, NULL);
	else if (l->kind == TOKEN_BLOCK)
		value = json_stringn(l->text + 3, l->len - 6);
	else if (l->kind == TOKEN_NAME)
		value = is_word(l, "null")    ? json_null()
			: is_word(l, "true")  ? json_true()
			: is_word(l, "false") ? json_false()
					      : json_stringn(l->text, l->len);
	if (!value)
		fail_parse(g, "a value is malformed");
	next_token(l);
	return value ? value : json_null();
}

/* Arguments in parentheses, if any follow. */
static json_t *parse_arguments(struct call *c, struct graphql *g)
{
	json_t *all = json_object();
	const char *name;

	json_array_append_new(g->kept, all);
	if (!is_mark(&g->lex, '('))
		return all;
	next_token(&g->lex);
	while (!g->why && !is_mark(&g->lex, ')')) {
		name = take_name(c, g);
		if (name && take_mark(g, ':'))
			json_object_set_new(all, name, parse_value(c, g, 0));
	}
	next_token(&g->lex);
	return all;
}

/* Reads directives. Returns false if one of them leaves out what follows. */
static bool parse_directives(struct call *c, struct graphql *g)
{
	bool kept = true;

	while (!g->why && is_mark(&g->lex, '@')) {
		const char *name;
		json_t *when;

		next_token(&g->lex);
		name = take_name(c, g);
		when = json_object_get(parse_arguments(c, g), "if");
		if (name && !strcmp(name, "include"))
			kept = kept && json_is_true(when);
		else if (name && !strcmp(name, "skip"))
			kept = kept && !json_is_true(when);
	}
	return kept;
}

static void parse_selection(struct call *c, struct graphql *g, struct graphql_field **list, int depth);

/* The field of a key in the list, which is added if it is new. */
static struct graphql_field *put_field(struct call *c, struct graphql_field **list, const char *key)
{
	while (*list && strcmp((*list)->key, key))
		list = &(*list)->next;
	if (!*list) {
		*list = arena_alloc(c->arena, sizeof(**list));
		(*list)->key = key;
	}
	return *list;
}

static void parse_field(struct call *c, struct graphql *g, struct graphql_field **list, int depth)
{
	const char *key = take_name(c, g), *name = key;
	struct graphql_field *none = NULL, *f;
	json_t *args;
	bool kept;

	if (key && is_mark(&g->lex, ':')) {
		next_token(&g->lex);
		name = take_name(c, g);
	}
	if (!name)
		return;
	args = parse_arguments(c, g);
	kept = parse_directives(c, g);
	f = put_field(c, kept ? list : &none, key);
	f->name = name;
	f->args = args;
	if (is_mark(&g->lex, '{'))
		parse_selection(c, g, &f->fields, depth + 1);
}

/* "...NAME" or "... on TYPE { }". */
static void parse_spread(struct call *c, struct graphql *g, struct graphql_field **list, int depth)
{
	struct graphql_field *none = NULL;
	struct fragment *f = g->fragments;
	const char *name = NULL;
	struct graphql_lexer after;
	bool kept;

	if (is_word(&g->lex, "on")) {
		next_token(&g->lex);
		take_name(c, g);
	} else if (g->lex.kind == TOKEN_NAME) {
		name = take_name(c, g);
	}
	kept = parse_directives(c, g);
	if (!name) {
		parse_selection(c, g, kept ? list : &none, depth + 1);
		return;
	}
	while (f && strcmp(f->name, name))
		f = f->next;
	if (!f || f->open) {
		fail_parse(g, f ? "a fragment contains itself" : "it names a fragment that it does not have");
		return;
	}
	after = g->lex;
	g->lex = f->body;
	f->open = true;
	parse_selection(c, g, kept ? list : &none, depth + 1);
	f->open = false;
	g->lex = after;
}

static void parse_selection(struct call *c, struct graphql *g, struct graphql_field **list, int depth)
{
	if (depth > GRAPHQL_DEPTH_MAX) {
		fail_parse(g, "it is nested deeper than 32 levels");
		return;
	}
	if (!take_mark(g, '{'))
		return;
	while (!g->why && !is_mark(&g->lex, '}')) {
		if (++g->fields > GRAPHQL_FIELDS_MAX) {
			fail_parse(g, "it has more than 2000 fields");
		} else if (is_mark(&g->lex, '.')) {
			next_token(&g->lex);
			parse_spread(c, g, list, depth);
		} else {
			parse_field(c, g, list, depth);
		}
	}
	next_token(&g->lex);
}

/* --- the document ----------------------------------------------------------------------------------------------- */

/* Moves past the braces that begin at the token. */
static void skip_braces(struct graphql *g)
{
	int depth = 0;

	do {
		depth += is_mark(&g->lex, '{') ? 1 : is_mark(&g->lex, '}') ? -1 : 0;
		next_token(&g->lex);
	} while (depth > 0 && g->lex.kind != TOKEN_END && g->lex.kind != TOKEN_BAD);
	if (depth)
		fail_parse(g, "a brace is missing");
}

/* "($name: Type! = value, …)": variables without a value get their default. */
static void parse_variables(struct call *c, struct graphql *g)
{
	const char *name;
	json_t *value;

	if (!is_mark(&g->lex, '('))
		return;
	next_token(&g->lex);
	while (!g->why && !is_mark(&g->lex, ')') && take_mark(g, '$')) {
		name = take_name(c, g);
		take_mark(g, ':');
		while (!g->why && (is_mark(&g->lex, '[') || is_mark(&g->lex, ']') || is_mark(&g->lex, '!') ||
				   g->lex.kind == TOKEN_NAME))
			next_token(&g->lex);
		if (!name || !is_mark(&g->lex, '='))
			continue;
		next_token(&g->lex);
		value = parse_value(c, g, 0);
		if (!json_object_get(g->variables, name))
			json_object_set(g->variables, name, value);
		json_decref(value);
	}
	next_token(&g->lex);
}

/* An operation: it is read when all fragments are known, if it is the one asked for. */
struct operation {
	struct graphql_lexer head; /* at its variables, directives or brace */
	bool found, several;
};

/* Remembers an operation if it is the one asked for, and moves past it. */
static void find_operation(struct call *c, struct graphql *g, const char *wanted, struct operation *ret)
{
	const char *name = NULL;

	if (!is_mark(&g->lex, '{')) {
		if (is_word(&g->lex, "subscription"))
			fail_parse(g, "subscriptions are not served");
		next_token(&g->lex);
		name = g->lex.kind == TOKEN_NAME ? take_name(c, g) : NULL;
	}
	if (!wanted || !*wanted || (name && !strcmp(name, wanted))) {
		ret->several = ret->found;
		ret->found = true;
		ret->head = g->lex;
	}
	while (!g->why && !is_mark(&g->lex, '{') && g->lex.kind != TOKEN_END)
		if (is_mark(&g->lex, '('))
			while (!is_mark(&g->lex, ')') && g->lex.kind != TOKEN_END && g->lex.kind != TOKEN_BAD)
				next_token(&g->lex); /* a default value may have braces */
		else
			next_token(&g->lex);
	skip_braces(g);
}

/* Reads all definitions, then the selection of the operation that was asked for. */
static void parse_document(struct call *c, struct graphql *g, const char *wanted)
{
	struct operation op = { 0 };

	for (next_token(&g->lex); !g->why && g->lex.kind != TOKEN_END;) {
		struct fragment *f;

		if (!is_word(&g->lex, "fragment")) {
			if (is_mark(&g->lex, '{') || g->lex.kind == TOKEN_NAME)
				find_operation(c, g, wanted, &op);
			else
				fail_parse(g, "it is no GraphQL document");
			continue;
		}
		next_token(&g->lex);
		f = arena_alloc(c->arena, sizeof(*f));
		f->name = take_name(c, g);
		while (!g->why && !is_mark(&g->lex, '{') && g->lex.kind != TOKEN_END)
			next_token(&g->lex);
		f->body = g->lex;
		f->next = g->fragments;
		g->fragments = f->name ? f : g->fragments;
		skip_braces(g);
	}
	if (g->why || !op.found || op.several) {
		fail_parse(g, op.several ? "it has several operations: name one" : "it has no operation");
		return;
	}
	g->lex = op.head;
	parse_variables(c, g);
	parse_directives(c, g);
	parse_selection(c, g, &g->roots, 0);
}

/* --- filling ---------------------------------------------------------------------------------------------------- */

/* Writes a value as it is. */
static void write_json(struct js *j, json_t *value)
{
	const char *key;
	json_t *inner;
	size_t i;

	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_OBJECT:
		js_open(j, '{');
		json_object_foreach(value, key, inner) {
			js_key(j, key);
			write_json(j, inner);
		}
		js_close(j, '}');
		break;
	case JSON_ARRAY:
		js_open(j, '[');
		json_array_foreach(value, i, inner)
			write_json(j, inner);
		js_close(j, ']');
		break;
	case JSON_STRING:
		js_strn(j, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		js_int(j, json_integer_value(value));
		break;
	case JSON_REAL:
		js_double(j, json_real_value(value));
		break;
	default:
		js_raw(j, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
	}
}

static json_t *make_member(struct call *c, json_t *object, const struct graphql_field *f)
{
	const char *type = json_string_value(json_object_get(object, "__typename"));
	struct graphql *g = graphql_of(c);
	const struct graphql_member *m = g->schema->members;

	while (m->type && !(type && !strcmp(m->name, f->name) && !strcmp(m->type, type)))
		m++;
	g->work += m->type && m->list ? GRAPHQL_LIST_WORK : 1;
	if (g->work > GRAPHQL_WORK_MAX)
		return call_fail(c, CALL_bad_request, "query",
				 "query: it reads too much: ask for fewer lists and members, or smaller pages"),
		       NULL;
	if (m->type)
		return m->make(c, object, f);
	if (c->api->counters)
		atomic_fetch_add(&c->api->counters->graphql_unknown, 1);
	return NULL;
}

/* Writes what the fields select of a value; without fields all of it. */
static void write_selected(struct call *c, json_t *value, const struct graphql_field *fields)
{
	struct js *j = &graphql_of(c)->js;
	const struct graphql_field *f;
	json_t *inner, *made;
	size_t i;

	if (json_is_array(value)) {
		js_open(j, '[');
		json_array_foreach(value, i, inner)
			write_selected(c, inner, fields);
		js_close(j, ']');
		return;
	}
	if (!fields || !json_is_object(value)) {
		write_json(j, value);
		return;
	}
	js_open(j, '{');
	for (f = fields; f && c->status == 200; f = f->next) {
		inner = json_object_get(value, f->name);
		made = inner ? json_incref(inner) : make_member(c, value, f);
		if (c->status == 200) {
			js_key(j, f->key);
			write_selected(c, made, f->fields);
		}
		json_decref(made);
	}
	js_close(j, '}');
}

/* --- execution -------------------------------------------------------------------------------------------------- */

static void drop_graphql(void *arg)
{
	struct graphql *g = arg;

	json_decref(g->kept);
	buf_done(&g->errors);
}

static const struct graphql_root *find_root_field(const struct graphql *g, const char *name)
{
	const struct graphql_root *r = g->schema->roots;

	while (r->name && strcmp(r->name, name))
		r++;
	return r->name ? r : NULL;
}

static enum call_next end_graphql(struct call *c)
{
	struct graphql *g = graphql_of(c);

	js_close(&g->js, '}');
	if (g->errors.len)
		buf_addf(&c->out, ",\"errors\":[%s]", g->errors.data);
	return js_reply(c, &g->js);
}

/* Runs the next root field, or ends the reply. */
static enum call_next run_root(struct call *c)
{
	struct graphql *g = graphql_of(c);
	const struct graphql_root *r;

	g->cache = NULL;
	if (!g->at)
		return end_graphql(c);
	r = find_root_field(g, g->at->name);
	if (r)
		return r->run(c, g->at);
	if (c->api->counters)
		atomic_fetch_add(&c->api->counters->graphql_refused, 1);
	return graphql_refuse(c, "%.100s is not here: dptrack serves the runs, files and artifacts of W&B's clients",
			      g->at->name);
}

enum call_next graphql_give(struct call *c, json_t *value)
{
	struct graphql *g = graphql_of(c);

	js_key(&g->js, g->at->key);
	write_selected(c, value, g->at->fields);
	json_decref(value);
	g->at = g->at->next;
	return c->status == 200 ? run_root(c) : CALL_DONE;
}

enum call_next graphql_refuse(struct call *c, const char *fmt, ...)
{
	struct graphql *g = graphql_of(c);
	struct js j = { .out = &g->errors };
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (g->errors.len)
		buf_addc(&g->errors, ',');
	js_open(&j, '{');
	js_key_str(&j, "message", text);
	js_key_open(&j, "path", '[');
	js_str(&j, g->at->key);
	js_close(&j, ']');
	js_close(&j, '}');
	return graphql_give(c, NULL);
}

/* The largest scope of all root fields decides, before the first one runs. */
static bool may_run_roots(struct call *c, const struct graphql *g)
{
	const struct graphql_field *f;
	size_t n = 0;

	for (f = g->roots; f; f = f->next) {
		const struct graphql_root *r = find_root_field(g, f->name);

		if (++n > GRAPHQL_ROOTS_MAX)
			return call_fail(c, CALL_bad_request, "query", "query: more than %d root fields",
					 GRAPHQL_ROOTS_MAX),
			       false;
		if (r && c->client.has != TOKEN_NONE && (int)c->client.has < (int)r->scope)
			return call_fail(c, CALL_forbidden, "query",
					 "this token may read; a token of scope write is needed for %s", f->name),
			       false;
	}
	return true;
}

enum call_next graphql_run(struct call *c, const struct graphql_schema *schema)
{
	struct graphql *g = arena_alloc(c->arena, sizeof(*g));
	json_t *body = json_body(c), *variables;
	const char *text;

	if (!body)
		return CALL_DONE;
	*g = (struct graphql){ .schema = schema, .kept = json_array(), .js.out = &c->out };
	buf_init(&g->errors, 1 << 20);
	call_defer(c, drop_graphql, g);
	json_array_append_new(g->kept, body);
	variables = json_object_get(body, "variables");
	g->variables = json_is_object(variables) ? json_copy(variables) : json_object();
	json_array_append_new(g->kept, g->variables);
	text = json_string_value(json_object_get(body, "query"));
	if (!text || strlen(text) > GRAPHQL_TEXT_MAX)
		return call_fail(c, CALL_bad_request, "query", "query: expected a GraphQL document of at most 256 KiB");
	g->lex = (struct graphql_lexer){ .at = text, .end = text + strlen(text) };
	parse_document(c, g, json_string_value(json_object_get(body, "operationName")));
	if (g->why)
		return call_fail(c, CALL_bad_request, "query", "query: %s", g->why);
	if (!may_run_roots(c, g))
		return CALL_DONE;
	c->own = g;
	g->at = g->roots;
	js_open(&g->js, '{');
	js_key_open(&g->js, "data", '{');
	return run_root(c);
}

/* --- arguments and values --------------------------------------------------------------------------------------- */

bool graphql_asks(const struct graphql_field *f, const char *name)
{
	const struct graphql_field *inner = f->fields;

	while (inner && strcmp(inner->name, name))
		inner = inner->next;
	return inner != NULL;
}

json_t *graphql_arg(const struct graphql_field *f, const char *name)
{
	json_t *value = json_object_get(f->args, name);

	value = value ? value : json_object_get(json_object_get(f->args, "input"), name);
	return json_is_null(value) ? NULL : value;
}

const char *graphql_text(const struct graphql_field *f, const char *name)
{
	return json_string_value(graphql_arg(f, name));
}

int64_t graphql_int(const struct graphql_field *f, const char *name, int64_t fallback, int64_t min, int64_t max)
{
	json_t *value = graphql_arg(f, name);
	int64_t v = json_is_integer(value) ? json_integer_value(value) : fallback;

	return v < min ? min : v > max ? max : v;
}

json_t *graphql_connection(json_t *nodes, const char *end, bool more, int64_t total)
{
	json_t *edges = json_array(), *node;
	size_t i;

	json_array_foreach(nodes, i, node)
		json_array_append_new(edges, json_pack("{s:s, s:O}", "cursor", end ? end : "", "node", node));
	json_decref(nodes);
	return json_pack("{s:o, s:{s:s, s:s?, s:b}, s:I}", "edges", edges, "pageInfo", "__typename", "PageInfo",
			 "endCursor", end, "hasNextPage", (int)more, "totalCount", (json_int_t)total);
}
