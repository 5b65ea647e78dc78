/* runs.c: /runs: the list, one run, and the changes of a run that are not points. */
#include "web/api/api.h"

#include <math.h>
#include <string.h>

static void write_pairs(struct js *j, const char *key, const struct query_kv *kv, size_t n)
{
	size_t i;

	js_key(j, key);
	js_open(j, '{');
	for (i = 0; i < n; i++)
		js_key_str(j, kv[i].key, kv[i].value);
	js_close(j, '}');
}

static void write_extreme(struct js *j, const char *key, const char *step_key, double value, int64_t step)
{
	js_key(j, key);
	if (isnan(value))
		js_null(j);
	else
		js_double(j, value);
	js_key(j, step_key);
	if (isnan(value))
		js_null(j);
	else
		js_int(j, step);
}

static void write_summary(struct js *j, const struct query_metric *m)
{
	js_key_int(j, "count", (int64_t)m->count);
	js_key_double(j, "first", m->first);
	js_key_double(j, "last", m->last);
	js_key_int(j, "first_step", m->first_step);
	js_key_int(j, "last_step", m->last_step);
	write_extreme(j, "min", "min_step", m->min, m->min_step);
	write_extreme(j, "max", "max_step", m->max, m->max_step);
	js_key_double(j, "first_time", m->first_time);
	js_key_double(j, "last_time", m->last_time);
	js_key_int(j, "nonfinite", (int64_t)m->nonfinite);
	js_key(j, "first_nonfinite_step");
	if (m->nonfinite)
		js_int(j, m->first_nonfinite_step);
	else
		js_null(j);
}

static void write_metrics(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "metrics");
	js_open(j, '{');
	for (i = 0; i < run->metric_count; i++) {
		js_key(j, run->metrics[i].key);
		js_open(j, '{');
		write_summary(j, &run->metrics[i]);
		js_close(j, '}');
	}
	js_close(j, '}');
}

void api_write_alerts(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "alerts");
	js_open(j, '[');
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

