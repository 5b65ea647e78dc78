/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_models.c: MLflow's logged models, and the description of the server that its clients query. */
#include "web/api/mlflow/mlflow_request.h"

#include <string.h>

#include "tracker/base/text.h"
#include "web/store/mlflow/experiments.h"

enum { MODEL_NAME_CHARS = 500, SEARCH_PAGE = 50, SEARCH_MAX = 50000 };

/* Writes the member "metrics" unless it is empty. */
static void write_model_metrics(struct js *j, const struct model *m)
{
	size_t i;

	if (!m->metric_count)
		return;
	js_key_open(j, "metrics", '[');
	for (i = 0; i < m->metric_count; i++) {
		const struct model_metric *p = &m->metrics[i];

		js_open(j, '{');
		js_key_str(j, "key", p->key);
		js_key_double(j, "value", p->value);
		js_key_int(j, "timestamp", p->time_ms);
		js_key_int(j, "step", p->step);
		if (*p->dataset_name)
			js_key_str(j, "dataset_name", p->dataset_name);
		if (*p->dataset_digest)
			js_key_str(j, "dataset_digest", p->dataset_digest);
		js_key_str(j, "model_id", m->id);
		js_key_str(j, "run_id", p->run);
		js_close(j, '}');
	}
	js_close(j, ']');
}

/* In a folder next to the runs of its experiment. */
const char *ml_model_location(struct call *c, const struct model *m)
{
	const char *location = "";
	struct err err = ERR_INIT;

	experiment_location(c->api->store, m->experiment, c->arena, &location, &err);
	return location_of(c->arena, location, m->experiment, arena_printf(c->arena, "models/%s/artifacts", m->id));
}

/* Writes {"info": {…}, "data": {…}}. */
static void write_logged_model(struct call *c, struct js *j, const struct model *m)
{
	js_open(j, '{');
	js_key_open(j, "info", '{');
	js_key_str(j, "model_id", m->id);
	js_key_str(j, "experiment_id", arena_printf(c->arena, "%lld", (long long)m->experiment));
	js_key_str(j, "name", m->name);
	js_key_int(j, "creation_timestamp_ms", m->created_ms);
	js_key_int(j, "last_updated_timestamp_ms", m->updated_ms);
	js_key_str(j, "artifact_uri", ml_model_location(c, m));
	js_key_str(j, "status", m->status);
	js_key_str(j, "model_type", m->type);
	js_key_str(j, "source_run_id", m->source_run);
	ml_write_tag_list(j, "tags", m->tags, m->tag_count);
	js_close(j, '}');
	js_key_open(j, "data", '{');
	ml_write_tag_list(j, "params", m->params, m->param_count);
	write_model_metrics(j, m);
	js_close(j, '}');
	js_close(j, '}');
}

static bool find_logged_model(struct call *c, const char *id, bool with_deleted, struct model *ret)
{
	struct err err = ERR_INIT;
	int rc = with_deleted ? model_get_deleted(c->api->store, id, c->arena, ret, &err)
			      : model_get(c->api->store, id, c->arena, ret, &err);

	if (rc == ERR_NOENT)
		ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Logged model with ID '%s' not found.", id);
	else if (rc)
		ml_fail_err(c, &err);
	return !rc;
}

bool ml_find_model(struct call *c, const char *id, struct model *ret)
{
	return find_logged_model(c, id, false, ret);
}

static enum call_next reply_logged_model(struct call *c, const char *id, bool with_deleted)
{
	struct js j = { .out = &c->out };
	struct model m;

	if (!find_logged_model(c, id, with_deleted, &m))
		return CALL_DONE;
	js_open(&j, '{');
	js_key(&j, "model");
	write_logged_model(c, &j, &m);
	js_close(&j, '}');
	return CALL_DONE;
}

static enum call_next reply_changed_model(struct call *c, const struct ingest_result *res)
{
	return reply_logged_model(c, arena_strdup(c->arena, res->id), false);
}

/* --- creation and changes ------------------------------------------------------------------------------------ */

/* MLflow's servers draw the id; `dptrack import` names that of the original, so that models:/m-… finds it. */
static const char *draw_model_id(struct call *c)
{
	char text[35] = "m-";

	return text_random_hex(text + 2, 16) ? NULL : arena_strdup(c->arena, text);
}

static bool read_model_pairs(struct call *c, json_t *list, const char *what, const struct ingest_kv **ret,
			     size_t *ret_count)
{
	*ret = ml_any_pairs(c, list, what, true, ret_count);
	return *ret != NULL;
}

