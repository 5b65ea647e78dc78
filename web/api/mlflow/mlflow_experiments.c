/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_experiments.c: MLflow's /experiments. */
#include "web/api/mlflow/mlflow_request.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tracker/base/utf8.h"
#include "web/store/mlflow/experiments.h"

enum {
	EXPERIMENT_NAME_CHARS = 500,
	EXPERIMENT_TAG_CHARS = 20000,
	KEY_CHARS = 250,
	PAGE_MAX = 50000,
	LOCATION_CHARS = 2048
};

static void write_ml_experiment(struct js *j, const struct experiment *e)
{
	char text[64];

	js_open(j, '{');
	snprintf(text, sizeof(text), "%lld", (long long)e->id);
	js_key_str(j, "experiment_id", text);
	js_key_str(j, "name", e->name);
	snprintf(text, sizeof(text), "mlflow-artifacts:/%lld", (long long)e->id);
	js_key_str(j, "artifact_location", *e->location ? e->location : text);
	js_key_str(j, "lifecycle_stage", e->deleted ? "deleted" : "active");
	js_key_int(j, "last_update_time", e->updated_ms);
	js_key_int(j, "creation_time", e->created_ms);
	if (e->tag_count)
		ml_write_tag_list(j, "tags", e->tags, e->tag_count);
	js_key_str(j, "workspace", "default");
	js_close(j, '}');
}

static enum call_next reply_ml_experiment(struct call *c, const struct experiment *e)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key(&j, "experiment");
	write_ml_experiment(&j, e);
	js_close(&j, '}');
	return CALL_DONE;
}

static enum call_next reply_experiment_id(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_str(&j, "experiment_id", res->id);
	js_close(&j, '}');
	return CALL_DONE;
}

static bool check_location_scheme(struct call *c, const char *location)
{
	if (!ml_host_ok(c, "artifact_location", location))
		return false;
	if (strncasecmp(location, "mlflow-artifacts:", 17))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid artifact_location '%s': artifacts that this server stores have the location "
		"mlflow-artifacts:/<experiment>/<run>/artifacts; omit artifact_location.",
		location);
	return false;
}

static bool check_artifact_location(struct call *c, const char *location)
{
	const char *query = strchr(location, '?'), *params = strrchr(location, '/');

	params = strchr(params ? params : location, ';');
	if (strchr(location, '#') || (params && params[1] && !strstr(location, "://")))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "'artifact_location' URL can't include fragments or params.");
	else if (query && strstr(query, ".."))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid query string");
	else if (!strncmp(location, "runs:", 5))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Artifact location cannot be a runs:/ URI. Given: '%s'",
			location);
	else if (utf8_chars(location) > LOCATION_CHARS)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid artifact path length. The length of the artifact path cannot be greater than "
			"%d characters. To configure this limit, please set the MLFLOW_ARTIFACT_LOCATION_MAX_LENGTH "
			"environment variable.",
			LOCATION_CHARS);
	else
		return check_location_scheme(c, location);
	return false;
}

/* Makes a relative path of this machine absolute: it is relative to the working directory of the server. */
static const char *make_location_absolute(struct call *c, const char *location)
{
	char here[PATH_MAX];

	if (!*location || *location == '/' || strchr(location, ':') || !getcwd(here, sizeof(here)))
		return location;
	while (!strncmp(location, "./", 2))
		location += 2;
	return arena_printf(c->arena, "%s/%s", here, location);
}

enum call_next on_ml_experiment_create(struct call *c)
{
	const char *location = "";
	json_t *tags = NULL;
	struct ingest_kv *kv;
	struct mlflow_op op = { .kind = &mlflow_experiment_new };
	const struct ml_field fields[] = {
		{ "name", ML_STRING, true, &op.name, NULL }, { "artifact_location", ML_STRING, false, &location, NULL },
		{ "tags", ML_LIST, false, &tags, NULL }, { 0 },
	};
	size_t i;

	if (!ml_args(c, fields) || !ml_length_ok(c, "name", EXPERIMENT_NAME_CHARS, op.name) ||
	    !check_artifact_location(c, location) || !ml_pairs(c, tags, "tags", SIZE_MAX, &kv))
		return CALL_DONE;
	op.location = make_location_absolute(c, location);
	op.tags = kv;
	op.tag_count = json_array_size(tags);
	for (i = 0; i < op.tag_count; i++)
		if (!ml_length_ok(c, "key", KEY_CHARS, kv[i].key) ||
		    !ml_length_ok(c, "value", EXPERIMENT_TAG_CHARS, kv[i].value))
			return CALL_DONE;
	return ml_submit(c, &op, reply_experiment_id);
}

static enum call_next fail_experiment_lookup(struct call *c, int rc, const struct err *err, const char *text)
{
	return rc == ERR_NOENT ? ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "%s", text) : ml_fail_err(c, err);
}

enum call_next on_ml_experiment_get(struct call *c)
{
	const char *id = NULL;
	const struct ml_field fields[] = { { "experiment_id", ML_STRING, true, &id, NULL }, { 0 } };
	struct experiment e;
	struct err err = ERR_INIT;
	int64_t number;
	int rc;

