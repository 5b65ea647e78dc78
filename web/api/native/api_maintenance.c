/* api_maintenance.c: /gc, /backup, /doctor: long work on the store. It runs on a thread of the store while the call is
 * suspended. */
#include "web/api/api.h"

#include "web/api/handlers.h"
#include "web/api/native/findings.h"
#include "web/store/maintenance/maintenance.h"

#define KEEP_OBJECTS_DAYS 7.0

struct upkeep_gc {
	struct call *call;
	struct store_gc_opts opts;
	struct store_gc_result res;
	struct err err;
	int rc;
};

static bool read_json_switch(struct call *c, const char *name, json_t *value, bool *ret)
{
	if (!value)
		return true;
	if (!json_is_boolean(value))
		return call_fail(c, CALL_bad_value, name, "%s: expected true or false", name), false;
	*ret = json_is_true(value);
	return true;
}

static void run_gc_work(void *arg)
{
	struct upkeep_gc *g = arg;

	g->rc = store_gc(g->call->api->store, &g->opts, &g->res, &g->err);
}

/* Replies with the counts of a collection. */
static enum call_next reply_gc(struct call *c)
{
	const struct upkeep_gc *g = c->waiting;
	const struct store_gc_result *r = &g->res;
	struct js j = { .out = &c->out };

	if (g->rc)
		return call_fail_err(c, NULL, &g->err);
	js_open(&j, '{');
	js_key(&j, "dry_run");
	js_bool(&j, g->opts.dry_run);
	js_key_int(&j, "runs", (int64_t)r->runs);
	js_key_int(&j, "points", (int64_t)r->points);
	js_key_int(&j, "models", (int64_t)r->models);
	js_key_int(&j, "experiments", (int64_t)r->experiments);
	js_key_int(&j, "artifacts", (int64_t)r->artifacts);
	js_key_int(&j, "artifact_bytes", (int64_t)r->artifact_bytes);
	js_key_int(&j, "objects", (int64_t)r->objects);
	js_key_int(&j, "journals", (int64_t)r->journals);
	js_key_int(&j, "journal_bytes", (int64_t)r->journal_bytes);
	js_key_int(&j, "freed_bytes", (int64_t)r->freed_bytes);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

/* Reads the options of a collection. Returns false after failing the call. */
static bool read_gc_options(struct call *c, json_t *body, struct store_gc_opts *ret)
{
	json_t *journals = NULL, *dry_run = NULL;
	double days = 0, keep_days = KEEP_OBJECTS_DAYS;
	const struct json_field fields[] = {
		{ "older_than_days", JSON_KIND_DOUBLE, false, &days, NULL },
		{ "keep_objects_days", JSON_KIND_DOUBLE, false, &keep_days, NULL },
		{ "journals", JSON_KIND_ANY, false, &journals, NULL },
		{ "dry_run", JSON_KIND_ANY, false, &dry_run, NULL },
		{ 0 }
	};

	if (!json_read(c, body, "", fields) || !read_json_switch(c, "journals", journals, &ret->journals) ||
	    !read_json_switch(c, "dry_run", dry_run, &ret->dry_run))
		return false;
	if (!(days >= 0 && days <= 1e6))
		return call_fail(c, CALL_bad_value, "older_than_days", "older_than_days: expected 0 to 1000000"), false;
	if (!(keep_days >= 0 && keep_days <= 1e6))
		return call_fail(c, CALL_bad_value, "keep_objects_days", "keep_objects_days: expected 0 to 1000000"),
		       false;
	ret->older_than_ms = (int64_t)(days * 86400e3);
	ret->keep_objects_ms = (int64_t)(keep_days * 86400e3);
	return true;
}

static void wake_upkeep_call(void *arg)
{
	call_wake(*(struct call **)arg);
}

/* Runs fn on a thread of the store and suspends the call until it has ended. The first member of *arg is the call. */
static enum call_next start_upkeep_work(struct call *c, void (*fn)(void *arg), void *arg,
					enum call_next (*resume)(struct call *c))
{
	struct err err = ERR_INIT;

