/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c: /runs: the list, one run, and the changes of a run other than points; /changes (polling) and /events
 * (server-sent events): ids of runs that changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/api/native/groups/groups.h"
#include "web/api/native/native_inside.h"
#include "web/store/saved_view/saved_view.h"

/* The page gives the first runs of an experiment looks of their own (LIMIT in web/ui/src/base/colour.ts). */
enum { DELETED_LISTED = 64 };

/* Reads which parts of the runs and which metrics to return. */
static bool read_list_columns(struct call *c, struct query_runs_opts *o)
{
	static const char *const includes[] = { "keys", NULL };
	static const char *const parts[] = { "params", "tags", "metrics", "alerts" };
	const char *const *values;
	int64_t most = 0, params_most = 0;
	int include = -1;
	size_t n = call_arg_all(c, "fields", &values), i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < 4 && strcmp(parts[k], values[i]); k++)
			;
		if (k == 4)
			return call_fail(c, CALL_bad_value, "fields",
					 "fields: expected params, tags, metrics or alerts"),
			       false;
		o->parts |= 1u << k;
	}
	o->metric_count = call_arg_all(c, "metrics", &o->metrics);
	o->some_metrics = o->metric_count > 0;
	o->param_count = call_arg_all(c, "params", &o->params);
	if (!call_arg_word(c, "include", includes, &include) || !call_arg_int(c, "metrics_max", &most, 1, 100000) ||
	    !call_arg_int(c, "params_max", &params_most, 1, 100000))
		return false;
	o->metrics_max = (size_t)most;
	o->params_max = (size_t)params_most;
	o->with_keys = include == 0;
	return true;
}

/* Writes how many of the listed runs have each metric. */
static void write_metric_keys(struct js *j, const struct query_runs *runs)
{
	size_t i;

	js_key_open(j, "metric_keys", '{');
	for (i = 0; i < runs->key_count; i++)
		js_key_int(j, runs->keys[i].key, runs->keys[i].runs);
	js_close(j, '}');
}

/* Reads the arguments of the list. Returns false after failing the call. */
static bool read_list_args(struct call *c, struct query_runs_opts *o)
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
	if (!read_list_columns(c, o))
		return false;
	if (!call_arg_int(c, "limit", &limit, 1, 50000) || !call_arg_word(c, "deleted", words, &deleted))
		return false;
	if (o->id_count && !request_run_ids(c, "run", &o->ids, o->id_count))
		return false;
	o->limit = (size_t)limit;
	o->only_deleted = deleted == 1;
	o->with_deleted = deleted != 0;
	return call_args_done(c);
}

/* Returns the first named experiment, or that of the newest run; NULL if the list is no first page. */
static const char *first_page_of(const struct query_runs_opts *o, const struct query_runs *runs)
{
	if (o->page_token || o->id_count)
		return NULL;
	return o->experiment_count ? o->experiments[0] : runs->count ? runs->items[0].experiment : NULL;
}

/* Adds the params of a run to the keys, at most `most` of them. Returns their number. */
static size_t add_param_keys(const struct query_run *run, const char **keys, size_t n, size_t most)
{
	size_t i, k;

	for (i = 0; i < run->param_count; i++) {
		for (k = 0; k < n && strcmp(keys[k], run->params[i].key); k++)
			;
		if (k == n && n < most)
			keys[n++] = run->params[i].key;
	}
	return n;
}

/* Reads the deleted runs of the listed experiments that started first. Of many params they have those of the listed
 * runs. */
static int read_deleted_runs(struct call *c, const struct query_runs_opts *listed, const struct query_runs *runs,
			     struct query_runs *ret, struct err *err)
{
	const char *experiment = first_page_of(listed, runs);
	const bool named = listed->experiment_count > 0;
	struct query_runs_opts o = { .experiments = named ? listed->experiments : &experiment,
				     .experiment_count = named ? listed->experiment_count : 1, .only_deleted = true,
				     .with_deleted = true, .order_by = "start_time ASC", .limit = DELETED_LISTED,
				     .parts = QUERY_PARAMS, .params_max = listed->params_max };
	const char **keys = arena_array(c->arena, o.params_max + 1, sizeof(*keys));
	size_t i;

