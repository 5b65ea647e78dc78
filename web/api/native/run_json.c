/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c: writes a run in v1's JSON, in full or as an item of a list. Knows no route. */
#include "web/api/native/native_inside.h"

#include "web/store/audit/audit.h"
#include "web/store/base/etag.h"
#include "web/store/mlflow/logged_models.h"
#include "web/store/read/run_records.h"

void run_json_time(struct js *j, const char *key, int64_t ms)
{
	js_key(j, key);
	if (ms == INT64_MIN)
		js_null(j);
	else
		js_int(j, ms);
}

void run_json_files(struct call *c, struct js *j, const char *path, const struct artifact_entry *list, size_t n)
{
	size_t i;

	js_open(j, '[');
	for (i = 0; i < n; i++) {
		js_open(j, '{');
		js_key_str(j, "path", *path ? arena_printf(c->arena, "%s/%s", path, list[i].name) : list[i].name);
		js_key_bool(j, "folder", list[i].folder);
		js_key(j, "bytes");
		if (list[i].folder)
			js_null(j);
		else
			js_int(j, (int64_t)list[i].bytes);
		if (list[i].sha256 && !list[i].folder)
			js_key_str(j, "sha256", *list[i].sha256 ? list[i].sha256 : NULL);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_kv_object(struct js *j, const char *key, const struct query_kv *kv, size_t n)
{
	size_t i;

	js_key_open(j, key, '{');
	for (i = 0; i < n; i++)
		js_key_str(j, kv[i].key, kv[i].value);
	js_close(j, '}');
}

static void write_extreme_value(struct js *j, const char *key, const char *step_key, double value, int64_t step)
{
	js_key_number(j, key, value);
	js_key(j, step_key);
	if (isnan(value))
		js_null(j);
	else
		js_int(j, step);
}

static void write_metric_summary(struct js *j, const struct query_metric *m)
{
	js_key_int(j, "count", (int64_t)m->count);
	js_key_double(j, "first", m->first);
	js_key_double(j, "last", m->last);
	js_key_int(j, "first_step", m->first_step);
	js_key_int(j, "last_step", m->last_step);
	write_extreme_value(j, "min", "min_step", m->min, m->min_step);
	write_extreme_value(j, "max", "max_step", m->max, m->max_step);
	js_key_double(j, "first_time", m->first_time);
	js_key_double(j, "last_time", m->last_time);
	js_key_int(j, "nonfinite", (int64_t)m->nonfinite);
	js_key(j, "first_nonfinite_step");
	if (m->nonfinite)
		js_int(j, m->first_nonfinite_step);
	else
		js_null(j);
}

static void write_metric_summaries(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "metrics", '{');
	for (i = 0; i < run->metric_count; i++) {
		js_key_open(j, run->metrics[i].key, '{');
		write_metric_summary(j, &run->metrics[i]);
		js_close(j, '}');
	}
	js_close(j, '}');
}

void run_json_alerts(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "alerts", '[');
	for (i = 0; i < run->alert_count; i++) {
		const struct query_alert *a = &run->alerts[i];

		js_open(j, '{');
		js_key_str(j, "kind", a->kind_name);
		js_key_str(j, "key", a->key);
		js_key_int(j, "step", a->step);
		js_key_double(j, "value", a->value);
		js_key_str(j, "text", a->text);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_run_segments(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "segments", '[');
	for (i = 0; i < run->segment_count; i++) {
		const struct query_segment *s = &run->segments[i];

		js_open(j, '{');
		js_key_int(j, "number", s->number);
		js_key_int(j, "first_step", s->first_step);
		js_key_int(j, "first_epoch", s->first_epoch);
		run_json_time(j, "start_time", s->start_ms);
		run_json_time(j, "end_time", s->end_ms);
		js_key_str(j, "status", s->status);
		js_key_int(j, "world_size", s->world_size);
		write_kv_object(j, "params", s->params, s->param_count);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_run_ranks(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "ranks", '[');
	for (i = 0; i < run->rank_count; i++) {
		const struct query_rank *r = &run->ranks[i];

		js_open(j, '{');
		js_key_int(j, "rank", r->rank);
		js_key_str(j, "host", r->host);
		js_key_int(j, "pid", r->pid);
		js_key_int(j, "segment", r->segment);
		run_json_time(j, "last_record_time", r->last_record_ms);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_run_problems(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "problems", '[');
	for (i = 0; i < run->problem_count; i++) {
		js_open(j, '{');
		run_json_time(j, "time", run->problems[i].time_ms);
		js_key_str(j, "text", run->problems[i].text);
		js_key_int(j, "count", (int64_t)run->problems[i].count);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_run_series(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key_open(j, "series", '[');
	for (i = 0; i < run->series_count; i++) {
		js_open(j, '{');
		js_key_str(j, "key", run->series[i].key);
		js_key_int(j, "rank", run->series[i].rank);
		js_key_int(j, "segment", run->series[i].segment);
		write_metric_summary(j, &run->series[i].sum);
		js_close(j, '}');
	}
	js_close(j, ']');
}

/* Writes the files at the top of the run's artifacts. Returns false after failing the call. */
static bool write_run_artifacts(struct call *c, struct js *j, const struct query_run *run)
{
	const char *folder = arena_printf(c->arena, "%s/%s/artifacts", run->experiment_id, run->id);
	struct artifact_entries list;
	struct err err = ERR_INIT;

	if (artifact_list(c->api->store, folder, c->arena, &list, &err)) {
		call_fail_err(c, NULL, &err);
		return false;
	}
	js_key(j, "artifacts");
	run_json_files(c, j, "", list.items, list.count);
	return true;
}

static const char *find_dataset_tag(const struct run_dataset *d, const char *key)
{
	size_t i;

	for (i = 0; i < d->tag_count; i++)
		if (!strcmp(d->tags[i].key, key))
			return d->tags[i].value;
	return "";
}

/* Writes the data sets that the run read. Returns false after failing the call. */
static bool write_run_inputs(struct call *c, struct js *j, const struct query_run *run)
{
	struct run_links links;
	struct err err = ERR_INIT;
	size_t i;

	if (run_links(c->api->store, run->id, c->arena, &links, &err)) {
		call_fail_err(c, NULL, &err);
		return false;
	}
	js_key_open(j, "inputs", '[');
	for (i = 0; i < links.dataset_count; i++) {
		const struct run_dataset *d = &links.datasets[i];

		js_open(j, '{');
		js_key_str(j, "name", d->name);
		js_key_str(j, "digest", d->digest);
		js_key_str(j, "context", find_dataset_tag(d, "mlflow.data.context"));
		js_key_str(j, "source_type", d->source_type);
		js_key_str(j, "source", d->source);
		js_key_str(j, "profile", d->profile ? d->profile : "");
		js_close(j, '}');
	}
	js_close(j, ']');
	return true;
}

/* Writes the files that the program uploaded with its run. Returns false after failing the call. */
static bool write_program_files(struct call *c, struct js *j, const struct query_run *run)
{
	struct run_records_files files;
	struct err err = ERR_INIT;
	size_t i;

	if (run_records_files(c->api->store, run->id, c->arena, &files, &err)) {
		call_fail_err(c, NULL, &err);
		return false;
	}
	js_key_open(j, "files", '[');
	for (i = 0; i < files.count; i++) {
		js_open(j, '{');
		js_key_str(j, "name", files.items[i].name);
		js_key_int(j, "bytes", files.items[i].bytes);
		js_key_str(j, "sha256", files.items[i].sha256);
		js_close(j, '}');
	}
	js_close(j, ']');
	return true;
}

void run_json_start(struct js *j, const struct query_run *run)
{
	js_open(j, '{');
	js_key_str(j, "id", run->id);
	run_json_time(j, "start_time", run->start_ms);
	write_kv_object(j, "params", run->params, run->param_count);
	js_close(j, '}');
}

/* Who made the run and last edited, tagged, moved or deleted it, and when. Returns false after failing the call. */
static bool write_run_authors(struct call *c, struct js *j, const char *id)
{
	const struct audit_objects o = { .object = "run", .name = "", .ids = &id, .count = 1 };
	struct audit_authors *at;

	if (!audit_read_authors(c, &o, &at))
		return false;
	audit_write_authors(j, at);
	if (at)
		run_json_time(j, "changed_time", at->changed_ms);
	return true;
}

void run_json_write(struct call *c, struct js *j, const struct query_run *run, enum run_json_detail detail)
{
	js_open(j, '{');
	js_key_str(j, "id", run->id);
	js_key_str(j, "name", run->name);
	js_key_str(j, "experiment", run->experiment);
	js_key_str(j, "experiment_id", run->experiment_id);
	js_key_str(j, "status", run->status);
	js_key_bool(j, "status_inferred", run->status_inferred);
	js_key_bool(j, "deleted", run->deleted);
	if (run->deleted)
		run_json_time(j, "deleted_time", run->deleted_ms);
	run_json_time(j, "start_time", run->start_ms);
	run_json_time(j, "end_time", run->end_ms);
	js_key_int(j, "last_step", run->last_step);
	js_key_int(j, "world_size", run->world_size);
	js_key_int(j, "rev", (int64_t)run->rev);
	if (detail == RUN_JSON_LISTED)
		js_key_str(j, "notes", run->notes);
	else
		run_json_notes(j, run->notes);
	if (run->status_reason[0])
		js_key_str(j, "status_reason", run->status_reason);
	write_kv_object(j, "params", run->params, run->param_count);
	write_kv_object(j, "tags", run->tags, run->tag_count);
	write_metric_summaries(j, run);
	run_json_alerts(j, run);
	if (detail >= RUN_JSON_FULL) {
		write_kv_object(j, "environment", run->environment, run->environment_count);
		write_run_segments(j, run);
		write_run_ranks(j, run);
		write_run_problems(j, run);
		js_key_str(j, "user", run->user);
		if (!write_run_authors(c, j, run->id))
			return;
		if (!write_run_inputs(c, j, run) || !write_program_files(c, j, run) || !write_run_artifacts(c, j, run))
			return;
	}
	if (detail == RUN_JSON_SERIES)
		write_run_series(j, run);
	js_close(j, '}');
}

void run_json_edition(struct js *j, int64_t number, int64_t written_ms)
{
	js_open(j, '{');
	js_key_int(j, "edition", number);
	run_json_time(j, "time", written_ms);
	js_close(j, '}');
}

void run_json_notes(struct js *j, const char *notes)
{
	char tag[ETAG_BYTES];

	etag_write(hash_fnv_text(HASH_FNV_BEGIN, notes), tag);
	js_key_str(j, "notes", notes);
	js_key_str(j, "notes_etag", tag);
}

enum call_next run_json_reply(struct call *c, const char *id, enum run_json_detail detail)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct query_run run;

	if ((detail == RUN_JSON_SERIES ? query_run_series : query_run)(c->api->store, id, c->arena, &run, &err))
		return call_fail_err(c, "run", &err);
	run_json_write(c, &j, &run, detail);
	if (c->status < 300)
		buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next run_json_changed(struct call *c, const struct ingest_result *res)
{
	return run_json_reply(c, res->id[0] ? res->id : c->address.vars[0], RUN_JSON_FULL);
}
