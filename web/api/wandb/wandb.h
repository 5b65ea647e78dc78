/* SPDX-License-Identifier: Apache-2.0 */
/* wandb.h: what the routes of W&B's client share (github.com/wandb/wandb, core/ and wandb/sdk): the run of an
 * address, its stored texts, and the records that a request becomes. A request becomes records of a journal, which are
 * stored together with what W&B's API keeps of the run. Private to web/api/wandb. */
#ifndef DPT_API_WANDB_H
#define DPT_API_WANDB_H

#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "web/api/wandb/graphql.h"

/* The entity of runs whose script names none: one for all tokens, so that a colleague's resume finds the run. */
#define WANDB_ENTITY "dptrack"
#define WANDB_PROJECT "uncategorized"

/* Tags of runs. */
#define WANDB_TAG_ID "wandb.run_id"
#define WANDB_TAG_ENTITY "wandb.entity"
#define WANDB_TAG_GROUP "wandb.group"
#define WANDB_TAG_JOB "wandb.job_type"
#define WANDB_TAG_SWEEP "wandb.sweep"

/* The root fields, by name. */
#define ROOT(name, scope) enum call_next wandb_root_##name(struct call *c, const struct graphql_field *f);
#include "web/api/wandb/roots.def"
#undef ROOT

/* ---- wandb_names.c ----
 * Runs, projects and files by W&B's names, and their JSON. */

/* A run as W&B's client names it; found: it exists, also deleted. */
struct wandb_run {
	const char *entity, *project, *name; /* name: W&B's id of the run */
	char id[33];
	bool found;
	struct query_run run;	/* if found */
	struct query_kvs texts; /* if found */
};

/* Looks up a run by W&B's names (NULL or "": the defaults) or, if name is the id of a run here, by that. Returns false
 * after failing the call. */
bool wandb_find(struct call *c, const char *entity, const char *project, const char *name, struct wandb_run *ret);

const char *wandb_experiment(struct call *c, const char *entity, const char *project);
const char *wandb_text(const struct wandb_run *r, const char *name); /* a stored text; NULL: none */
const char *wandb_tag(const struct query_run *run, const char *key); /* NULL: none */

/* The 32 digits of an id that is derived from a text. */
void wandb_id(char ret[33], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The object Run of the GraphQL API. */
json_t *wandb_run_json(struct call *c, const struct query_run *run);
json_t *wandb_project_json(struct call *c, const char *entity, const char *project);

json_t *wandb_time_json(int64_t ms);
json_t *wandb_value_of_text(const char *text); /* a param's text as the value that it most likely was */
const char *wandb_default(const char *text, const char *fallback); /* fallback for NULL and "" */
const char *wandb_escape(struct call *c, const char *text, const char *stays); /* as text_add_escaped, in the arena */
const char *wandb_place(struct call *c, const struct query_run *run,
			const char *path); /* below the root of artifacts */

/* Parses a stored text or one of a client; NULL: no JSON. The caller owns the result. */
json_t *wandb_parse(const char *text);

/* ---- wandb_records.c ----
 * Changes: records and texts that are stored together, or built again when another request came first. */

struct wandb_job {
	struct wandb_run run; /* read again for each build */
	char writer[33];
	uint64_t durable;
	struct buf records;
	struct ingest_kv *texts;
	size_t text_count;
	struct ingest_line *lines; /* of the console, in place of stored ones */
	size_t line_count;
	const char **problems; /* what is left out of this request, each as a line */
	size_t problem_count;
	enum call_next (*build)(struct call *c, struct wandb_job *job); /* fills records and texts, then wandb_submit */
	enum call_next (*then)(struct call *c);
	void *state; /* private to build and then */
};

/* Private to the handler: call.own, or that of the root field which runs. */
void **wandb_own(struct call *c);
struct wandb_job *wandb_job_of(struct call *c);

/* Begins a change of the run. job lives in the arena; run (names and id), build and then are set, all else is zero or
 * what an earlier change left. */
enum call_next wandb_change(struct call *c, struct wandb_job *job);

/* For build: chooses the writer, by the text's digest, and reads how far its journal is stored. The header record is
 * added to a new journal. Returns false after failing the call. */
struct wandb_writer {
	const char *name;
	const char *run_name; /* of a new run */
	int segment, rank;
	int64_t first_step;
	double start_s;
};
bool wandb_begin(struct call *c, struct wandb_job *job, const struct wandb_writer *w);
void wandb_keep(struct call *c, struct wandb_job *job, const char *name, const char *text);
void wandb_keep_json(struct call *c, struct wandb_job *job, const char *name, json_t *value); /* takes value over */
/* Names what is left out: a problem of the run, and a line of the server's log once it is stored. */
void wandb_leave_out(struct call *c, struct wandb_job *job, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
enum call_next wandb_submit(struct call *c, struct wandb_job *job);

struct event_text wandb_span(const char *text);

/* ---- wandb_rows.c ----
 * Rows of the history, config and summary as records. */

/* A row while it is converted. */
struct wandb_rows {
	struct call *c;
	struct wandb_job *job;
	struct buf *to;	 /* its records */
	json_t *rules;	 /* of define_metric: [{"1": name, "2": glob, "5": index of the step's}, …] */
	json_t *seen;	 /* key: its last value */
	json_t *pending; /* path of a medium's file that is not there yet: where it belongs */
	json_t *row;
	int rank; /* of the journal */
	int64_t step;
	double wall_s;
	double now_s;
};

void wandb_rows_row(struct wandb_rows *w, json_t *row, int64_t fallback_step);
void wandb_rows_events(struct wandb_rows *w, json_t *row, int64_t number);
/* Params of the config; secrets are hidden, in config as well. */
void wandb_rows_config(struct buf *to, json_t *config, double wall_s);
/* A part of what the client keeps in the config; "m": the rules of define_metric. */
json_t *wandb_internal(json_t *config, const char *part);
/* The metric that define_metric makes the step of a key; NULL: none. rules: of struct wandb_rows. */
const char *wandb_rows_step_metric(json_t *rules, const char *key);
bool wandb_rows_is_step(double at); /* a whole number, as steps must be */
/* Values of the summary that no row has become metrics and tags. */
void wandb_rows_finals(struct wandb_rows *w, const struct query_run *run, json_t *summary);
/* A number, also as "NaN" or "Infinity", or a boolean. */
bool wandb_rows_number(json_t *value, double *ret);

/* ---- wandb_files.c ----
 * Files of runs, and addresses that hold their own right. */


/* The address at which a method may be used on a file of a run for an hour, in the arena. */
const char *wandb_address(struct call *c, enum call_method method, const char *run, const char *path);

/* ---- wandb_media.c ---- */

/* Makes media of the files that rows of the run (by its id here) expect and that are there, then calls then. */
enum call_next wandb_settle(struct call *c, const char *run, enum call_next (*then)(struct call *c));

/* ---- members of objects ----
 * As graphql_member.make. */

json_t *wandb_artifact_aliases(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_sequence(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_manifest(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_files(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_size(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_runs(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_project_artifact(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_project_collection(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_collection_member(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_artifact_types(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_run_artifacts(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_files(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_file_count(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_history(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_sampled_history(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_runs(struct call *c, json_t *object, const struct graphql_field *f);

json_t *wandb_make_config(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_events_count(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_history_count(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_history_keys(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_log_count(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_run(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_stopped(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_summary(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_tail(struct call *c, json_t *object, const struct graphql_field *f);
json_t *wandb_make_wandb_config(struct call *c, json_t *object, const struct graphql_field *f);

#endif