	for (i = 0; i < runs->count && o.param_count < o.params_max; i++)
		o.param_count = add_param_keys(&runs->items[i], keys, o.param_count, o.params_max);
	o.params = keys;
	return query_runs(c->api->store, &o, c->arena, ret, err);
}

/* Writes the deleted runs, from which the page assigns the looks of the others as before. */
static void write_deleted_runs(struct call *c, struct js *j, const struct query_runs_opts *o,
			       const struct query_runs *runs)
{
	struct query_runs deleted;
	struct err err = ERR_INIT;
	size_t i;

	if (!first_page_of(o, runs))
		return;
	if (read_deleted_runs(c, o, runs, &deleted, &err)) {
		call_fail_err(c, NULL, &err);
		return;
	}
	js_key_open(j, "deleted_runs", '[');
	for (i = 0; i < deleted.count; i++)
		run_json_start(j, &deleted.items[i]);
	js_close(j, ']');
}

/* Writes the view that the page shows first: of the named experiment, or of the newest run's experiment. */
static void write_default_view(struct call *c, struct js *j, const struct query_runs_opts *o,
			       const struct query_runs *runs)
{
	struct saved_view_sel sel = { .shelf = SAVED_VIEW_VIEW, .experiment = first_page_of(o, runs) };
	struct err err = ERR_INIT;
	struct saved_view k;
	int rc;

	if (!sel.experiment || o->experiment_count > 1)
		return;
	rc = saved_view_preferred(c->api->store, &sel, c->arena, &k, &err);
	if (rc && rc != ERR_NOENT)
		call_fail_err(c, NULL, &err);
	if (rc)
		return;
	js_key_open(j, "default_view", '{');
	js_key_str(j, "id", arena_printf(c->arena, "%" PRId64, k.id));
	js_key_str(j, "query", k.text);
	js_close(j, '}');
}

enum call_next on_run_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct query_runs_opts o = { 0 };
	struct query_runs runs;
	struct query_changes before; /* its token is older than the list, so no later change is missed */
	struct err err = ERR_INIT;
	const char *const *fields;
	size_t field_count = call_arg_all(c, "group_by", &fields), i;
	bool with_token; /* the caller may ask for changes */

	if (!read_list_args(c, &o))
		return CALL_DONE;
	if (field_count && !call_arg(c, "limit"))
		o.limit = SIZE_MAX;
	with_token = o.with_keys && !c->client.share;
	if ((with_token && query_changes(c->api->store, NULL, c->arena, &before, &err)) ||
	    query_runs(c->api->store, &o, c->arena, &runs, &err))
		return request_refused(c, &err);
	if (field_count)
		return runs_group_reply(c, fields, field_count, &runs);
	js_open(&j, '{');
	js_key_open(&j, "runs", '[');
	for (i = 0; i < runs.count; i++)
		run_json_write(c, &j, &runs.items[i], RUN_JSON_LISTED);
	js_close(&j, ']');
	js_key_str(&j, "next_page_token", runs.next_page_token);
	if (o.with_keys) {
		js_key_str(&j, "changes_token", with_token ? before.token : NULL);
		write_metric_keys(&j, &runs);
		write_default_view(c, &j, &o, &runs);
		write_deleted_runs(c, &j, &o, &runs);
		if (c->status != 200)
			return CALL_DONE;
	}
	if (runs.metrics_left_out)
		js_key_bool(&j, "metrics_left_out", true);
	if (runs.params_left_out) {
		js_key_bool(&j, "params_left_out", true);
	}
	return js_reply(c, &j);
}

enum call_next on_run_get(struct call *c)
{
	static const char *const includes[] = { "series", NULL };
	int include = -1;

