/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.h: writes a run in v1's JSON, in full or as an item of a list. */
#ifndef DPT_NATIVE_RUN_JSON_H
#define DPT_NATIVE_RUN_JSON_H

#include "web/api/api.h"
#include "web/api/js.h"
#include "web/store/files/artifacts.h"
#include "web/store/read/query.h"

/* FULL adds environment, ranks, segments and problems. SERIES also adds each series of each rank, which may be
 * millions. */
enum run_json_detail { RUN_JSON_LISTED, RUN_JSON_FULL, RUN_JSON_SERIES };

void run_json_write(struct call *c, struct js *j, const struct query_run *run, enum run_json_detail detail);

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

/* Writes milliseconds since 1970, or null for INT64_MIN. */
void run_json_time(struct js *j, const char *key, int64_t ms);

#endif
