/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_inputs_route.c: logs the inputs and outputs of a run: data sets and logged models. */
#include "web/api/mlflow/mlflow_request.h"

#include <string.h>

enum { NAME_CHARS = 500, DIGEST_CHARS = 36, SOURCE_CHARS = 65535, SCHEMA_CHARS = 1048575, PROFILE_CHARS = 16777215 };
enum { TAG_KEY_CHARS = 255, TAG_VALUE_CHARS = 500, SEARCH_EXPERIMENTS = 20, HISTORY_CHARS = 8000 };

#define HISTORY_TAG "mlflow.log-model.history"

/* --- logging ------------------------------------------------------------------------------------------------ */

static bool read_dataset_tags(struct call *c, json_t *list, struct ingest_dataset *d)
{
	const struct ingest_kv *kv = ml_any_pairs(c, list, "tags", true, &d->tag_count);

	for (size_t i = 0; kv && i < d->tag_count; i++)
		if (!ml_length_ok(c, "key", TAG_KEY_CHARS, kv[i].key) ||
		    !ml_length_ok(c, "value", TAG_VALUE_CHARS, kv[i].value))
			return false;
	d->tags = kv;
	return kv != NULL;
}

/* Reads one item of "datasets": {"dataset": {…}, "tags": […]}. */
static bool read_dataset_input(struct call *c, json_t *list, size_t index, struct ingest_dataset *d)
{
	json_t *dataset = NULL, *tags = NULL;
	const struct ml_field outer[] = { { "dataset", ML_OBJECT, true, &dataset, NULL },
					  { "tags", ML_LIST, false, &tags, NULL },
					  { 0 } };
	const struct ml_field inner[] = {
		{ "name", ML_STRING, true, &d->name, NULL },
		{ "digest", ML_STRING, true, &d->digest, NULL },
		{ "source_type", ML_STRING, false, &d->source_type, NULL },
		{ "source", ML_STRING, false, &d->source, NULL },
		{ "schema", ML_STRING, false, &d->schema, NULL },
		{ "profile", ML_STRING, false, &d->profile, NULL },
		{ 0 },
	};

	d->source_type = d->source = "";
	return ml_read_item(c, list, "datasets", index, outer) && ml_read(c, dataset, inner) &&
	       ml_length_ok(c, "name", NAME_CHARS, d->name) && ml_length_ok(c, "digest", DIGEST_CHARS, d->digest) &&
	       ml_length_ok(c, "source", SOURCE_CHARS, d->source) &&
	       ml_length_ok(c, "schema", SCHEMA_CHARS, d->schema) &&
	       ml_length_ok(c, "profile", PROFILE_CHARS, d->profile) && read_dataset_tags(c, tags, d);
}

static bool read_run_models(struct call *c, json_t *list, struct mlflow_op *op)
{
	size_t n = json_array_size(list), i;
	struct mlflow_model *models = arena_array(c->arena, n + 1, sizeof(*models));

	for (i = 0; i < n; i++) {
		const struct ml_field fields[] = { { "model_id", ML_STRING, true, &models[i].id, NULL },
						   { "step", ML_INT, false, &models[i].step, NULL },
						   { 0 } };

		if (!ml_read_item(c, list, "models", i, fields))
			return false;
	}
	op->models = models;
	op->model_count = n;
	return true;
}

enum call_next on_ml_inputs_log(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_inputs_read };
	json_t *datasets = NULL, *models = NULL;
	struct ingest_dataset *d;
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "datasets", ML_LIST, false, &datasets, NULL },
		{ "models", ML_LIST, false, &models, NULL }, { 0 },
	};
	size_t i;

	if (!ml_args(c, fields) || !ml_run_id_ok(c, op.run) || !read_run_models(c, models, &op))
		return CALL_DONE;
	op.dataset_count = json_array_size(datasets);
	d = arena_array(c->arena, op.dataset_count + 1, sizeof(*d));
	for (i = 0; i < op.dataset_count; i++)
		if (!read_dataset_input(c, datasets, i, &d[i]))
			return CALL_DONE;
	op.datasets = d;
	return ml_submit(c, &op, ml_empty);
}

enum call_next on_ml_outputs_log(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_inputs_made };
	json_t *models = NULL;
	const struct ml_field fields[] = { { "run_id", ML_STRING, true, &op.run, NULL },
					   { "models", ML_LIST, true, &models, NULL },
					   { 0 } };

	if (!ml_args(c, fields) || !ml_run_id_ok(c, op.run) || !read_run_models(c, models, &op))
		return CALL_DONE;
	return ml_submit(c, &op, ml_empty);
}

/* --- models of older clients ------------------------------------------------------------------------------------ */

