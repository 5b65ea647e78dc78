/* api.h: what the handlers share: the store they work on, and the steps that more than one resource takes. */
#ifndef DPT_API_API_H
#define DPT_API_API_H

#include <stdatomic.h>

#include "web/api/call.h"
#include "web/api/json.h"
#include "web/store/follow/follow.h"
#include "web/store/mlflow/mlflow.h"
#include "web/store/read/points.h"
#include "web/store/read/query.h"
#include "web/store/store.h"
#include "web/store/write/ingest.h"

/* Written by the server, read by /metrics. */
struct api_counters {
	atomic_ullong requests;
	atomic_ullong by_class[6]; /* replies 1xx .. 5xx; [0] unused */
	atomic_ullong connections; /* open now */
	atomic_ullong streams;     /* event streams open now */
	atomic_ullong body_bytes;
	atomic_bool confined;      /* the kernel keeps the answering threads inside the store */
};

struct api {
	struct store *store;
	struct follow *follow;         /* NULL: no folder is followed */
	struct api_counters *counters; /* NULL outside a server */
	double started_s;              /* clock_wall_s */
};

/* Handlers, by the names of routes.def. */
#define ROUTE(dialect, method, pattern, handler, scope, body_max) enum call_next handler(struct call *c);
#include "schema/api/routes.def"
#undef ROUTE

/* Submits one change and calls then on the call's own thread when it is durable; a change that failed fails the call
 * (field names what is blamed, or NULL; fail, where set, words it) unless keep_errors is set. op is copied. */
struct api_change {
	const struct ingest_op *op;
	const struct tracking_op *tracking; /* instead of op */
	const char *field;
	bool keep_errors;
	int (*submit)(struct store *s, const struct ingest_op *op, const struct ingest_done *done,
		      struct ingest_result *ret, struct err *err); /* NULL: ingest_submit */
	enum call_next (*fail)(struct call *c, const struct err *err);
	enum call_next (*then)(struct call *c, const struct ingest_result *res);
};

enum call_next api_submit(struct call *c, const struct api_change *change);

/* then for api_submit: replies with the run of res->id, or of the path. */
enum call_next api_reply_run(struct call *c, const struct ingest_result *res);

/* FULL adds environment, ranks, segments and problems; SERIES also each series of each rank, which may be millions. */
enum api_detail { API_RUN_LISTED, API_RUN_FULL, API_RUN_SERIES };

void api_write_run(struct call *c, struct js *j, const struct query_run *run, enum api_detail detail);

/* The files of one folder of a run as an array; false after failing the call. */
bool api_write_artifacts(struct call *c, struct js *j, const char *experiment, const char *run, const char *path);

/* The page's form that asks for a token, as a reply of status 401. query: where to go afterwards; both may be NULL. */
enum call_next api_login_form(struct call *c, const char *query, const char *problem);

/* Of the cookie that holds a session; differs from store to store, as cookies do not tell ports apart. */
const char *api_cookie_name(const struct call *c);
/* Its value in a Cookie header (NULL: there is none), *ret_len bytes, within the header; NULL without. */
const char *api_cookie_value(const char *cookies, const char *name, size_t *ret_len);

/* Replies with one run. */
enum call_next api_run(struct call *c, const char *id, enum api_detail detail);

/* The member "alerts": what the store noticed about a run. */
void api_write_alerts(struct js *j, const struct query_run *run);

struct check_report;

/* The members worst, checked_time and findings; without texts for those who may only know how it is. */
void api_write_findings(struct js *j, const struct check_report *r, bool texts);

/* Milliseconds since 1970, or null for INT64_MIN. */
void api_write_time(struct js *j, const char *key, int64_t ms);

/* Fails the call for what the query layer said; a bad filter has a code of its own. */
enum call_next api_fail_query(struct call *c, const struct err *err);

/* {"k": "v", …} to pairs in the call's arena; numbers and booleans become their text. False after failing the call. */
bool api_read_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count);

/* Words of a request that picks series; text NULL: not given. False after failing the call. */
bool api_read_rank(struct call *c, const char *text, int *rank);         /* "-1", "3", "all" */
bool api_read_segments(struct call *c, const char *text, bool *ret_all); /* "visible", "all" */
bool api_run_ids_ok(struct call *c, const char *field, const char *const *ids, size_t n);

#endif
