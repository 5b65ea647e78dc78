/* SPDX-License-Identifier: Apache-2.0 */
/* filter_inside.h: the plan that filter_parse.c makes and filter.c evaluates, and the parser's state. Private to
 * filter*.c. */
#ifndef DPT_STORE_FILTER_INSIDE_H
#define DPT_STORE_FILTER_INSIDE_H

#include "web/store/filter/filter.h"
#include "web/store/filter/lexer.h"

#define FILTER_MAX_ORDER 16
#define FILTER_MAX_TEXT 16384
#define FILTER_MAX_NODES 512
#define FILTER_MAX_LIST 1000

enum node_kind { N_AND, N_OR, N_NOT, N_COMPARE, N_LIKE, N_ILIKE, N_IN, N_NULL };
enum compare_op { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE };

struct filter_node {
	enum node_kind kind;
	enum compare_op op;
	struct filter_node *left, *right;
	size_t field;
	struct filter_value *values;
	size_t value_count;
	bool negated; /* true if some value does not match; N_NULL: if there is a value */
};

struct filter {
	struct filter_node *root;
	struct filter_field fields[FILTER_MAX_FIELDS];
	size_t field_count, tested_count; /* the fields of root come first */
	struct filter_order order[FILTER_MAX_ORDER];
	size_t order_count;
	bool mlflow;	/* strings are compared as strings */
	uint64_t steps; /* of all tests so far; more than FILTER_STEPS_MAX: the last result is not valid */
};

/* The position of the field in the plan; adds it if new. False: there are FILTER_MAX_FIELDS already. */
bool filter_keep_field(struct filter *f, const struct filter_field *want, size_t *ret);

struct filter_parser {
	struct arena *a;
	struct filter *f;
	const struct filter_mlflow *in; /* NULL: our language */
	const char *what, *text;	/* "filter" or "order_by", and the text that is parsed */
	struct lexer l;			/* the word of a field is its whole dotted name */
	bool ordering;			/* parsing order_by */
	int depth, nodes;
	struct err *err;
};

/* ---- filter_names.c ----
 * The names of each dialect, and what it allows. Functions return 0, or ERR_USAGE in the dialect's words. */

/* A resolved name. */
struct filter_ident {
	struct filter_field field;
	const char *entity, *key; /* for messages */
	bool numeric;
};

/* Reads a field. */
int filter_ident_read(struct filter_parser *p, struct filter_ident *ret);

/* Splits "loss.min" of a metric into key and aggregate; changes the text. */
void filter_split_aggregate(struct filter_field *ret, char *key);

/* Checks an operator: "=", "NOT IN", "IS NULL", … */
int filter_op_check(struct filter_parser *p, const struct filter_ident *id, const char *op);

/* Reads the value that the field is compared with. */
int filter_value_read(struct filter_parser *p, const struct filter_ident *id, struct filter_value *ret);

/* Fails at the current token. */
int filter_fail(struct filter_parser *p, const char *expected);

#endif
