/* SPDX-License-Identifier: Apache-2.0 */
/* template_inside.h: a parsed template, and its values. A value is a json_t; NULL is undefined. Functions do nothing
 * once their error is set, so callers check it at the end. Private to the chat templates. */
#ifndef DPT_DATA_TEMPLATE_INSIDE_H
#define DPT_DATA_TEMPLATE_INSIDE_H

#include "tracker/base/arena.h"
#include "trainer/data/chat/chat_template.h"

#define TEMPLATE_NESTING_MAX 100
#define TEMPLATE_ARGS_MAX 16
#define TEMPLATE_STEPS_MAX 1000000
#define TEMPLATE_OUTPUT_MAX ((size_t)16 << 20)

/* In the order of their levels, from those that bind least. */
enum template_op {
	OP_OR,
	OP_AND,
	OP_EQ,
	OP_NE,
	OP_LE,
	OP_GE,
	OP_LT,
	OP_GT,
	OP_IN,
	OP_NOT_IN,
	OP_ADD,
	OP_SUB,
	OP_JOIN,
	OP_FLOORDIV,
	OP_MUL,
	OP_DIV,
	OP_MOD,
};

enum template_expr_kind {
	EXPR_VALUE,
	EXPR_NAME,
	EXPR_ITEM,   /* a[arg 0], a.name */
	EXPR_SLICE,  /* a[arg 0:arg 1:arg 2] */
	EXPR_CALL,   /* name(args) */
	EXPR_METHOD, /* a.name(args) */
	EXPR_FILTER, /* a | name(args) */
	EXPR_TEST,   /* a is name */
	EXPR_NOT,
	EXPR_BINARY,
	EXPR_IF, /* a if arg 0 else arg 1 */
	EXPR_LIST,
	EXPR_DICT, /* args are keys and values in turn */
};

struct template_expr {
	enum template_expr_kind kind;
	enum template_op op;
	int line, n; /* n: arguments */
	json_t *value;
	const char *name;
	struct template_expr *a;
	struct template_expr *arg[TEMPLATE_ARGS_MAX];
	const char *keyword[TEMPLATE_ARGS_MAX]; /* NULL: by position */
};

enum template_node_kind {
	NODE_TEXT,
	NODE_OUTPUT,
	NODE_SET,
	NODE_FOR,
	NODE_IF,
	NODE_MACRO,
	NODE_BREAK,
	NODE_CONTINUE,
	NODE_GENERATION,
};

struct template_node {
	enum template_node_kind kind;
	int line, n;	  /* n: names */
	const char *text; /* n_text bytes; or the name of a macro, or the member that set changes */
	size_t n_text;
	const char *name[TEMPLATE_ARGS_MAX];
	struct template_expr *initial[TEMPLATE_ARGS_MAX]; /* defaults of a macro's parameters */
	struct template_expr *expr, *filter;		  /* filter: of a loop's items */
	struct template_node *body, *other, *next;
};

struct chat_template {
	struct arena *arena;
	char name[200];
	struct template_node *first;
	json_t *values; /* owns the constants */
};

/* Parses text, from which \r is gone. */
void template_parse(struct chat_template *t, const char *text, size_t n, struct err *err);

/* Returns the place of a word in a list of words, or -1. */
int template_word(const char *list, const char *word);

/* The names of the arguments of a filter, a method (EXPR_METHOD), a test or a function; NULL: unknown. */
const char *template_slots(enum template_expr_kind kind, const char *name);

/* ---- values; those that return one give a new reference ---- */

bool template_true(const json_t *v);

/* Appends a value as Python's str. */
void template_print(struct buf *to, const json_t *v, struct err *err);

/* Counts the values that are inside, at most `most`; more if they are nested more than TEMPLATE_NESTING_MAX deep, or
 * hold `without`. */
long template_measure(const json_t *v, const json_t *without, long most);

/* value: by slot; NULL: not given. Errors have no place. */
json_t *template_filter(const char *name, json_t *v, json_t *const *value, struct err *err);
bool template_test(const char *name, const json_t *v, struct err *err);
json_t *template_method(const char *name, json_t *v, json_t *const *value, struct err *err);
json_t *template_binary(enum template_op op, json_t *a, json_t *b, struct err *err);
json_t *template_item(json_t *v, const json_t *key, struct err *err);
json_t *template_slice(json_t *v, json_t *const part[3], struct err *err);
json_t *template_keys(const json_t *object); /* a list */

#endif