static bool check_model_json(struct call *c, json_t *model, const char *text)
{
	static const char *const needed[] = { "artifact_path", "flavors", "utc_time_created", "run_id" };
	const char *missing = "";
	size_t i;

	if (!json_is_object(model)) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Malformed model info. \n %s \n is not a valid JSON.", text);
		return false;
	}
	for (i = 0; i < 4; i++)
		if (!json_object_get(model, needed[i]))
			missing = arena_printf(c->arena, "%s%s'%s'", missing, *missing ? ", " : "", needed[i]);
	if (!*missing)
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Model json is missing mandatory fields: {%s}", missing);
	return false;
}

/* The JSON list in the run's history tag with the model appended. */
static const char *append_model_history(struct call *c, const struct query_run *run, json_t *model)
{
	json_t *list = NULL;
	char *text;
	const char *copy;
	size_t i;

	for (i = 0; i < run->tag_count; i++)
		if (!strcmp(run->tags[i].key, HISTORY_TAG))
			list = json_loads(run->tags[i].value, 0, NULL);
	if (!json_is_array(list)) {
		json_decref(list);
		list = json_array();
	}
	json_array_append(list, model);
	text = json_dumps(list, 0);
	json_decref(list);
	copy = text ? arena_strdup(c->arena, text) : NULL;
	free(text);
	return copy;
}

enum call_next on_ml_model_record(struct call *c)
{
	struct ingest_kv kv = { .key = HISTORY_TAG };
	struct mlflow_op op = { .kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME, .tags = &kv, .tag_count = 1 };
	const char *text = NULL;
	const struct ml_field fields[] = { { "run_id", ML_STRING, true, &op.run, NULL },
					   { "model_json", ML_STRING, true, &text, NULL },
					   { 0 } };
	struct query_run run;
	json_t *model;

	if (!ml_args(c, fields))
		return CALL_DONE;
	model = json_too_much(text, strlen(text)) ? NULL : json_loads(text, 0, NULL);
	if (check_model_json(c, model, text) && ml_run_id_ok(c, op.run) && ml_find_run(c, op.run, &run))
		kv.value = append_model_history(c, &run, model);
	json_decref(model);
	if (!kv.value || !ml_length_ok(c, "value", HISTORY_CHARS, kv.value))
		return CALL_DONE;
	return ml_submit(c, &op, ml_empty);
}

/* --- data sets of experiments -------------------------------------------------------------------------------- */

/* Reads the ids without duplicates. Returns false after failing the call. */
static bool read_dataset_experiments(struct call *c, const struct ml_strings *ids, int64_t **ret, size_t *ret_count)
{
	size_t i, k, n = 0;

	if (!ids->count)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"SearchDatasets request must specify at least one experiment_id.");
	else if (ids->count > SEARCH_EXPERIMENTS)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"SearchDatasets request cannot specify more than %d experiment_ids. Received %zu "
			"experiment_ids.",
			SEARCH_EXPERIMENTS, ids->count);
	if (!ids->count || ids->count > SEARCH_EXPERIMENTS)
		return false;
	*ret = arena_array(c->arena, ids->count, sizeof(**ret));
	for (i = 0; i < ids->count; i++) {
		if (!ml_experiment_id(c, ids->items[i], &(*ret)[n]))
			return false;
		for (k = 0; k < n && (*ret)[k] != (*ret)[n]; k++)
			;
		n += k == n;
	}
	*ret_count = n;
	return true;
}

enum call_next on_ml_dataset_search(struct call *c)
{
	struct ml_strings ids = { 0 };
	const struct ml_field fields[] = { { "experiment_ids", ML_STRINGS, false, &ids, NULL }, { 0 } };
	struct js j = { .out = &c->out };
	struct dataset_summaries found;
	struct err err = ERR_INIT;
	int64_t *numbers;
	size_t count, i;

	if (!ml_args(c, fields) || !read_dataset_experiments(c, &ids, &numbers, &count))
		return CALL_DONE;
	found = (struct dataset_summaries){ .experiments = numbers, .experiment_count = count };
	if (dataset_summaries(c->api->store, &found, c->arena, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	if (found.count)
		js_key_open(&j, "dataset_summaries", '[');
	for (i = 0; i < found.count; i++) {
		const struct dataset_summary *d = &found.items[i];

		js_open(&j, '{');
		js_key_str(&j, "experiment_id", d->experiment);
		js_key_str(&j, "name", d->name);
		js_key_str(&j, "digest", d->digest);
		if (d->context)
			js_key_str(&j, "context", d->context);
		js_close(&j, '}');
	}
	if (found.count)
		js_close(&j, ']');
	js_close(&j, '}');
	return CALL_DONE;
}
