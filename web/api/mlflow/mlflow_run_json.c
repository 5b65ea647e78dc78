/* mlflow_run_json.c: writes a run in MLflow's JSON, with its inputs and outputs. Knows no route. */
#include "web/api/mlflow/mlflow_errors.h"

#include <stdlib.h>

#include "web/store/filter/filter.h"
#include "web/store/mlflow/logged_models.h"
#include "web/store/read/query.h"

void ml_write_tag_list(struct js *j, const char *key, const struct query_kv *kv, size_t n)
{
	size_t i;

	if (!n)
		return;
	js_key(j, key);
	js_open(j, '[');
	for (i = 0; i < n; i++) {
		js_open(j, '{');
		js_key_str(j, "key", kv[i].key);
		js_key_str(j, "value", kv[i].value);
		js_close(j, '}');
	}
	js_close(j, ']');
}

const char *ml_run_location(struct call *c, const struct query_run *run)
{
	return location_of(c->arena, run->location, atoll(run->experiment_id),
			   arena_printf(c->arena, "%s/artifacts", run->id));
}

void ml_write_info(struct call *c, struct js *j, const struct query_run *run)
{
	js_open(j, '{');
	js_key_str(j, "run_uuid", run->id);
	js_key_str(j, "experiment_id", run->experiment_id);
	js_key_str(j, "user_id", run->user);
	js_key_str(j, "status", query_mlflow_status(run->status));
	js_key_int(j, "start_time", run->start_ms == INT64_MIN ? 0 : run->start_ms);
	if (run->end_ms != INT64_MIN)
		js_key_int(j, "end_time", run->end_ms);
	js_key_str(j, "artifact_uri", ml_run_location(c, run));
	js_key_str(j, "lifecycle_stage", run->deleted ? "deleted" : "active");
	js_key_str(j, "run_id", run->id);
	js_key_str(j, "run_name", run->name);
	js_close(j, '}');
}

static void write_run_metrics(struct js *j, const struct query_run *run)
{
	size_t i;

	if (!run->metric_count)
		return;
	js_key(j, "metrics");
	js_open(j, '[');
	for (i = 0; i < run->metric_count; i++) {
		const struct query_metric *m = &run->metrics[i];

		js_open(j, '{');
		js_key_str(j, "key", m->key);
		js_key_double(j, "value", m->last);
		js_key_int(j, "timestamp", ml_time_ms(m->last_time));
		js_key_int(j, "step", m->last_step);
		js_close(j, '}');
	}
	js_close(j, ']');
}

void ml_write_run(struct call *c, struct js *j, const struct query_run *run)
{
	js_key(j, "info");
	ml_write_info(c, j, run);
	js_key(j, "data");
	js_open(j, '{');
	write_run_metrics(j, run);
	ml_write_tag_list(j, "params", run->params, run->param_count);
	ml_write_tag_list(j, "tags", run->tags, run->tag_count);
	js_close(j, '}');
}

int ml_lookup_run(struct call *c, const char *id, struct query_run *ret, struct err *err)
{
	struct filter_mlflow none = { FILTER_RUNS, NULL, NULL, 0 };
	struct query_runs_opts o = { .ids = &id, .id_count = 1, .with_deleted = true, .limit = 1, .mlflow = &none };
	struct query_runs runs;
	int rc = query_runs(c->api->store, &o, c->arena, &runs, err);

	if (!rc && runs.count)
		*ret = runs.items[0];
	return rc ? rc : runs.count > 0;
}

bool ml_find_run(struct call *c, const char *id, struct query_run *ret)
{
	struct err err = ERR_INIT;
	int rc = ml_lookup_run(c, id, ret, &err);

	if (!rc)
		ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Run with id=%s not found", id);
	else if (rc < 0)
		ml_fail_err(c, &err);
	return rc > 0;
}

static void write_run_dataset(struct js *j, const struct run_dataset *d)
{
	js_open(j, '{');
	ml_write_tag_list(j, "tags", d->tags, d->tag_count);
	js_key(j, "dataset");
	js_open(j, '{');
	js_key_str(j, "name", d->name);
	js_key_str(j, "digest", d->digest);
	js_key_str(j, "source_type", d->source_type);
	js_key_str(j, "source", d->source);
	if (d->schema)
		js_key_str(j, "schema", d->schema);
	if (d->profile)
		js_key_str(j, "profile", d->profile);
	js_close(j, '}');
	js_close(j, '}');
}

static void write_run_models(struct js *j, const char *key, const struct run_links *l, bool made)
{
	bool any = false;
	size_t i;

	for (i = 0; i < l->model_count; i++) {
		if (l->models[i].made != made)
			continue;
		if (!any) {
			js_key(j, key);
			js_open(j, '[');
		}
		any = true;
		js_open(j, '{');
		js_key_str(j, "model_id", l->models[i].id);
		if (made)
			js_key_int(j, "step", l->models[i].step);
		js_close(j, '}');
	}
	if (any)
		js_close(j, ']');
}

void ml_write_links(struct js *j, const struct run_links *l)
{
	size_t i;

	js_key(j, "inputs");
	js_open(j, '{');
	if (l->dataset_count) {
		js_key(j, "dataset_inputs");
		js_open(j, '[');
		for (i = 0; i < l->dataset_count; i++)
			write_run_dataset(j, &l->datasets[i]);
		js_close(j, ']');
	}
	write_run_models(j, "model_inputs", l, false);
	js_close(j, '}');
	js_key(j, "outputs");
	js_open(j, '{');
	write_run_models(j, "model_outputs", l, true);
	js_close(j, '}');
}
