/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_run_json.c: a run in MLflow's JSON, with its inputs and outputs; /runs/search. */
#include <stdlib.h>

#include "web/api/mlflow/mlflow_request.h"
#include "web/store/filter/filter.h"

void ml_write_tag_list(struct js *j, const char *key, const struct query_kv *kv, size_t n)
{
	size_t i;

	if (!n)
		return;
	js_key_open(j, key, '[');
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
	js_key_open(j, "metrics", '[');
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
	js_key_open(j, "data", '{');
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
	js_key_open(j, "dataset", '{');
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
		if (!any)
			js_key_open(j, key, '[');
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

	js_key_open(j, "inputs", '{');
	if (l->dataset_count) {
		js_key_open(j, "dataset_inputs", '[');
		for (i = 0; i < l->dataset_count; i++)
			write_run_dataset(j, &l->datasets[i]);
		js_close(j, ']');
	}
	write_run_models(j, "model_inputs", l, false);
	js_close(j, '}');
	js_key_open(j, "outputs", '{');
	write_run_models(j, "model_outputs", l, true);
	js_close(j, '}');
}

/* --- /runs/search ----------------------------------------------------------------------------------------------- */

enum { SEARCH_PAGE = 1000, SEARCH_MAX = 50000 };

static bool check_search_limit(struct call *c, int64_t limit)
{
	json_t *value;

	if (limit >= 1 && limit <= SEARCH_MAX)
		return true;
	if (limit < 1) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value %lld for parameter 'max_results' supplied. It must be a positive "
			"integer",
			(long long)limit);
		return false;
	}
	value = json_integer(limit);
	ml_fail_value(c, "max_results", value,
		      " Hint: Value was of type 'int'. See the API docs for more information about "
		      "request parameters.");
	json_decref(value);
	return false;
}

static bool read_search_experiments(struct call *c, const struct ml_strings *ids, struct query_runs_opts *o)
{
	int64_t *numbers = arena_array(c->arena, ids->count + 1, sizeof(*numbers));
	size_t i;

	for (i = 0; i < ids->count; i++)
		if (!ml_experiment_id(c, ids->items[i], &numbers[i]))
			return false;
	o->experiment_ids = numbers;
	o->experiment_count = ids->count;
	return true;
}

/* Inputs and outputs of each run; NULL after failing the call. */
static const struct run_links *read_search_links(struct call *c, const struct query_runs *runs)
{
	const char **ids = arena_array(c->arena, runs->count + 1, sizeof(*ids));
	struct run_links *links = arena_array(c->arena, runs->count + 1, sizeof(*links));
	struct err err = ERR_INIT;
	size_t i;

	for (i = 0; i < runs->count; i++)
		ids[i] = runs->items[i].id;
	if (runs->count && runs_links(c->api->store, &(struct runs_linked){ ids, runs->count, links }, c->arena, &err))
		return ml_fail_err(c, &err), NULL;
	return links;
}

/* Writes the page of runs, each with its inputs and outputs. */
static enum call_next reply_search(struct call *c, const struct query_runs *runs)
{
	const struct run_links *links = read_search_links(c, runs);
	struct js j = { .out = &c->out };
	size_t i;

	if (!links)
		return CALL_DONE;
	js_open(&j, '{');
	if (runs->count) {
		js_key_open(&j, "runs", '[');
		for (i = 0; i < runs->count; i++) {
			js_open(&j, '{');
			ml_write_run(c, &j, &runs->items[i]);
			ml_write_links(&j, &links[i]);
			js_close(&j, '}');
		}
		js_close(&j, ']');
	}
	if (runs->next_page_token)
		js_key_str(&j, "next_page_token", runs->next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_run_search(struct call *c)
{
	struct ml_strings ids = { 0 }, order = { 0 };
	struct filter_mlflow text = { FILTER_RUNS, NULL, NULL, 0 };
	struct query_runs_opts o = { .mlflow = &text };
	int64_t limit = SEARCH_PAGE;
	struct query_runs runs = { 0 };
	struct err err = ERR_INIT;
	json_t *request = ml_request(c);
	const struct ml_field fields[] = {
		{ "experiment_ids", ML_STRINGS, false, &ids, NULL }, { "filter", ML_STRING, false, &text.filter, NULL },
		{ "max_results", ML_INT, false, &limit, NULL }, { "order_by", ML_STRINGS, false, &order, NULL },
		{ "page_token", ML_STRING, false, &o.page_token, NULL }, { 0 },
	};
	int view;

	if (!request || !ml_read(c, request, fields) || !check_search_limit(c, limit) ||
	    !read_search_experiments(c, &ids, &o))
		return CALL_DONE;
	view = ml_view_type(c, json_object_get(request, "run_view_type"), "run_view_type");
	if (view < 0)
		return CALL_DONE;
	text.order = order.items;
	text.order_count = order.count;
	o.limit = (size_t)limit;
	o.with_deleted = view != ML_VIEW_ACTIVE;
	o.only_deleted = view == ML_VIEW_DELETED;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return ml_fail_err(c, &err);
	return reply_search(c, &runs);
}