static void write_segments(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "segments");
	js_open(j, '[');
	for (i = 0; i < run->segment_count; i++) {
		const struct query_segment *s = &run->segments[i];

		js_open(j, '{');
		js_key_int(j, "number", s->number);
		js_key_int(j, "first_step", s->first_step);
		js_key_int(j, "first_epoch", s->first_epoch);
		api_write_time(j, "start_time", s->start_ms);
		api_write_time(j, "end_time", s->end_ms);
		js_key_str(j, "status", s->status);
		js_key_int(j, "world_size", s->world_size);
		write_pairs(j, "params", s->params, s->param_count);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_ranks(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "ranks");
	js_open(j, '[');
	for (i = 0; i < run->rank_count; i++) {
		const struct query_rank *r = &run->ranks[i];

		js_open(j, '{');
		js_key_int(j, "rank", r->rank);
		js_key_str(j, "host", r->host);
		js_key_int(j, "pid", r->pid);
		js_key_int(j, "segment", r->segment);
		api_write_time(j, "last_record_time", r->last_record_ms);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_problems(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "problems");
	js_open(j, '[');
	for (i = 0; i < run->problem_count; i++) {
		js_open(j, '{');
		api_write_time(j, "time", run->problems[i].time_ms);
		js_key_str(j, "text", run->problems[i].text);
		js_key_int(j, "count", (int64_t)run->problems[i].count);
		js_close(j, '}');
	}
	js_close(j, ']');
}

static void write_series_list(struct js *j, const struct query_run *run)
{
	size_t i;

	js_key(j, "series");
	js_open(j, '[');
	for (i = 0; i < run->series_count; i++) {
		js_open(j, '{');
		js_key_str(j, "key", run->series[i].key);
		js_key_int(j, "rank", run->series[i].rank);
		js_key_int(j, "segment", run->series[i].segment);
		write_summary(j, &run->series[i].sum);
		js_close(j, '}');
	}
	js_close(j, ']');
}

void api_write_run(struct call *c, struct js *j, const struct query_run *run, enum api_detail detail)
{
	js_open(j, '{');
	js_key_str(j, "id", run->id);
	js_key_str(j, "name", run->name);
	js_key_str(j, "experiment", run->experiment);
	js_key_str(j, "experiment_id", run->experiment_id);
	js_key_str(j, "status", run->status);
	js_key(j, "status_inferred");
	js_bool(j, run->status_inferred);
	js_key(j, "deleted");
	js_bool(j, run->deleted);
	api_write_time(j, "start_time", run->start_ms);
	api_write_time(j, "end_time", run->end_ms);
	js_key_int(j, "last_step", run->last_step);
	js_key_int(j, "world_size", run->world_size);
	js_key_int(j, "rev", (int64_t)run->rev);
	js_key_str(j, "notes", run->notes);
	write_pairs(j, "params", run->params, run->param_count);
	write_pairs(j, "tags", run->tags, run->tag_count);
	write_metrics(j, run);
	api_write_alerts(j, run);
	if (detail >= API_RUN_FULL) {
		write_pairs(j, "environment", run->environment, run->environment_count);
		write_segments(j, run);
		write_ranks(j, run);
		write_problems(j, run);
		js_key(j, "artifacts");
		if (!api_write_artifacts(c, j, run->experiment_id, run->id, ""))
			return;
	}
	if (detail == API_RUN_SERIES)
		write_series_list(j, run);
	js_close(j, '}');
}

static bool list_args(struct call *c, struct query_runs_opts *o)
{
	static const char *const words[] = { "no", "only", "all", NULL };
	const char *const *values;
	int64_t limit = 100;
	int deleted = 0;

	o->experiment_count = call_arg_all(c, "experiment", &values);
	o->experiments = o->experiment_count ? values : NULL;
	o->id_count = call_arg_all(c, "run", &values);
	o->ids = o->id_count ? values : NULL;
	o->filter = call_arg(c, "filter");
	o->order_by = call_arg(c, "order_by");
	o->page_token = call_arg(c, "page_token");
	if (!call_arg_int(c, "limit", &limit, 1, 50000) || !call_arg_word(c, "deleted", words, &deleted))
		return false;
	if (o->id_count && !api_run_ids_ok(c, "run", values, o->id_count))
		return false;
	o->limit = (size_t)limit;
	o->only_deleted = deleted == 1;
	o->with_deleted = deleted != 0;
	return call_args_done(c);
}

enum call_next run_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct query_runs_opts o = { 0 };
	struct query_runs runs;
	struct err err = ERR_INIT;
	size_t i;

	if (!list_args(c, &o))
		return CALL_DONE;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return api_fail_query(c, &err);
	js_open(&j, '{');
	js_key(&j, "runs");
	js_open(&j, '[');
	for (i = 0; i < runs.count; i++)
		api_write_run(c, &j, &runs.items[i], API_RUN_LISTED);
	js_close(&j, ']');
	js_key_str(&j, "next_page_token", runs.next_page_token);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next run_get(struct call *c)
{
	static const char *const includes[] = { "series", NULL };
	int include = -1;

	if (!call_arg_word(c, "include", includes, &include) || !call_args_done(c))
		return CALL_DONE;
	/* a unique beginning of an id is enough for people */
	if (strlen(c->vars[0]) > 32 || strspn(c->vars[0], "0123456789abcdef") != strlen(c->vars[0]))
		return call_fail(c, CALL_not_found, "run", "no such run: a run id is 32 lower-case hex digits");
	return api_run(c, c->vars[0], include < 0 ? API_RUN_FULL : API_RUN_SERIES);
}

static enum call_next run_created(struct call *c, const struct ingest_result *res)
{
	c->status = 201;
	return api_reply_run(c, res);
}

enum call_next run_create(struct call *c)
{
	struct ingest_op op = { .kind = INGEST_RUN, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };
	json_t *params = NULL, *tags = NULL, *body = json_body(c);
	struct ingest_kv *param_kv, *tag_kv;
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = {
		{ "id", JSON_KIND_STRING, false, &op.run, NULL },
		{ "experiment", JSON_KIND_STRING, false, &op.experiment, NULL },
		{ "name", JSON_KIND_STRING, false, &op.name, NULL },
		{ "params", JSON_KIND_OBJECT, false, &params, NULL },
		{ "tags", JSON_KIND_OBJECT, false, &tags, NULL },
		{ "start_time", JSON_KIND_INT, false, &op.start_ms, NULL },
		{ 0 },
	};

	if (!body)
		return CALL_DONE;
	if (call_args_done(c) && json_read(c, body, "", fields) &&
	    api_read_pairs(c, "params", params, &param_kv, &op.param_count) &&
	    api_read_pairs(c, "tags", tags, &tag_kv, &op.tag_count)) {
		op.params = param_kv;
		op.tags = tag_kv;
		next = api_submit(c, &(struct api_change){ .op = &op, .then = run_created });
	}
	json_decref(body);
	return next;
}

enum call_next run_patch(struct call *c)
{
	struct ingest_op op = { .kind = INGEST_PATCH, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };
	json_t *body;
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = {
		{ "name", JSON_KIND_STRING, false, &op.name, NULL },
		{ "status", JSON_KIND_STRING, false, &op.status, NULL },
		{ "end_time", JSON_KIND_INT, false, &op.end_ms, NULL },
		{ "notes", JSON_KIND_STRING, false, &op.notes, NULL },
		{ 0 },
	};

	op.run = call_run_id(c, 0);
	body = op.run ? json_body(c) : NULL;
	if (!body)
		return CALL_DONE;
	if (call_args_done(c) && json_read(c, body, "", fields))
		next = api_submit(c, &(struct api_change){ .op = &op, .then = api_reply_run });
	json_decref(body);
	return next;
}

/* Changes of a run that need nothing but its id. */
static enum call_next run_simple(struct call *c, enum ingest_kind kind)
{
	struct ingest_op op = { .kind = kind, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };

	op.run = call_run_id(c, 0);
	if (!op.run || !call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .then = api_reply_run });
}

