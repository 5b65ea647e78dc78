/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_runs.c: MLflow's /runs: creation, reading, changes, deletion. */
#include "web/api/mlflow/mlflow_request.h"

#include <stdlib.h>
#include <string.h>

#include "web/store/mlflow/experiments.h"

enum { KEY_CHARS = 250, TAG_CHARS = 8000, PARAM_CHARS = 6000 };
enum { BATCH_METRICS = 1000, BATCH_PARAMS = 100, BATCH_TAGS = 100, BATCH_ALL = 1000 };

#define NAME_TAG "mlflow.runName"

/* --- creation ----------------------------------------------------------------------------------------------- */

static int compare_tag_keys(const void *a, const void *b)
{
	const struct ingest_kv *const *x = a, *const *y = b;
	int order = strcmp((*x)->key, (*y)->key);

	return order ? order : (*x > *y) - (*x < *y);
}

/* Sorts the tags as they will be stored; of a duplicate key the later value wins. */
static void sort_run_tags(struct call *c, const struct mlflow_op *op, struct query_run *ret)
{
	const struct ingest_kv **order = arena_array(c->arena, op->tag_count + 1, sizeof(*order));
	size_t i;

	ret->tags = arena_array(c->arena, op->tag_count + 1, sizeof(*ret->tags));
	for (i = 0; i < op->tag_count; i++)
		order[i] = &op->tags[i];
	qsort(order, op->tag_count, sizeof(*order), compare_tag_keys);
	for (i = 0; i < op->tag_count; i++) {
		if (i + 1 < op->tag_count && !strcmp(order[i]->key, order[i + 1]->key))
			continue;
		ret->tags[ret->tag_count++] = (struct query_kv){ order[i]->key, order[i]->value };
	}
}

/* Describes the new run from its request; only the location of the experiment is read from the store. */
static bool describe_new_run(struct call *c, const struct ingest_result *res, struct query_run *ret)
{
	const struct mlflow_op *op = c->own;
	struct err err = ERR_INIT;

	*ret = (struct query_run){ .id = arena_strdup(c->arena, res->id),
				   .name = op->name,
				   .experiment_id = arena_printf(c->arena, "%lld", (long long)op->experiment),
				   .user = op->user,
				   .status = "running",
				   .start_ms = op->start_ms,
				   .end_ms = INT64_MIN };
	sort_run_tags(c, op, ret);
	if (!experiment_location(c->api->store, op->experiment, c->arena, &ret->location, &err))
		return true;
	ml_fail_err(c, &err);
	return false;
}

static enum call_next reply_created_run(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };
	struct query_run run;

	if (!describe_new_run(c, res, &run))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "run", '{');
	ml_write_run(c, &j, &run);
	js_key(&j, "inputs");
	js_raw(&j, "{}");
	js_close(&j, '}');
	js_close(&j, '}');
	return CALL_DONE;
}

/* The name comes from run_name, from a tag, or is random. The tag is then set to it. */
static bool choose_run_name(struct call *c, struct mlflow_op *op, struct ingest_kv *kv)
{
	const char *tagged = NULL;
	size_t i;

	for (i = 0; i < op->tag_count; i++)
		if (!strcmp(kv[i].key, NAME_TAG))
			tagged = kv[i].value;
	if (op->name && *op->name && tagged && strcmp(op->name, tagged)) {
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"Both 'run_name' argument and '" NAME_TAG "' tag are specified, but with different "
			"values (run_name='%s', " NAME_TAG "='%s').",
			op->name, tagged);
		return false;
	}
	if (!op->name || !*op->name)
		op->name = tagged && *tagged ? tagged : ml_random_name(c);
	op->name = ml_cut(c, op->name, 500);
	if (!tagged)
		kv[op->tag_count++] = (struct ingest_kv){ NAME_TAG, op->name };
	return op->name != NULL;
}

