/* api.c: steps shared by the handlers: waiting for a change to be durable, pairs, query errors. */
#include "web/api/api.h"

#include <stdlib.h>
#include <string.h>

struct api_pending {
	struct call *call;
	struct ingest_result res;
	struct api_change change;
};

static void api_committed(void *arg, const struct ingest_result *res)
{
	struct api_pending *p = arg;

	p->res = *res;
	call_wake(p->call);
}

static enum call_next api_resumed(struct call *c)
{
	struct api_pending *p = c->waiting;
	const struct api_change *change = &p->change;

	if (!p->res.code || change->keep_errors)
		return change->then(c, &p->res);
	if (change->fail)
		return change->fail(c, &p->res.err);
	if (p->res.code == ERR_NOENT)
		return call_fail(c, CALL_not_found, change->field ? change->field : "run", "%s", p->res.err.text);
	return call_fail_err(c, change->field, &p->res.err);
}

enum call_next api_submit(struct call *c, const struct api_change *change)
{
	struct api_pending *p = arena_alloc(c->arena, sizeof(*p));
	struct ingest_done done = { api_committed, p };
	struct err err = ERR_INIT;
	int rc;

	if (!p)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	*p = (struct api_pending){ .call = c, .change = *change };
	c->waiting = p;
	c->resume = api_resumed;
	if (change->tracking)
		rc = tracking_submit(c->api->store, change->tracking, &done, &err);
	else
		rc = (change->submit ? change->submit : ingest_submit)(c->api->store, change->op, &done, NULL, &err);
	if (!rc)
		return CALL_WAIT; /* the result may be there already: p is the writer's until the wake */
	p->res.code = rc;
	p->res.err = err;
	return api_resumed(c);
}

enum call_next api_run(struct call *c, const char *id, enum api_detail detail)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct query_run run;

	if ((detail == API_RUN_SERIES ? query_run_series : query_run)(c->api->store, id, c->arena, &run, &err))
		return call_fail_err(c, "run", &err);
	api_write_run(c, &j, &run, detail);
	if (c->status < 300)
		buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next api_reply_run(struct call *c, const struct ingest_result *res)
{
	return api_run(c, res->id[0] ? res->id : c->vars[0], API_RUN_FULL);
}

void api_write_time(struct js *j, const char *key, int64_t ms)
{
	js_key(j, key);
	if (ms == INT64_MIN)
		js_null(j);
	else
		js_int(j, ms);
}

enum call_next api_fail_query(struct call *c, const struct err *err)
{
	if (err->code == ERR_USAGE && !strcmp(err->field, "filter"))
		return call_fail(c, CALL_bad_filter, err->field, "%s", err->text);
	if (err->code == ERR_NOENT)
		return call_fail(c, CALL_not_found, "experiment", "%s", err->text);
	return call_fail_err(c, NULL, err);
}

/* Text of a scalar JSON value in the arena, NULL when it is none. */
static const char *pair_text(struct call *c, json_t *value)
{
	char text[JSON_DOUBLE_MAX];

	switch (json_typeof(value)) {
	case JSON_STRING:
		return arena_strdup(c->arena, json_string_value(value));
	case JSON_INTEGER:
		return arena_printf(c->arena, "%lld", (long long)json_integer_value(value));
	case JSON_REAL:
		json_print_double(text, json_real_value(value));
		return arena_strdup(c->arena, text);
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	default:
		return NULL;
	}
}

bool api_read_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count)
{
	struct ingest_kv *kv;
	const char *key, *where;
	json_t *value;
	size_t n = 0;

	*ret = NULL;
	*ret_count = 0;
	if (!object)
		return true;
	kv = arena_array(c->arena, json_object_size(object) + 1, sizeof(*kv));
	json_object_foreach(object, key, value) {
		where = arena_printf(c->arena, "%s.%s", field, key);
		if (!kv)
			break;
		kv[n].key = arena_strdup(c->arena, key);
		kv[n].value = pair_text(c, value);
		if (!kv[n].value)
			return call_fail(c, CALL_bad_value, where, "%s: want a string, a number or a boolean", where), false;
		n++;
	}
	*ret = kv;
	*ret_count = n;
	return true;
}

bool api_read_rank(struct call *c, const char *text, int *rank)
{
	char *end;
	long v;

	if (!text)
		return true;
	if (!strcmp(text, "all")) {
		*rank = POINTS_ALL_RANKS;
		return true;
	}
	v = strtol(text, &end, 10);
	if (end == text || *end || v < -1 || v > INT32_MAX)
		return call_fail(c, CALL_bad_value, "rank", "rank: want a rank, -1 (the run as a whole) or all"), false;
	*rank = (int)v;
	return true;
}

bool api_read_segments(struct call *c, const char *text, bool *all)
{
	*all = text && !strcmp(text, "all");
	if (text && !*all && strcmp(text, "visible"))
		return call_fail(c, CALL_bad_value, "segments", "segments: want visible or all"), false;
	return true;
}

bool api_run_ids_ok(struct call *c, const char *field, const char *const *ids, size_t n)
{
	size_t i;

	if (!n)
		return call_fail(c, CALL_bad_value, field, "%s: name at least one run", field), false;
	for (i = 0; i < n; i++)
		if (!call_is_run_id(ids[i]))
			return call_fail(c, CALL_bad_value, field, "%s: a run id is 32 lower-case hex digits", field), false;
	return true;
}