enum call_next run_delete(struct call *c)
{
	return run_simple(c, INGEST_DELETE);
}

enum call_next run_restore(struct call *c)
{
	return run_simple(c, INGEST_RESTORE);
}

enum call_next run_params_post(struct call *c)
{
	struct ingest_op op = { .kind = INGEST_PARAMS, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };
	json_t *params = NULL, *body;
	struct ingest_kv *kv;
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = { { "params", JSON_KIND_OBJECT, true, &params, NULL }, { 0 } };

	op.run = call_run_id(c, 0);
	body = op.run ? json_body(c) : NULL;
	if (!body)
		return CALL_DONE;
	if (call_args_done(c) && json_read(c, body, "", fields) &&
	    api_read_pairs(c, "params", params, &kv, &op.param_count)) {
		op.params = kv;
		next = api_submit(c, &(struct api_change){ .op = &op, .then = api_reply_run });
	}
	json_decref(body);
	return next;
}

enum call_next run_tag_put(struct call *c)
{
	struct ingest_kv kv = { .key = c->vars[1] };
	struct ingest_op op = { .kind = INGEST_TAGS, .tags = &kv, .tag_count = 1, .start_ms = INGEST_NO_TIME,
				.end_ms = INGEST_NO_TIME };
	json_t *body;
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = { { "value", JSON_KIND_STRING, true, &kv.value, NULL }, { 0 } };

	op.run = call_run_id(c, 0);
	body = op.run ? json_body(c) : NULL;
	if (!body)
		return CALL_DONE;
	if (call_args_done(c) && json_read(c, body, "", fields))
		next = api_submit(c, &(struct api_change){ .op = &op, .then = api_reply_run });
	json_decref(body);
	return next;
}

enum call_next run_tag_delete(struct call *c)
{
	struct ingest_op op = { .kind = INGEST_TAG_DELETE, .name = c->vars[1], .start_ms = INGEST_NO_TIME,
				.end_ms = INGEST_NO_TIME };

	op.run = call_run_id(c, 0);
	if (!op.run || !call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .then = api_reply_run });
}