enum call_next on_ml_run_create(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_run_new, .user = "" }, *kept;
	const char *experiment = NULL;
	json_t *tags = NULL;
	struct ingest_kv *kv;
	const struct ml_field fields[] = {
		{ "experiment_id", ML_STRING, false, &experiment, NULL },
		{ "start_time", ML_INT, false, &op.start_ms, NULL },
		{ "run_name", ML_STRING, false, &op.name, NULL },
		{ "user_id", ML_STRING, false, &op.user, NULL },
		{ "tags", ML_LIST, false, &tags, NULL },
		{ 0 },
	};

	if (!ml_args(c, fields))
		return CALL_DONE;
	if (!experiment || !*experiment)
		return ml_fail(c, ML_BAD_REQUEST, "Missing value for required parameter 'experiment_id'.");
	if (!ml_experiment_id(c, experiment, &op.experiment) || !ml_pairs(c, tags, "tags", TAG_CHARS, &kv))
		return CALL_DONE;
	op.tags = kv;
	op.tag_count = json_array_size(tags);
	if (!choose_run_name(c, &op, kv))
		return CALL_DONE;
	kept = arena_alloc(c->arena, sizeof(*kept));
	*kept = op;
	c->own = kept;
	return ml_submit(c, &op, reply_created_run);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

enum call_next on_ml_run_get(struct call *c)
{
	const char *id = NULL;
	const struct ml_field fields[] = { { "run_id", ML_STRING, true, &id, NULL }, { 0 } };
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct run_links links;
	struct query_run run;

	if (!ml_args(c, fields) || !ml_run_id_ok(c, id) || !ml_find_run(c, id, &run))
		return CALL_DONE;
	if (run_links(c->api->store, run.id, c->arena, &links, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	js_key_open(&j, "run", '{');
	ml_write_run(c, &j, &run);
	ml_write_links(&j, &links);
	js_close(&j, '}');
	js_close(&j, '}');
	return CALL_DONE;
}

/* --- changes ------------------------------------------------------------------------------------------------ */

static enum call_next reply_updated_run(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };
	struct query_run run;

	if (!ml_find_run(c, arena_strdup(c->arena, res->id), &run))
		return CALL_DONE;
	js_open(&j, '{');
	js_key(&j, "run_info");
	ml_write_info(c, &j, &run);
	js_close(&j, '}');
	return CALL_DONE;
}

/* A name such as RUNNING, or its number; NULL after failing the call. */
static const char *read_run_status(struct call *c, json_t *value)
{
	static const char *const names[][2] = {
		{ "RUNNING", "running" }, { "SCHEDULED", "scheduled" }, { "FINISHED", "finished" },
		{ "FAILED", "failed" },	  { "KILLED", "killed" },
	};
	const char *text = json_string_value(value);
	json_int_t number = json_integer_value(value);
	int i;

	if (text && text[0] >= '1' && text[0] <= '5' && !text[1])
		number = text[0] - '0';
	for (i = 0; i < 5; i++)
		if ((text && !strcmp(text, names[i][0])) || number == i + 1)
			return names[i][1];
	ml_fail_value(c, "status", value, "");
	return NULL;
}

enum call_next on_ml_run_update(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME };
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "end_time", ML_INT, false, &op.end_ms, NULL },
		{ "run_name", ML_STRING, false, &op.name, NULL }, { 0 },
	};
	json_t *request = ml_request(c), *status;

	if (!request || !ml_read(c, request, fields))
		return CALL_DONE;
	status = json_object_get(request, "status");
	if (status && !json_is_null(status) && !(op.status = read_run_status(c, status)))
		return CALL_DONE;
	if (op.name)
		op.name = *op.name ? ml_cut(c, op.name, 500) : NULL;
	return ml_submit(c, &op, reply_updated_run);
}

static enum call_next reply_deleted_run(struct call *c, const struct ingest_result *res)
{
	if (res->code == ERR_NOENT || res->code == ERR_USAGE)
		return ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Run with id=%s not found",
			       (const char *)c->address.vars[0]);
	return res->code ? ml_fail_err(c, &res->err) : ml_empty(c, res);
}

static enum call_next submit_run_deletion(struct call *c, const struct change_ops *kind)
{
	struct ingest_op op = { .kind = kind, .state = INGEST_NO_STATE };
	const struct ml_field fields[] = { { "run_id", ML_STRING, true, &op.run, NULL }, { 0 } };