static bool check_logged_model_name(struct call *c, const char *name)
{
	if (!strpbrk(name, "/:.%\"'"))
		return ml_length_ok(c, "name", MODEL_NAME_CHARS, name);
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid model name ('%s') provided. Model name must be a non-empty string and cannot "
		"contain the following characters: ('/', ':', '.', '%%', '\"', \"'\")",
		name);
	return false;
}

enum call_next on_ml_model_create(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_model_new, .name = "", .type = "", .source_run = "" };
	const char *experiment = NULL;
	json_t *params = NULL, *tags = NULL;
	struct err err = ERR_INIT;
	struct model there;
	const struct ml_field fields[] = {
		{ "model_id", ML_STRING, false, &op.model, NULL },
		{ "experiment_id", ML_STRING, true, &experiment, NULL },
		{ "name", ML_STRING, false, &op.name, NULL },
		{ "model_type", ML_STRING, false, &op.type, NULL },
		{ "source_run_id", ML_STRING, false, &op.source_run, NULL },
		{ "params", ML_LIST, false, &params, NULL },
		{ "tags", ML_LIST, false, &tags, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields) || !ml_experiment_id(c, experiment, &op.experiment) ||
	    !check_logged_model_name(c, op.name) ||
	    !read_model_pairs(c, params, "params", &op.params, &op.param_count) ||
	    !read_model_pairs(c, tags, "tags", &op.tags, &op.tag_count))
		return CALL_DONE;
	op.name = *op.name ? op.name : ml_random_name(c);
	if (op.model && (strncmp(op.model, "m-", 2) || !text_is_hex(op.model + 2, 32, 32)))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "model_id: expected m- and 32 lower-case hex digits");
	if (op.model && !model_get_deleted(c->api->store, op.model, c->arena, &there, &err))
		return reply_logged_model(c, op.model, true);
	op.model = op.model ? op.model : draw_model_id(c);
	if (!op.model)
		return ml_fail(c, ML_INTERNAL_ERROR, "cannot get random bytes");
	return ml_submit(c, &op, reply_changed_model);
}

enum call_next on_ml_model_get(struct call *c)
{
	const char *deleted = call_arg(c, "allow_deleted");

	return reply_logged_model(c, c->address.vars[0], deleted && !strcasecmp(deleted, "true"));
}

enum call_next on_ml_model_finish(struct call *c)
{
	static const char *const names[] = { "LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY",
					     "LOGGED_MODEL_UPLOAD_FAILED" };
	struct mlflow_op op = { .kind = &mlflow_model_status, .model = c->address.vars[0] };
	json_t *request = ml_request(c), *status;
	const char *text;
	json_int_t number;
	size_t i;

	if (!request)
		return CALL_DONE;
	status = json_object_get(request, "status");
	text = json_string_value(status);
	number = text && text[0] && !text[1] ? text[0] - '0' : json_integer_value(status);
	for (i = 0; i < 3; i++)
		if ((text && !strcmp(names[i], text)) || number == (json_int_t)i + 1)
			op.status = names[i];
	if (!status || json_is_null(status) || (text && !*text))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			       "Missing value for required parameter 'status'." ML_SEE_DOCS);
	if (!op.status)
		return ml_fail_value(c, "status", status, ""), CALL_DONE;
	return ml_submit(c, &op, reply_changed_model);
}

enum call_next on_ml_model_delete(struct call *c)
{
	return ml_submit(c, &(struct mlflow_op){ .kind = &mlflow_model_delete, .model = c->address.vars[0] }, ml_empty);
}

enum call_next on_ml_model_tag(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_model_tags, .model = c->address.vars[0] };
	json_t *tags = NULL;
	const struct ml_field fields[] = { { "tags", ML_LIST, false, &tags, NULL }, { 0 } };

	if (!ml_args(c, fields) || !read_model_pairs(c, tags, "tags", &op.tags, &op.tag_count))
		return CALL_DONE;
	return ml_submit(c, &op, ml_empty);
}

enum call_next on_ml_model_untag(struct call *c)
{
	return ml_submit(c,
			 &(struct mlflow_op){ .kind = &mlflow_model_untag, .model = c->address.vars[0],
					     .name = c->address.vars[1] },
			 ml_empty);
}

enum call_next on_ml_model_params(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_model_params, .model = c->address.vars[0] };
	json_t *params = NULL;
	const struct ml_field fields[] = { { "params", ML_LIST, false, &params, NULL }, { 0 } };

	if (!ml_args(c, fields) || !read_model_pairs(c, params, "params", &op.params, &op.param_count))
		return CALL_DONE;
	return ml_submit(c, &op, ml_empty);
}

/* --- search ------------------------------------------------------------------------------------------------- */

