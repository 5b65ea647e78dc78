/* SPDX-License-Identifier: Apache-2.0 */
/* filter_inside.h: the plan that both search grammars produce and filter.c evaluates. Private to filter*.c. */
#ifndef DPT_STORE_FILTER_INSIDE_H
#define DPT_STORE_FILTER_INSIDE_H

#include "web/store/filter/filter.h"

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
	bool negated; /* N_IN: true if some value is not in the list */
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

#endif