	if (!ml_args(c, fields))
		return CALL_DONE;
	c->address.vars[0] = op.run;
	if (!call_is_run_id(op.run))
		return ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "Run with id=%s not found", op.run);
	return api_submit(c, &(struct api_change){ .op = &op, .keep_errors = true, .then = reply_deleted_run });
}

enum call_next on_ml_run_delete(struct call *c)
{
	return submit_run_deletion(c, &change_run_delete);
}

enum call_next on_ml_run_restore(struct call *c)
{
	return submit_run_deletion(c, &change_run_restore);
}

enum call_next on_ml_tag_set(struct call *c)
{
	struct ingest_kv kv = { .value = "" };
	struct mlflow_op op = { .kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME, .tags = &kv, .tag_count = 1 };
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "key", ML_STRING, true, &kv.key, NULL },
		{ "value", ML_STRING, false, &kv.value, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !ml_run_id_ok(c, op.run) || !ml_name_ok(c, "key", kv.key) ||
	    !ml_length_ok(c, "key", KEY_CHARS, kv.key))
		return CALL_DONE;
	kv.value = ml_cut(c, kv.value, TAG_CHARS);
	return ml_submit(c, &op, ml_empty);
}

enum call_next on_ml_tag_delete(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_run_untag };
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "key", ML_STRING, true, &op.name, NULL }, { 0 },
	};

	return ml_args(c, fields) && ml_run_id_ok(c, op.run) ? ml_submit(c, &op, ml_empty) : CALL_DONE;
}

enum call_next on_ml_param_log(struct call *c)
{
	struct ingest_kv kv = { .value = "" };
	struct mlflow_op op = {
		.kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME, .params = &kv, .param_count = 1, .single = true
	};
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "key", ML_STRING, true, &kv.key, NULL },
		{ "value", ML_STRING, false, &kv.value, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !ml_run_id_ok(c, op.run) || !ml_name_ok(c, "key", kv.key) ||
	    !ml_length_ok(c, "Param key", KEY_CHARS, kv.key))
		return CALL_DONE;
	kv.value = ml_cut(c, kv.value, PARAM_CHARS);
	return ml_submit(c, &op, ml_empty);
}

/* --- metrics and batches ------------------------------------------------------------------------------------ */

/* Checks the name, the time and the data set of a point. what: its list for error messages; NULL: a single point. */
static bool check_metric_point(struct call *c, const struct mlflow_point *p, const char *what, size_t index)
{
	const char *at;
	json_t *value;

	if (what ? !ml_item_name_ok(c, what, index, "name", p->key) : !ml_name_ok(c, "name", p->key))
		return false;
	if (p->time_ms >= 0 && (p->dataset_name && *p->dataset_name) != (p->dataset_digest && *p->dataset_digest))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			       "Both dataset_name and dataset_digest must be provided if one is provided"),
		       false;
	if (p->time_ms >= 0)
		return ml_length_ok(c, "Metric name", KEY_CHARS, p->key);
	at = what ? arena_printf(c->arena, "%s[%zu].timestamp", what, index) : "timestamp";
	value = json_integer(p->time_ms);
	ml_fail_value(c, at, value,
		      arena_printf(c->arena,
				   "metric '%s' (value=%g). Timestamp must be a nonnegative long (64-bit "
				   "integer) ",
				   p->key, p->value));
	json_decref(value);
	return false;
}

enum call_next on_ml_metric_log(struct call *c)
{
	struct mlflow_point p = { 0 };
	struct mlflow_op op = { .kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME, .points = &p, .point_count = 1 };
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "key", ML_STRING, true, &p.key, NULL },
		{ "value", ML_DOUBLE, true, &p.value, NULL }, { "timestamp", ML_INT, true, &p.time_ms, NULL },
		{ "step", ML_INT, false, &p.step, NULL }, { "model_id", ML_STRING, false, &p.model, NULL },
		{ "dataset_name", ML_STRING, false, &p.dataset_name, NULL },
		{ "dataset_digest", ML_STRING, false, &p.dataset_digest, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !ml_run_id_ok(c, op.run) || !check_metric_point(c, &p, NULL, 0))
		return CALL_DONE;
	if (p.model && !*p.model)
		p.model = NULL;
	return ml_submit(c, &op, ml_empty);
}

