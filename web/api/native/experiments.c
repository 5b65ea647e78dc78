/* experiments.c: /experiments and /keys. */
#include "web/api/api.h"

#include <string.h>

#include "web/api/handlers.h"
#include "web/api/native/request.h"
#include "web/api/native/run_json.h"

static void write_experiment(struct js *j, const struct query_experiment *e)
{
	js_open(j, '{');
	js_key_str(j, "id", e->id);
	js_key_str(j, "name", e->name);
	js_key_int(j, "run_count", (int64_t)e->run_count);
	js_key_int(j, "running_count", (int64_t)e->running_count);
	run_json_time(j, "created_time", e->created_ms);
	run_json_time(j, "changed_time", e->changed_ms);
	js_close(j, '}');
}

enum call_next on_experiment_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct query_experiments list;
	struct err err = ERR_INIT;
	size_t i;

	if (!call_args_done(c))
		return CALL_DONE;
	if (query_experiments(c->api->store, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key(&j, "experiments");
	js_open(&j, '[');
	for (i = 0; i < list.count; i++)
		write_experiment(&j, &list.items[i]);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static enum call_next experiment_created(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };
	struct query_experiments list;
	struct err err = ERR_INIT;
	size_t i;

	if (query_experiments(c->api->store, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err);
	for (i = 0; i < list.count && strcmp(list.items[i].id, res->id); i++)
		;
	if (i == list.count)
		return call_fail(c, CALL_internal, NULL, "the experiment is stored but not listed");
	c->status = res->existed ? 200 : 201;
	write_experiment(&j, &list.items[i]);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_experiment_create(struct call *c)
{
	const char *name = NULL;
	const struct json_field fields[] = { { "name", JSON_KIND_STRING, true, &name, NULL }, { 0 } };
	json_t *body = json_body(c);
	enum call_next next = CALL_DONE;

	if (!body)
		return CALL_DONE;
	if (call_args_done(c) && json_read(c, body, "", fields))
		next = api_submit(c, &(struct api_change){
					     .op = &(struct ingest_op){ .kind = &change_experiment, .name = name },
					     .field = "name",
					     .then = experiment_created,
				     });
	json_decref(body);
	return next;
}

static void write_names(struct js *j, const char *key, const char *const *names, size_t n)
{
	size_t i;

	js_key(j, key);
	js_open(j, '[');
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
	write_names(&j, "params", keys.params, keys.param_count);
	write_names(&j, "tags", keys.tags, keys.tag_count);
	write_names(&j, "metrics", keys.metrics, keys.metric_count);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}