	c->waiting = arg;
	c->resume = resume;
	return store_work(c->api->store, fn, wake_upkeep_call, arg, &err) ? call_fail_err(c, NULL, &err) : CALL_WAIT;
}

enum call_next on_gc_post(struct call *c)
{
	struct upkeep_gc *g = arena_alloc(c->arena, sizeof(*g));
	json_t *body = call_args_done(c) ? json_body(c) : NULL;
	bool good;

	if (!body)
		return CALL_DONE;
	good = g && read_gc_options(c, body, &g->opts);
	json_decref(body);
	if (!g)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	if (!good)
		return CALL_DONE;
	g->call = c;
	return start_upkeep_work(c, run_gc_work, g, reply_gc);
}

struct upkeep_backup {
	struct call *call;
	const char *path;
	struct store_backup_result res;
	struct err err;
	int rc;
};

static void run_backup_work(void *arg)
{
	struct upkeep_backup *b = arg;

	b->rc = store_backup(b->call->api->store, b->path, &b->res, &b->err);
}

static enum call_next reply_backup(struct call *c)
{
	const struct upkeep_backup *b = c->waiting;
	struct js j = { .out = &c->out };

	if (b->rc)
		return call_fail_err(c, b->rc == ERR_USAGE || b->rc == ERR_EXISTS ? "path" : NULL, &b->err);
	js_open(&j, '{');
	js_key_str(&j, "path", b->path);
	js_key_int(&j, "bytes", (int64_t)b->res.bytes);
	js_key_int(&j, "artifacts", (int64_t)b->res.artifacts);
	js_key_int(&j, "artifact_bytes", (int64_t)b->res.artifact_bytes);
	js_key_double(&j, "seconds", b->res.seconds);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_backup_post(struct call *c)
{
	struct upkeep_backup *b = arena_alloc(c->arena, sizeof(*b));
	json_t *body = call_args_done(c) ? json_body(c) : NULL;
	const char *path = NULL;
	const struct json_field fields[] = { { "path", JSON_KIND_STRING, true, &path, NULL }, { 0 } };
	bool good;

	if (!body)
		return CALL_DONE;
	good = json_read(c, body, "", fields);
	if (good && b)
		*b = (struct upkeep_backup){ .call = c, .path = arena_strdup(c->arena, path) };
	json_decref(body);
	if (!good)
		return CALL_DONE;
	if (!b || !b->path)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	return start_upkeep_work(c, run_backup_work, b, reply_backup);
}

struct upkeep_doctor {
	struct call *call;
	bool full;
	struct check_report report;
	struct err err;
	int rc;
};

static void run_doctor_work(void *arg)
{
	struct upkeep_doctor *d = arg;

	d->rc = check_store(d->call->api->store, d->full, d->call->arena, &d->report, &d->err);
}

static enum call_next reply_doctor(struct call *c)
{
	const struct upkeep_doctor *d = c->waiting;
	struct js j = { .out = &c->out };

	if (d->rc)
		return call_fail_err(c, NULL, &d->err);
	js_open(&j, '{');
	findings_write(&j, &d->report, true);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_doctor_post(struct call *c)
{
	struct upkeep_doctor *d = arena_alloc(c->arena, sizeof(*d));
	json_t *body = call_args_done(c) ? json_body(c) : NULL, *full = NULL;
	const struct json_field fields[] = { { "full", JSON_KIND_ANY, false, &full, NULL }, { 0 } };
	bool good;

	if (!body)
		return CALL_DONE;
	good = d && json_read(c, body, "", fields) && read_json_switch(c, "full", full, &d->full);
	json_decref(body);
	if (!d)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	if (!good)
		return CALL_DONE;
	d->call = c;
	return start_upkeep_work(c, run_doctor_work, d, reply_doctor);
}
