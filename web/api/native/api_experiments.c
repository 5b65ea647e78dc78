/* SPDX-License-Identifier: Apache-2.0 */
/* api_experiments.c: /experiments and /keys. */

#include <stdlib.h>
#include <string.h>

#include "web/api/native/native_inside.h"

#define ARCHIVED_TAG "dptrack.archived" /* also of runs, where clients set it like any tag */

static void write_native_experiment(struct call *c, struct js *j, const struct grants *g,
				    const struct query_experiment *e)
{
	js_open(j, '{');
	js_key_str(j, "id", e->id);
	js_key_str(j, "name", e->name);
	js_key_int(j, "run_count", (int64_t)e->run_count);
	js_key_int(j, "running_count", (int64_t)e->running_count);
	js_key_int(j, "failed_count", (int64_t)e->failed_count);
	js_key_str(j, "description", e->description);
	js_key_bool(j, "archived", e->archived);
	js_key_str(j, "may", request_level(c, g, e->name));
	run_json_time(j, "created_time", e->created_ms);
	run_json_time(j, "changed_time", e->changed_ms);
	js_close(j, '}');
}

enum call_next on_experiment_list(struct call *c)
{
	static const char *const words[] = { "no", "only", NULL };
	const struct grants g = request_grants(c);
	struct js j = { .out = &c->out };
	struct query_experiments list;
	struct err err = ERR_INIT;
	int deleted = 0;
	size_t i;

	if (!call_arg_word(c, "deleted", words, &deleted) || !call_args_done(c))
		return CALL_DONE;
	if ((deleted ? query_experiments_deleted : query_experiments)(c->api->store, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "experiments", '[');
	for (i = 0; i < list.count; i++)
		write_native_experiment(c, &j, &g, &list.items[i]);
	js_close(&j, ']');
	return js_reply(c, &j);
}

/* Replies with one experiment, active or deleted. */
static enum call_next reply_native_experiment(struct call *c, const char *id)
{
	const struct grants g = request_grants(c);
	struct js j = { .out = &c->out };
	struct query_experiments list;
	struct err err = ERR_INIT;
	size_t i;
	int deleted;

	for (deleted = 0; deleted < 2; deleted++) {
		if ((deleted ? query_experiments_deleted : query_experiments)(c->api->store, c->arena, &list, &err))
			return call_fail_err(c, NULL, &err);
		for (i = 0; i < list.count && strcmp(list.items[i].id, id); i++)
			;
		if (i == list.count)
			continue;
		write_native_experiment(c, &j, &g, &list.items[i]);
		buf_addc(&c->out, '\n');
		return CALL_DONE;
	}
	return call_fail(c, CALL_internal, NULL, "the experiment is stored but not listed");
}

static enum call_next reply_created_experiment(struct call *c, const struct ingest_result *res)
{
	c->status = res->existed ? 200 : 201;
	return reply_native_experiment(c, res->id);
}

static enum call_next reply_changed_experiment(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_native_experiment(c, c->address.vars[0]);
}

/* Parses the id in the path. Returns false after failing the call. */
static bool parse_experiment_var(struct call *c, int64_t *ret)
{
	const char *text = c->address.vars[0];
	size_t n = strlen(text);

	if (!n || n > 18 || strspn(text, "0123456789") != n || (n > 1 && *text == '0'))
		return call_fail(c, CALL_not_found, "experiment", "no experiment has this id"), false;
	*ret = strtoll(text, NULL, 10);
	return true;
}

static enum call_next submit_native_experiment(struct call *c, const struct mlflow_op *op)
{
	struct ingest_op ingest = mlflow_op(op);

	return api_submit(c, &(struct api_change){ .op = &ingest, .field = op->name ? "name" : "experiment",
						   .then = reply_changed_experiment });
}

static enum call_next submit_experiment_state(struct call *c, const struct change_ops *kind)
{
	struct mlflow_op op = { .kind = kind };

	if (!parse_experiment_var(c, &op.experiment) || !call_args_done(c))
		return CALL_DONE;
	if (!op.experiment)
		return call_fail(c, CALL_bad_value, "experiment", "the experiment Default cannot be deleted");
	return submit_native_experiment(c, &op);
}

enum call_next on_experiment_delete(struct call *c)
{
	return submit_experiment_state(c, &mlflow_experiment_delete);
}

enum call_next on_experiment_restore(struct call *c)
{
	return submit_experiment_state(c, &mlflow_experiment_restore);
}

/* Renames or archives. The state is a tag, so MLflow's clients see it too. */
enum call_next on_experiment_patch(struct call *c)
{
	struct mlflow_op op = { 0 };
	bool archived = false, given = false;
	const struct json_field fields[] = { { "name", JSON_KIND_STRING, false, &op.name, NULL },
					     { "archived", JSON_KIND_BOOL, false, &archived, &given }, { 0 } };
	struct ingest_kv tag = { ARCHIVED_TAG, "false" };

	if (!parse_experiment_var(c, &op.experiment) || !json_args(c, fields) || !request_name(c, "name", op.name))
		return CALL_DONE;
	if (!op.name == !given)
		return call_fail(c, CALL_bad_value, "name", "expected either name or archived");
	if (op.name && (!*op.name || strlen(op.name) > 250))
		return call_fail(c, CALL_bad_value, "name", "name: expected 1 to 250 bytes");
	if (archived)
		tag.value = "true";
	op.kind = op.name ? &mlflow_experiment_rename : &mlflow_experiment_tag;
	op.tags = &tag;
	op.tag_count = op.name ? 0 : 1;
	return submit_native_experiment(c, &op);
}

enum call_next on_experiment_create(struct call *c)
{
	const char *name = NULL;
	const struct json_field fields[] = { { "name", JSON_KIND_STRING, true, &name, NULL }, { 0 } };

	if (!json_args(c, fields) || !request_name(c, "name", name))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){
				     .op = &(struct ingest_op){ .kind = &change_experiment, .name = name },
				     .field = "name", .then = reply_created_experiment });
}

static void write_key_names(struct js *j, const char *key, const char *const *names, size_t n)
{
	size_t i;

	js_key_open(j, key, '[');
	for (i = 0; i < n; i++)
		js_str(j, names[i]);
	js_close(j, ']');
}

enum call_next on_key_list(struct call *c)
{
	struct js j = { .out = &c->out };
	const char *experiment = call_arg(c, "experiment");
	struct query_keys keys;
	struct err err = ERR_INIT;

	if (!call_args_done(c))
		return CALL_DONE;
	if (query_keys(c->api->store, experiment, c->arena, &keys, &err))
		return request_refused(c, &err);
	js_open(&j, '{');
	write_key_names(&j, "params", keys.params, keys.param_count);
	write_key_names(&j, "tags", keys.tags, keys.tag_count);
	write_key_names(&j, "metrics", keys.metrics, keys.metric_count);
	return js_reply(c, &j);
}
