/* run_json.h: a run as v1 writes it, whole or as a line of a list. */
#ifndef DPT_NATIVE_RUN_JSON_H
#define DPT_NATIVE_RUN_JSON_H

#include "web/api/api.h"
#include "web/api/js.h"
#include "web/store/files/artifacts.h"
#include "web/store/read/query.h"

/* FULL adds environment, ranks, segments and problems; SERIES also each series of each rank, which may be millions. */
enum run_json_detail { RUN_JSON_LISTED, RUN_JSON_FULL, RUN_JSON_SERIES };

void run_json_write(struct call *c, struct js *j, const struct query_run *run, enum run_json_detail detail);

/* Replies with one run. */
enum call_next run_json_reply(struct call *c, const char *id, enum run_json_detail detail);

/* then for api_submit: replies with the run of res->id, or of the path. */
enum call_next run_json_changed(struct call *c, const struct ingest_result *res);

/* The member "alerts": what the store noticed about a run. */
void run_json_alerts(struct js *j, const struct query_run *run);

/* An array of the files of one folder of a run; path is what stands before their names. */
void run_json_files(struct call *c, struct js *j, const char *path, const struct artifact_entry *list, size_t n);

/* Whether a run may go to another experiment; false after failing the call: artifacts lie with theirs. */
bool artifacts_may_move(struct call *c, const char *run);

/* Milliseconds since 1970, or null for INT64_MIN. */
void run_json_time(struct js *j, const char *key, int64_t ms);

#endif