	if (!ml_args(c, fields) || !ml_experiment_id(c, id, &number))
		return CALL_DONE;
	rc = experiment_get(c->api->store, number, c->arena, &e, &err);
	return rc ? fail_experiment_lookup(c, rc, &err, arena_printf(c->arena, "No Experiment with id=%s exists", id))
		  : reply_ml_experiment(c, &e);
}

enum call_next on_ml_experiment_by_name(struct call *c)
{
	const char *name = NULL;
	const struct ml_field fields[] = { { "experiment_name", ML_STRING, true, &name, NULL }, { 0 } };
	struct experiment e;
	struct err err = ERR_INIT;
	int rc;

	if (!ml_args(c, fields))
		return CALL_DONE;
	rc = experiment_find(c->api->store, name, c->arena, &e, &err);
	return rc ? fail_experiment_lookup(c, rc, &err,
					   arena_printf(c->arena, "Could not find experiment with name '%s'", name))
		  : reply_ml_experiment(c, &e);
}

/* Submits a change whose request names an experiment and at most one more member. */
static enum call_next submit_experiment_change(struct call *c, struct mlflow_op *op, const char *field)
{
	const char *id = NULL;
	const struct ml_field fields[] = {
		{ "experiment_id", ML_STRING, true, &id, NULL }, { field, ML_STRING, true, &op->name, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !ml_experiment_id(c, id, &op->experiment))
		return CALL_DONE;
	if (op->kind == &mlflow_experiment_rename && !ml_length_ok(c, "name", EXPERIMENT_NAME_CHARS, op->name))
		return CALL_DONE;
	return ml_submit(c, op, ml_empty);
}

enum call_next on_ml_experiment_delete(struct call *c)
{
	return submit_experiment_change(c, &(struct mlflow_op){ .kind = &mlflow_experiment_delete }, NULL);
}

enum call_next on_ml_experiment_restore(struct call *c)
{
	return submit_experiment_change(c, &(struct mlflow_op){ .kind = &mlflow_experiment_restore }, NULL);
}

enum call_next on_ml_experiment_update(struct call *c)
{
	return submit_experiment_change(c, &(struct mlflow_op){ .kind = &mlflow_experiment_rename }, "new_name");
}

enum call_next on_ml_experiment_untag(struct call *c)
{
	return submit_experiment_change(c, &(struct mlflow_op){ .kind = &mlflow_experiment_untag }, "key");
}

enum call_next on_ml_experiment_tag(struct call *c)
{
	struct ingest_kv kv = { .value = "" };
	struct mlflow_op op = { .kind = &mlflow_experiment_tag, .tags = &kv, .tag_count = 1 };
	const char *id = NULL;
	const struct ml_field fields[] = {
		{ "experiment_id", ML_STRING, true, &id, NULL }, { "key", ML_STRING, true, &kv.key, NULL },
		{ "value", ML_STRING, false, &kv.value, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !ml_experiment_id(c, id, &op.experiment) || !ml_name_ok(c, "key", kv.key) ||
	    !ml_length_ok(c, "key", KEY_CHARS, kv.key) || !ml_length_ok(c, "value", EXPERIMENT_TAG_CHARS, kv.value))
		return CALL_DONE;
	return ml_submit(c, &op, ml_empty);
}

static bool read_experiment_view(struct call *c, json_t *value, struct experiments_opts *o)
{
	int view = ml_view_type(c, value, "view_type");

	o->active = view != ML_VIEW_DELETED;
	o->deleted = view != ML_VIEW_ACTIVE;
	return view >= 0;
}

static bool read_experiment_limit(struct call *c, int64_t limit, struct experiments_opts *o)
{
	if (limit < 1)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value %lld for parameter 'max_results' supplied. It must be a positive "
			"integer",
			(long long)limit);
	else if (limit > PAGE_MAX)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Invalid value %lld for parameter 'max_results' supplied. It must be at most %d",
			(long long)limit, PAGE_MAX);
	o->limit = (size_t)limit;
	return limit >= 1 && limit <= PAGE_MAX;
}

enum call_next on_ml_experiment_search(struct call *c)
{
	struct experiments_opts o = { 0 };
	struct ml_strings order = { 0 };
	int64_t limit = 1000;
	struct js j = { .out = &c->out };
	struct experiments list;
	struct err err = ERR_INIT;
	json_t *request = ml_request(c);
	const struct ml_field fields[] = {
		{ "max_results", ML_INT, false, &limit, NULL }, { "page_token", ML_STRING, false, &o.page_token, NULL },
		{ "filter", ML_STRING, false, &o.filter, NULL }, { "order_by", ML_STRINGS, false, &order, NULL }, { 0 },
	};
	size_t i;

	if (!request || !ml_read(c, request, fields) || !read_experiment_limit(c, limit, &o) ||
	    !read_experiment_view(c, json_object_get(request, "view_type"), &o))
		return CALL_DONE;
	o.order = order.items;
	o.order_count = order.count;
	if (experiments_search(c->api->store, &o, c->arena, &list, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	if (list.count) {
		js_key_open(&j, "experiments", '[');
		for (i = 0; i < list.count; i++)
			write_ml_experiment(&j, &list.items[i]);
		js_close(&j, ']');
	}
	if (list.next_page_token)
		js_key_str(&j, "next_page_token", list.next_page_token);
	js_close(&j, '}');
	return CALL_DONE;
}