/* Reads the data sets whose metrics a search uses. */
static bool read_search_datasets(struct call *c, json_t *list, struct models_opts *o)
{
	size_t n = json_array_size(list), i;
	struct models_dataset *d = arena_array(c->arena, n + 1, sizeof(*d));

	for (i = 0; i < n; i++) {
		const struct ml_field fields[] = {
			{ "dataset_name", ML_STRING, false, &d[i].name, NULL },
			{ "dataset_digest", ML_STRING, false, &d[i].digest, NULL },
			{ 0 },
		};

		if (!ml_read_item(c, list, "datasets", i, fields))
			return false;
		if (!d[i].name || !*d[i].name) {
			ml_fail(c, ML_INVALID_PARAMETER_VALUE,
				"`dataset_name` in the `datasets` clause must be specified.");
			return false;
		}
		d[i].digest = d[i].digest && *d[i].digest ? d[i].digest : NULL;
	}
	o->datasets = d;
	o->dataset_count = n;
	return true;
}

/* Reads order_by; an empty data set name or digest counts as absent. */
static bool read_model_order(struct call *c, json_t *list, struct models_opts *o)
{
	size_t n = json_array_size(list), i;
	struct models_order *order = arena_array(c->arena, n + 1, sizeof(*order));

	for (i = 0; i < n; i++) {
		bool ascending = true;
		const struct ml_field fields[] = {
			{ "field_name", ML_STRING, true, &order[i].field, NULL },
			{ "ascending", ML_BOOL, false, &ascending, NULL },
			{ "dataset_name", ML_STRING, false, &order[i].dataset.name, NULL },
			{ "dataset_digest", ML_STRING, false, &order[i].dataset.digest, NULL },
			{ 0 },
		};

		if (!ml_read_item(c, list, "order_by", i, fields))
			return false;
		order[i].descending = !ascending;
		if (order[i].dataset.name && !*order[i].dataset.name)
			order[i].dataset.name = NULL;
		if (order[i].dataset.digest && !*order[i].dataset.digest)
			order[i].dataset.digest = NULL;
	}
	o->order = order;
	o->order_count = n;
	return true;
}

static bool read_model_experiments(struct call *c, const struct ml_strings *ids, struct models_opts *o)
{
	int64_t *numbers = arena_array(c->arena, ids->count + 1, sizeof(*numbers));
	size_t i;

	for (i = 0; i < ids->count; i++)
		if (!ml_experiment_id(c, ids->items[i], &numbers[i]))
			return false;
	o->experiments = numbers;
	o->experiment_count = ids->count;
	return true;
}

static enum call_next reply_model_list(struct call *c, const struct models *list)
{
	struct js j = { .out = &c->out };
	size_t i;

	js_open(&j, '{');
	if (list->count) {
		js_key_open(&j, "models", '[');
		for (i = 0; i < list->count; i++)
			write_logged_model(c, &j, &list->items[i]);
		js_close(&j, ']');
	}
	if (list->next_page_token)
		js_key_str(&j, "next_page_token", list->next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_model_search(struct call *c)
{
	struct models_opts o = { 0 };
	struct ml_strings ids = { 0 };
	json_t *datasets = NULL, *order = NULL;
	int64_t limit = 0;
	const struct ml_field fields[] = {
		{ "experiment_ids", ML_STRINGS, true, &ids, NULL },
		{ "filter", ML_STRING, false, &o.filter, NULL },
		{ "datasets", ML_LIST, false, &datasets, NULL },
		{ "max_results", ML_INT, false, &limit, NULL },
		{ "order_by", ML_LIST, false, &order, NULL },
		{ "page_token", ML_STRING, false, &o.page_token, NULL },
		{ 0 },
	};
	struct models list;
	struct err err = ERR_INIT;

	if (!ml_args(c, fields) || !read_model_experiments(c, &ids, &o) || !read_search_datasets(c, datasets, &o) ||
	    !read_model_order(c, order, &o))
		return CALL_DONE;
	o.limit = limit < 1 ? SEARCH_PAGE : limit < SEARCH_MAX ? (size_t)limit : SEARCH_MAX;
	return models_search(c->api->store, &o, c->arena, &list, &err) ? ml_fail_err(c, &err)
								       : reply_model_list(c, &list);
}

/* --- the server ----------------------------------------------------------------------------------------------- */

enum call_next on_ml_server_info(struct call *c)
{
	buf_adds(&c->out, "{\"store_type\":\"SqlStore\",\"workspaces_enabled\":false,\"trace_archival_enabled\":false,"
			  "\"multipart_uploads_enabled\":false,\"multipart_downloads_enabled\":false,"
			  "\"presigned_upload_run_id_supported\":false,\"presigned_upload_model_id_supported\":false,"
			  "\"features_enabled\":[]}");
	return CALL_DONE;
}