/* Reads the list "metrics". Returns false after failing the call. */
static bool read_metric_points(struct call *c, json_t *list, struct mlflow_op *op)
{
	size_t n = json_array_size(list), i;
	struct mlflow_point *points = arena_array(c->arena, n + 1, sizeof(*points));

	for (i = 0; i < n; i++) {
		struct mlflow_point *p = &points[i];
		const struct ml_field fields[] = {
			{ "key", ML_STRING, true, &p->key, NULL }, { "value", ML_DOUBLE, true, &p->value, NULL },
			{ "timestamp", ML_INT, true, &p->time_ms, NULL }, { "step", ML_INT, false, &p->step, NULL },
			{ "model_id", ML_STRING, false, &p->model, NULL },
			{ "dataset_name", ML_STRING, false, &p->dataset_name, NULL },
			{ "dataset_digest", ML_STRING, false, &p->dataset_digest, NULL }, { 0 },
		};

		if (!ml_read_item(c, list, "metrics", i, fields))
			return false;
		if (p->model && !*p->model)
			p->model = NULL;
	}
	op->points = points;
	op->point_count = n;
	return true;
}

static bool check_batch_limit(struct call *c, const char *what, size_t n, size_t max)
{
	if (n <= max)
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"A batch logging request can contain at most %zu %s. Got %zu %s. Please split up %s "
		"across multiple requests and try again.",
		max, what, n, what, what);
	return false;
}

/* Checks the limits of a batch and that no param occurs twice. */
static bool check_batch(struct call *c, const struct mlflow_op *op)
{
	size_t i, k;

	for (i = 0; i < op->point_count; i++)
		if (!check_metric_point(c, &op->points[i], "metrics", i))
			return false;
	for (i = 0; i < op->param_count; i++)
		if (!ml_length_ok(c, "Param key", KEY_CHARS, op->params[i].key))
			return false;
	for (i = 0; i < op->tag_count; i++)
		if (!ml_length_ok(c, arena_printf(c->arena, "tags[%zu].key", i), KEY_CHARS, op->tags[i].key))
			return false;
	if (!check_batch_limit(c, "metrics", op->point_count, BATCH_METRICS) ||
	    !check_batch_limit(c, "params", op->param_count, BATCH_PARAMS) ||
	    !check_batch_limit(c, "tags", op->tag_count, BATCH_TAGS) ||
	    !check_batch_limit(c, "metrics, params, and tags", op->point_count + op->param_count + op->tag_count,
			       BATCH_ALL))
		return false;
	for (i = 0; i < op->param_count; i++)
		for (k = 0; k < i; k++)
			if (!strcmp(op->params[i].key, op->params[k].key)) {
				ml_fail(c, ML_INVALID_PARAMETER_VALUE,
					"Duplicate parameter keys have been submitted: ['%s']. Please "
					"ensure the request contains only one param value per param key.",
					op->params[i].key);
				return false;
			}
	return true;
}

enum call_next on_ml_batch_log(struct call *c)
{
	struct mlflow_op op = { .kind = &mlflow_run_write, .end_ms = INGEST_NO_TIME };
	json_t *metrics = NULL, *params = NULL, *tags = NULL;
	struct ingest_kv *param_kv, *tag_kv;
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &op.run, NULL }, { "metrics", ML_LIST, false, &metrics, NULL },
		{ "params", ML_LIST, false, &params, NULL }, { "tags", ML_LIST, false, &tags, NULL }, { 0 },
	};

	if (!ml_args(c, fields) || !read_metric_points(c, metrics, &op) || !ml_run_id_ok(c, op.run) ||
	    !ml_pairs(c, params, "params", PARAM_CHARS, &param_kv) || !ml_pairs(c, tags, "tags", TAG_CHARS, &tag_kv))
		return CALL_DONE;
	op.params = param_kv;
	op.param_count = json_array_size(params);
	op.tags = tag_kv;
	op.tag_count = json_array_size(tags);
	return check_batch(c, &op) ? ml_submit(c, &op, ml_empty) : CALL_DONE;
}
