/* filter.h: the search grammar: reads `filter` and `order_by` into a plan over named fields, and evaluates it over their
 * values. No SQL, no I/O.
 *
 *	filter := and { OR and }            and := not { AND not }          not := [NOT] ( '(' filter ')' | test )
 *	test   := field ( = != < <= > >= ) value | field [NOT] (LIKE | ILIKE) 'text'
 *	        | field [NOT] IN ( value, … ) | field IS [NOT] NULL
 *	field  := [entity '.'] key ['.' aggregate]      order := field [ASC | DESC] { , field [ASC | DESC] }
 *
 * Entities metric(s), param(s), parameter(s), tag(s), attribute(s), attr, run; without one: attribute. A key with other
 * characters than letters, digits and _ - / : . stands in double quotes or backticks. Words are case-insensitive, values
 * are not. A test on something that a run does not have is false (IS NULL aside). */
#ifndef DPT_STORE_FILTER_H
#define DPT_STORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

enum filter_entity { FILTER_ATTRIBUTE, FILTER_PARAM, FILTER_TAG, FILTER_METRIC };

enum filter_attribute {
	FILTER_RUN_ID,
	FILTER_NAME,
	FILTER_STATUS,
	FILTER_START_TIME,
	FILTER_END_TIME,
	FILTER_EXPERIMENT,
};

enum filter_aggregate { FILTER_LAST, FILTER_FIRST, FILTER_MIN, FILTER_MAX };

struct filter_field {
	enum filter_entity entity;
	enum filter_attribute attribute;
	enum filter_aggregate aggregate;
	const char *key;
};

struct filter_value {
	bool present, is_number; /* a param or tag whose text is a number is one too */
	double number;
	const char *text;        /* NULL for metrics and times */
};

struct filter_order {
	size_t field;
	bool descending;
};

struct filter;

#define FILTER_MAX_FIELDS 64

/* filter and order may be NULL. mlflow: params and tags compare as text, no aggregates. ERR_USAGE with the place. */
int filter_parse(struct filter **ret, struct arena *a, const char *filter, const char *order, bool mlflow,
		 struct err *err);

size_t filter_field_count(const struct filter *f);
const struct filter_field *filter_field(const struct filter *f, size_t i);
size_t filter_order_count(const struct filter *f);
const struct filter_order *filter_order(const struct filter *f, size_t i);

/* values: one for each field. */
bool filter_match(const struct filter *f, const struct filter_value *values);

/* How one value sorts against another under an order: numbers, then texts, then NaN, then what is missing; only the
 * first two classes turn round when descending. */
int filter_compare(const struct filter_value *a, const struct filter_value *b, bool descending);

/* Whether the whole text is a number (or NaN, Infinity, -Infinity). */
bool filter_number(const char *text, double *ret);

#endif
