/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h: the search grammar: parses `filter` and `order_by` into a plan over named fields, and evaluates the plan
 * on their values. No SQL, no I/O.
 *
 *	filter := and { OR and }            and := not { AND not }          not := [NOT] ( '(' filter ')' | test )
 *	test   := field ( = != < <= > >= ) value | field [NOT] (LIKE | ILIKE) 'text'
 *	        | field [NOT] IN ( value, … ) | field IS [NOT] NULL
 *	field  := [entity '.'] key ['.' aggregate]      order := field [ASC | DESC] { , field [ASC | DESC] }
 *
 * Attributes: run_id, name, status, start_time, end_time, duration (seconds), last_step, experiment, notes. A time is a
 * number of milliseconds since 1970 or a text: '2026-11-28', '2026-11-28 09:30', '2026-11-28T09:30:15.25+01:00'; UTC
 * without a zone. A quote in a quoted text is doubled.
 * Entities metric(s), param(s), parameter(s), tag(s), attribute(s), attr, run. A key without one is an attribute, else
 * the run's param, else its metric ("lr > 0.1", "train/loss.min < 1"); a search rejects a name that no run has. A key
 * with characters other than letters, digits and _ - / : . needs double quotes or backticks. A text of these characters
 * needs no quotes (status = failed). Words and statuses are case-insensitive, other values are not. A status must be
 * one of event_status_name. A test of something that a run does not have is false, except IS NULL. */
#ifndef DPT_STORE_FILTER_H
#define DPT_STORE_FILTER_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

enum filter_entity { FILTER_ATTRIBUTE, FILTER_PARAM, FILTER_TAG, FILTER_METRIC, FILTER_DATASET, FILTER_NOTE };
#define FILTER_NOTE_KEY "mlflow.note.content" /* of a FILTER_NOTE field */

enum filter_attribute {
	FILTER_RUN_ID,
	FILTER_NAME,
	FILTER_STATUS,
	FILTER_START_TIME,
	FILTER_END_TIME,
	FILTER_EXPERIMENT,
	FILTER_DURATION, /* seconds from start to end; of a run without an end, until now */
	FILTER_LAST_STEP,
	/* only in MLflow's grammar */
	FILTER_USER,
	FILTER_ARTIFACT_URI,
	FILTER_CREATED,
	FILTER_UPDATED,
	FILTER_TYPE,
	FILTER_SOURCE_RUN,
	FILTER_VERSION,
};

enum filter_aggregate { FILTER_LAST, FILTER_FIRST, FILTER_MIN, FILTER_MAX };

struct filter_field {
	enum filter_entity entity;
	enum filter_attribute attribute;
	enum filter_aggregate aggregate;
	const char *key;
	bool bare;   /* a param named without its prefix; a run without the param is tested by its twin */
	size_t twin; /* bare: the field of the metric of this name, plus 1; 0: none, because it compares text */
};

struct filter_value {
	bool present, is_number; /* also a param or tag whose text is a number */
	double number;
	const char *text;		 /* NULL for metrics and times */
	const struct filter_value *more; /* data sets: the next value */
};

struct filter_order {
	size_t field;
	bool descending;
};

struct filter;

#define FILTER_MAX_FIELDS 64

#define FILTER_ATTRIBUTES "run_id, name, status, start_time, end_time, duration, last_step, experiment, notes"

/* filter and order may be NULL. ERR_USAGE with the position. */
int filter_parse(struct filter **ret, struct arena *a, const char *filter, const char *order, struct err *err);

/* MLflow's grammar: comparisons joined by AND, `entity.key` split at its first dot, quoted text or bare numbers; params
 * and tags compare as text; no aggregates. order: one `field [ASC | DESC]` each. ERR_USAGE in MLflow's words.
 *
 *	FILTER_RUNS         metrics, params, tags, attributes (run_id, run_name, user_id, status, artifact_uri,
 *	                    start_time, end_time), datasets (name, digest, context)
 *	FILTER_EXPERIMENTS  tags, attribute (name, experiment_id, creation_time, last_update_time)
 *	FILTER_MODELS       metrics, params, tags, attributes (name, model_id, model_type, status, source_run_id,
 *	                    creation_timestamp, last_updated_timestamp)
 *	FILTER_REGISTERED   tags, attribute (name); ordered by name, timestamp, last_updated_timestamp
 *	FILTER_VERSIONS     tags, attribute (name, version_number, run_id, source_path); ordered by name,
 *	                    version_number, creation_timestamp, last_updated_timestamp */
enum filter_dialect { FILTER_RUNS, FILTER_EXPERIMENTS, FILTER_MODELS, FILTER_REGISTERED, FILTER_VERSIONS };

struct filter_mlflow {
	enum filter_dialect dialect;
	const char *filter; /* NULL or "": none */
	const char *const *order;
	size_t order_count;
};

int filter_parse_mlflow(struct filter **ret, struct arena *a, const struct filter_mlflow *text, struct err *err);

size_t filter_field_count(const struct filter *f);
const struct filter_field *filter_field(const struct filter *f, size_t i);
size_t filter_order_count(const struct filter *f);
const struct filter_order *filter_order(const struct filter *f, size_t i);

size_t filter_tested_count(const struct filter *f); /* filter_match reads only this many fields, the first ones */

/* Tests a run: values has one per field. The steps of all tests of a filter are counted: comparisons, and the
 * characters that LIKE visits. ERR_USAGE, field "filter": more than FILTER_STEPS_MAX. */
#define FILTER_STEPS_MAX 250000000
int filter_match(struct filter *f, const struct filter_value *values, bool *ret, struct err *err);

/* Compares two values for an order: numbers, then texts, then NaN, then missing values. descending reverses only the
 * first two classes. */
int filter_compare(const struct filter_value *a, const struct filter_value *b, bool descending);

/* The same, with infinities after the other numbers as NaN is: a value that is not finite is never the best. MLflow
 * orders them as numbers. */
int filter_compare_finite(const struct filter_value *a, const struct filter_value *b, bool descending);

/* Returns true if the whole text is a number (or NaN, Infinity, -Infinity). */
bool filter_number(const char *text, double *ret);

#endif