	if (!call_arg_word(c, "include", includes, &include) || !call_args_done(c))
		return CALL_DONE;
	/* a unique prefix of an id is accepted */
	if (!text_is_hex(c->address.vars[0], 0, 32))
		return call_fail(c, CALL_not_found, "run", "no such run: a run id is 32 lower-case hex digits");
	return run_json_reply(c, c->address.vars[0], include < 0 ? RUN_JSON_FULL : RUN_JSON_SERIES);
}

static enum call_next reply_created(struct call *c, const struct ingest_result *res)
{
	c->status = 201;
	return run_json_changed(c, res);
}

enum call_next on_run_create(struct call *c)
{
	struct ingest_op op = { .kind = &change_run_new, .state = INGEST_NO_STATE };
	json_t *params = NULL, *tags = NULL;
	struct ingest_kv *param_kv, *tag_kv;
	const struct json_field fields[] = {
		{ "id", JSON_KIND_STRING, false, &op.run, NULL },
		{ "experiment", JSON_KIND_STRING, false, &op.experiment, NULL },
		{ "name", JSON_KIND_STRING, false, &op.name, NULL },
		{ "params", JSON_KIND_OBJECT, false, &params, NULL },
		{ "tags", JSON_KIND_OBJECT, false, &tags, NULL },
		{ "start_time", JSON_KIND_INT, false, &op.state.start_ms, NULL },
		{ 0 },
	};

	if (!json_args(c, fields) || !request_name(c, "name", op.name) ||
	    !request_name(c, "experiment", op.experiment) ||
	    !request_pairs(c, "params", params, &param_kv, &op.logged.param_count) ||
	    !request_pairs(c, "tags", tags, &tag_kv, &op.logged.tag_count))
		return CALL_DONE;
	op.logged.params = param_kv;
	op.logged.tags = tag_kv;
	return api_submit(c, &(struct api_change){ .op = &op, .then = reply_created });
}

static bool write_stored_notes(struct call *c, struct js *j)
{
	struct err err = ERR_INIT;
	struct query_run run;

	if (query_run(c->api->store, c->address.vars[0], c->arena, &run, &err)) {
		call_fail_err(c, "run", &err);
		return false;
	}
	js_open(j, '{');
	run_json_notes(j, run.notes);
	js_close(j, '}');
	return true;
}

enum call_next on_run_patch(struct call *c)
{
	struct ingest_op op = { .kind = &change_run_patch, .state = INGEST_NO_STATE };
	const struct json_field fields[] = {
		{ "name", JSON_KIND_STRING, false, &op.name, NULL },
		{ "status", JSON_KIND_STRING, false, &op.state.status, NULL },
		{ "end_time", JSON_KIND_INT, false, &op.state.end_ms, NULL },
		{ "notes", JSON_KIND_STRING, false, &op.state.notes, NULL },
		{ "editing", JSON_KIND_STRING, false, &op.state.editing, NULL },
		{ "experiment", JSON_KIND_STRING, false, &op.move_to, NULL },
		{ 0 },
	};

	op.run = call_run_id(c, 0);
	op.state.seen = c->host->header(c, "If-Match");
	if (!op.run || !json_args(c, fields) || !request_name(c, "name", op.name) ||
	    !request_name(c, "experiment", op.move_to) || (op.move_to && !artifacts_may_move(c, op.run)))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .stored = write_stored_notes, .then = run_json_changed });
}

/* Submits a change that needs only the run's id. */
static enum call_next submit_run_state(struct call *c, const struct change_ops *kind)
{
	struct ingest_op op = { .kind = kind, .state = INGEST_NO_STATE };

	op.run = call_run_id(c, 0);
	if (!op.run || !call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .then = run_json_changed });
}

enum call_next on_run_delete(struct call *c)
{
	return submit_run_state(c, &change_run_delete);
}

enum call_next on_run_restore(struct call *c)
{
	return submit_run_state(c, &change_run_restore);
}

enum call_next on_run_params_post(struct call *c)
{
	struct ingest_op op = { .kind = &change_run_params, .state = INGEST_NO_STATE };
	json_t *params = NULL;
	struct ingest_kv *kv;
	const struct json_field fields[] = { { "params", JSON_KIND_OBJECT, true, &params, NULL }, { 0 } };

