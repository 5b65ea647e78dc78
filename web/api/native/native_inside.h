/* SPDX-License-Identifier: Apache-2.0 */
/* native_inside.h: what several handlers of v1 share: arguments of requests, a run, a line of a chart and an export.
 * Private to web/api/native. */
#ifndef DPT_NATIVE_INSIDE_H
#define DPT_NATIVE_INSIDE_H

#include "web/api/api.h"
#include "web/store/files/artifacts.h"

/* ---- request.c ----
 * Arguments that several routes of v1 share, and the error of a refused query. */

/* Fails the call with an error of the query layer; a bad filter has its own error code. */
enum call_next request_refused(struct call *c, const struct err *err);

/* Text of a scalar JSON value in the arena; NULL for an object, an array or null. */
const char *request_scalar(struct call *c, json_t *value);

/* Returns false after failing the call if a name (NULL: none) has a line break, which lists of names cannot show. */
bool request_name(struct call *c, const char *field, const char *name);

/* Reads {"k": "v", …} into pairs in the call's arena; numbers and booleans become text. Returns false after failing the
 * call. */
bool request_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count);

/* Parse arguments that select series; text NULL: absent. Return false after failing the call. */
bool request_rank(struct call *c, const char *text, int *rank);		/* "-1", "3", "all" */
bool request_segments(struct call *c, const char *text, bool *ret_all); /* "visible", "all" */

/* Checks ids of runs; where some are prefixes, *io_ids becomes a copy in the call's arena that has the whole ids.
 * Returns false after failing the call: nothing given, not an id, or a prefix of no run or of several. */
bool request_run_ids(struct call *c, const char *field, const char *const **io_ids, size_t n);

/* The number of a thing in a variable of the path; 0 after failing the call. */
int64_t request_number(struct call *c, size_t var, const char *what);

/* Replaces a list by one in which each text is once, in the order of the first. */
void request_distinct(struct call *c, const char *const **io_texts, size_t *io_count);

/* The grants of the client, in the call's arena; empty without. */
struct grants request_grants(struct call *c);
/* What the client may do in an experiment or with a registered model of this name, there or not; NULL: in all, also in
 * future ones. */
const char *request_level(const struct call *c, const struct grants *g, const char *name);

/* The value of a field of a urlencoded text, "" if it has none; NULL when absent. */
const char *request_form_part(struct call *c, const char *form, const char *name);
/* The same of the body; "" when absent. */
const char *request_form_value(struct call *c, const char *name);

/* ---- meta.c ---- */

/* Runs fn on a thread of the store and suspends the call until it has ended. The first member of *arg is the call. */
enum call_next upkeep_start(struct call *c, void (*fn)(void *arg), void *arg, enum call_next (*resume)(struct call *c));

/* ---- run_json.c ----
 * Writes a run in v1's JSON, in full or as an item of a list. */

/* FULL adds environment, ranks, segments and problems. SERIES also adds each series of each rank, which may be
 * millions. */
enum run_json_detail { RUN_JSON_LISTED, RUN_JSON_FULL, RUN_JSON_SERIES };

void run_json_write(struct call *c, struct js *j, const struct query_run *run, enum run_json_detail detail);

/* Writes id, start and params of a run. */
void run_json_start(struct js *j, const struct query_run *run);

/* Replies with one run. */
enum call_next run_json_reply(struct call *c, const char *id, enum run_json_detail detail);

/* An api_change's then: replies with the run res->id, or with the run of the path. */
enum call_next run_json_changed(struct call *c, const struct ingest_result *res);

/* Writes the member "alerts": what the store detected in a run. */
void run_json_alerts(struct js *j, const struct query_run *run);

/* Writes an array of the files of one folder of a run; path is the prefix of their names. */
void run_json_files(struct call *c, struct js *j, const char *path, const struct artifact_entry *list, size_t n);

/* Returns true if a run may move to another experiment. A run with artifacts may not: they are stored with its
 * experiment. Returns false after failing the call. */
bool artifacts_may_move(struct call *c, const char *run);

/* Writes an edition of a text as an item of a list. */
void run_json_edition(struct js *j, int64_t number, int64_t written_ms);

/* Writes the members notes and notes_etag. */
void run_json_notes(struct js *j, const char *notes);

/* Writes milliseconds since 1970, or null for INT64_MIN. */
void run_json_time(struct js *j, const char *key, int64_t ms);

/* ---- series_line.c ----
 * A line of a chart as the points to draw, with as many digits as pixels need. Private to web/api/native. */

/* Writes members of an open object:
 *   xq, q      units of x and of values, powers of ten; xq is 1 if x is a step
 *   x, y       the first, smallest, largest and last point of every bucket in the order of x, without duplicates:
 *              an integer is the difference to the previous integer (the first: to 0), in units; null is a
 *              non-finite value; a string is a value far outside the range of the others, unchanged
 *   k          the number of these points in each bucket, unless each has one
 *   m, w       the mean (coded as y) and the number of the finite values of each bucket that has any, unless the
 *              buckets have no other points
 * Resolution: 1/4096 of the range between the 5th and 95th percentile of the drawn values, and four digits of all but
 * the smallest tenth. */
void series_line_write(struct js *j, const struct points_line *l, const struct points_chart *chart, bool steps,
		       struct arena *a);

/* ---- api_shares.c ---- */

/* Writes the member share: what the link shows whose session the caller has. */
void share_write_session(struct call *c, struct js *j);

/* ---- api_audit.c ---- */

/* Who made and last changed objects of a kind (audit.h), as rows of ret for audit_write_authors; NULL if the caller has
 * the session of a link, which tells of no persons. Returns false after failing the call. */
struct audit_authors;
struct audit_objects;
bool audit_read_authors(struct call *c, const struct audit_objects *o, struct audit_authors **ret);

/* Writes members of an open object; at NULL: none. */
void audit_write_authors(struct js *j, const struct audit_authors *at);

/* ---- api_compare.c ---- */

/* Returns the value of the run's tag that says which value of the metric is best; NULL: it says nothing. */
const char *api_said_best(const struct query_run *run, const char *key);

/* ---- api_export.c ----
 * Shared by the exports: a row in three formats, and the entity tag of a stream. */

enum export_format { EXPORT_CSV, EXPORT_JSON, EXPORT_JSONL };

const char *export_type(enum export_format format); /* media type */

/* Sets the entity tag of a stream before it is made: a hash of the request and of the state of the runs. The stream may
 * contain newer data than its tag says, never older. */
void export_tag(struct call *c, const struct query_run *runs, size_t count, uint64_t rev);

/* One row while it is written. CSV writes every column, JSON omits absent values. Set out and format, zero the rest. */
struct export_row {
	struct buf *out;
	struct js js;
	enum export_format format;
	bool begun, raw; /* raw: texts that are formulas of a spreadsheet have no quote before them */
};

/* The argument raw of an export as CSV. Returns false if the call has failed. */
bool export_raw_arg(struct call *c, bool *ret_raw);
void export_csv_text(struct buf *out, const char *text, bool raw);
void export_row_open(struct export_row *r);
void export_row_close(struct export_row *r);
void export_row_none(struct export_row *r);
void export_row_text(struct export_row *r, const char *name, const char *text); /* NULL: absent */
void export_row_int(struct export_row *r, const char *name, int64_t v);
void export_row_double(struct export_row *r, const char *name, double v);
void export_row_time(struct export_row *r, const char *name, int64_t ms); /* INT64_MIN: absent */

#endif