	op.run = call_run_id(c, 0);
	if (!op.run || !json_args(c, fields) || !request_pairs(c, "params", params, &kv, &op.logged.param_count))
		return CALL_DONE;
	op.logged.params = kv;
	return api_submit(c, &(struct api_change){ .op = &op, .then = run_json_changed });
}

enum call_next on_run_tag_put(struct call *c)
{
	struct ingest_kv kv = { .key = c->address.vars[1] };
	struct ingest_op op = { .kind = &change_run_tags, .logged.tags = &kv, .logged.tag_count = 1,
				.state = INGEST_NO_STATE };
	const struct json_field fields[] = { { "value", JSON_KIND_STRING, true, &kv.value, NULL }, { 0 } };

	op.run = call_run_id(c, 0);
	if (!op.run || !json_args(c, fields))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .then = run_json_changed });
}

enum call_next on_run_tag_delete(struct call *c)
{
	struct ingest_op op = { .kind = &change_run_untag, .name = c->address.vars[1], .state = INGEST_NO_STATE };

	op.run = call_run_id(c, 0);
	if (!op.run || !call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .then = run_json_changed });
}

/* --- /changes and /events --------------------------------------------------------------------------------------- */

static void write_changes(struct buf *out, const struct query_changes *ch)
{
	struct js j = { .out = out };
	size_t i;

	js_open(&j, '{');
	js_key_str(&j, "token", ch->token);
	js_key_open(&j, "runs", '[');
	for (i = 0; i < ch->run_count; i++)
		js_str(&j, ch->runs[i]);
	js_close(&j, ']');
	js_key_bool(&j, "more", ch->more);
	js_key_bool(&j, "reset", ch->reset);
	js_close(&j, '}');
}

enum call_next on_changes_get(struct call *c)
{
	const char *since = call_arg(c, "since");
	struct query_changes ch;
	struct err err = ERR_INIT;

	if (!call_args_done(c))
		return CALL_DONE;
	if (query_changes(c->api->store, since, c->arena, &ch, &err))
		return call_fail_err(c, "since", &err);
	write_changes(&c->out, &ch);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

struct event_feed {
	struct store *store;
	char token[256]; /* "": the first event has not been sent */
};

/* Sends an event when runs changed since the token, or at the start; a comment line at a tick without change. */
static int fill_event_feed(void *state, struct buf *out, bool tick, struct err *err)
{
	struct event_feed *e = state;
	struct arena *arena = arena_new();
	struct query_changes ch;
	int rc = query_changes(e->store, e->token, arena, &ch, err);

	if (rc) {
		arena_free(arena);
		return rc;
	}
	rc = STREAM_IDLE;
	if (!e->token[0] || ch.run_count || ch.reset) {
		buf_addf(out, "event: changes\nid: %s\ndata: ", ch.token);
		write_changes(out, &ch);
		buf_adds(out, "\n\n");
		snprintf(e->token, sizeof(e->token), "%s", ch.token);
		rc = STREAM_MORE;
	} else if (tick) {
		buf_adds(out, ": still here\n\n");
	}
	arena_free(arena);
	return rc;
}

enum call_next on_events_get(struct call *c)
{
	const char *since = call_arg(c, "since"), *last = c->host->header(c, "Last-Event-ID");
	struct query_changes ch;
	struct err err = ERR_INIT;
	struct event_feed *e;

	if (!call_args_done(c))
		return CALL_DONE;
	if (last && *last)
		since = last;
	if (query_changes(c->api->store, since, c->arena, &ch, &err))
		return call_fail_err(c, "since", &err);
	e = mem_zalloc(sizeof(*e));
	e->store = c->api->store;
	snprintf(e->token, sizeof(e->token), "%s", since && !ch.reset ? since : "");
	c->type = "text/event-stream";
	c->reply.cache = "no-store";
	c->stream = (struct call_stream){ .fill = fill_event_feed, .release = free, .state = e, .events = true };
	return CALL_DONE;
}
