/* SPDX-License-Identifier: Apache-2.0 */
/* api_retention.c: what is deleted for ever: /gc and /purge, and the rules by which the server deletes: /retention.
 * They run on a thread of the store while the call is suspended. */
#include <string.h>

#include "web/api/native/native_inside.h"
#include "web/store/maintenance/maintenance.h"
#include "web/store/maintenance/retention.h"

#define DAY_MS 86400e3
#define KEEP_OBJECTS_DAYS 7.0

struct upkeep_gc {
	struct call *call;
	struct store_gc_opts opts;
	struct store_gc_result res;
	struct err err;
	int rc;
};

static void run_gc_work(void *arg)
{
	struct upkeep_gc *g = arg;

	g->rc = store_gc(g->call->api->store, &g->opts, &g->res, &g->err);
}

/* A thing that is not there, or is not the caller's, is named. */
static enum call_next fail_upkeep(struct call *c, const char *field, const struct err *err)
{
	if (err->code == ERR_NOENT || err->code == ERR_GONE)
		return call_fail(c, err->code == ERR_NOENT ? CALL_not_found : CALL_gone, field, "%s", err->text);
	return call_fail_err(c, err->code == ERR_EXISTS ? field : NULL, err);
}

/* Replies with the counts of a collection. */
static enum call_next reply_gc(struct call *c)
{
	const struct upkeep_gc *g = c->waiting;
	const struct store_gc_result *r = &g->res;
	struct js j = { .out = &c->out };

	if (g->rc)
		return fail_upkeep(c, g->opts.runs ? "runs" : "experiment", &g->err);
	js_open(&j, '{');
	js_key_bool(&j, "dry_run", g->opts.dry_run);
	js_key_int(&j, "runs", (int64_t)r->runs);
	js_key_int(&j, "points", (int64_t)r->points);
	js_key_int(&j, "models", (int64_t)r->models);
	js_key_int(&j, "experiments", (int64_t)r->experiments);
	js_key_int(&j, "kept", (int64_t)r->kept);
	js_key_int(&j, "artifacts", (int64_t)r->artifacts);
	js_key_int(&j, "artifact_bytes", (int64_t)r->artifact_bytes);
	js_key_int(&j, "objects", (int64_t)r->objects);
	js_key_int(&j, "journals", (int64_t)r->journals);
	js_key_int(&j, "journal_bytes", (int64_t)r->journal_bytes);
	js_key_int(&j, "freed_bytes", (int64_t)r->freed_bytes);
	js_key_str(&j, "space", r->reused ? "reused" : "returned");
	return js_reply(c, &j);
}

/* Reads the options of a collection. Returns false after failing the call. */
static bool read_gc_options(struct call *c, struct store_gc_opts *ret)
{
	double days = 0, keep_days = KEEP_OBJECTS_DAYS;
	bool retention = false;
	const struct json_field fields[] = { { "older_than_days", JSON_KIND_DOUBLE, false, &days, NULL },
					     { "keep_objects_days", JSON_KIND_DOUBLE, false, &keep_days, NULL },
					     { "journals", JSON_KIND_BOOL, false, &ret->journals, NULL },
					     { "dry_run", JSON_KIND_BOOL, false, &ret->dry_run, NULL },
					     { "retention", JSON_KIND_BOOL, false, &retention, NULL },
					     { 0 } };

	if (!json_args(c, fields))
		return false;
	if (!(days >= 0 && days <= 1e6))
		return call_fail(c, CALL_bad_value, "older_than_days", "older_than_days: expected 0 to 1000000"), false;
	if (!(keep_days >= 0 && keep_days <= 1e6))
		return call_fail(c, CALL_bad_value, "keep_objects_days", "keep_objects_days: expected 0 to 1000000"),
		       false;
	ret->what = retention ? GC_RULES : GC_ALL;
	ret->older_than_ms = (int64_t)(days * DAY_MS);
	ret->keep_objects_ms = (int64_t)(keep_days * DAY_MS);
	return true;
}

enum call_next on_gc_post(struct call *c)
{
	struct upkeep_gc *g = arena_alloc(c->arena, sizeof(*g));

	if (!read_gc_options(c, &g->opts))
		return CALL_DONE;
	g->call = c;
	g->opts.author = api_author(c);
	return upkeep_start(c, run_gc_work, g, reply_gc);
}

/* --- deletion for ever ------------------------------------------------------------------------------------------ */

#define PURGE_RUNS_MAX 1000

/* Reads ids of runs. Returns false after failing the call. */
static bool read_purged_runs(struct call *c, json_t *list, struct store_gc_opts *o)
{
	const char **ids;
	json_t *item;
	size_t i;

	if (!json_array_size(list) || json_array_size(list) > PURGE_RUNS_MAX)
		return call_fail(c, CALL_bad_value, "runs", "runs: expected 1 to %d ids of runs", PURGE_RUNS_MAX),
		       false;
	ids = arena_array(c->arena, json_array_size(list), sizeof(*ids));
	json_array_foreach(list, i, item) {
		ids[i] = json_string_value(item);
		if (!ids[i] || !call_is_run_id(ids[i]))
			return call_fail(c, CALL_bad_value, "runs", "runs[%zu]: expected a run id of 32 hex digits", i),
			       false;
	}
	o->runs = ids;
	o->run_count = json_array_size(list);
	return true;
}

enum call_next on_purge_post(struct call *c)
{
	struct upkeep_gc *g = arena_alloc(c->arena, sizeof(*g));
	json_t *runs = NULL;
	const struct json_field fields[] = { { "runs", JSON_KIND_ARRAY, false, &runs, NULL },
					     { "experiment", JSON_KIND_STRING, false, &g->opts.experiment, NULL },
					     { "dry_run", JSON_KIND_BOOL, false, &g->opts.dry_run, NULL },
					     { 0 } };

	if (!json_args(c, fields) || (runs && !read_purged_runs(c, runs, &g->opts)))
		return CALL_DONE;
	if (!runs == !g->opts.experiment)
		return call_fail(c, CALL_bad_value, "runs", "expected either runs or experiment");
	g->call = c;
	g->opts.what = GC_TRASH;
	g->opts.author = api_author(c);
	return upkeep_start(c, run_gc_work, g, reply_gc);
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

static void write_days(struct js *j, const char *key, int64_t ms)
{
	js_key(j, key);
	if (ms == RETENTION_OFF)
		js_null(j);
	else
		js_double(j, (double)ms / DAY_MS);
}

static void write_rule(struct js *j, const struct retention_rule *r)
{
	write_days(j, "artifact_days", r->artifact_ms);
	js_key_int(j, "keep_best", r->keep_best);
	write_days(j, "trash_days", r->trash_ms);
	js_key(j, "quota_bytes");
	if (r->quota_bytes == RETENTION_OFF)
		js_null(j);
	else
		js_int(j, r->quota_bytes);
}

static void write_experiment_name(struct call *c, struct js *j, const char *name, int64_t id)
{
	js_key_str(j, "experiment", name);
	js_key_str(j, "id", arena_printf(c->arena, "%lld", (long long)id));
}

static enum call_next reply_rules(struct call *c)
{
	struct js j = { .out = &c->out };
	struct retention_rules rules;
	struct err err = ERR_INIT;

	if (retention_rules(c->api->store, c->arena, &rules, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "all", '{');
	write_rule(&j, &rules.all);
	js_close(&j, '}');
	js_key_open(&j, "experiments", '[');
	for (size_t i = 0; i < rules.count; i++) {
		js_open(&j, '{');
		write_experiment_name(c, &j, rules.items[i].name, rules.items[i].experiment);
		write_rule(&j, &rules.items[i].rule);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	return js_reply(c, &j);
}

enum call_next on_retention_get(struct call *c)
{
	return call_args_done(c) ? reply_rules(c) : CALL_DONE;
}

static enum call_next reply_put_rule(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_rules(c);
}

static enum call_next fail_put_rule(struct call *c, const struct err *err)
{
	return fail_upkeep(c, *err->field ? NULL : "experiment", err);
}

static bool set_days(struct call *c, const char *key, double days, int64_t *ret_ms)
{
	if (!(days >= 0 && days <= 1e6))
		return call_fail(c, CALL_bad_value, key, "%s: expected 0 to 1000000 days", key), false;
	*ret_ms = (int64_t)(days * DAY_MS);
	return true;
}

/* Reads a number of days, or null. Returns false after failing the call. */
static bool read_days_member(struct call *c, const char *key, json_t *value, int64_t *ret_ms)
{
	double days;

	if (!value || json_is_null(value))
		return true;
	return set_days(c, key, json_is_number(value) && json_to_double(value, &days) ? days : -1, ret_ms);
}

static bool read_quota(struct call *c, json_t *value, int64_t *ret)
{
	if (!value || json_is_null(value))
		return true;
	*ret = json_integer_value(value);
	return json_is_integer(value) ||
	       (call_fail(c, CALL_bad_value, "quota_bytes", "quota_bytes: expected a whole number of bytes"), false);
}

static bool check_keep_best(struct call *c, int64_t keep_best)
{
	return (keep_best >= 0 && keep_best <= 1000000) ||
	       (call_fail(c, CALL_bad_value, "keep_best", "keep_best: expected 0 to 1000000 runs"), false);
}

enum call_next on_retention_put(struct call *c)
{
	struct retention_rule rule = RETENTION_NO_RULE;
	struct retention_put put = { .rule = &rule };
	json_t *artifact = NULL, *trash = NULL, *quota = NULL;
	bool inherit = false;
	const struct json_field fields[] = { { "experiment", JSON_KIND_STRING, false, &put.experiment, NULL },
					     { "artifact_days", JSON_KIND_ANY, false, &artifact, NULL },
					     { "keep_best", JSON_KIND_INT, false, &rule.keep_best, NULL },
					     { "trash_days", JSON_KIND_ANY, false, &trash, NULL },
					     { "quota_bytes", JSON_KIND_ANY, false, &quota, NULL },
					     { "inherit", JSON_KIND_BOOL, false, &inherit, NULL },
					     { 0 } };
	const struct ingest_op op = { .kind = &retention_change_put, .more = &put };

	if (!json_args(c, fields) || !read_days_member(c, "artifact_days", artifact, &rule.artifact_ms) ||
	    !read_days_member(c, "trash_days", trash, &rule.trash_ms) || !read_quota(c, quota, &rule.quota_bytes) ||
	    !check_keep_best(c, rule.keep_best))
		return CALL_DONE;
	if (inherit && !put.experiment)
		return call_fail(c, CALL_bad_value, "inherit", "inherit: is for the rules of an experiment");
	if (inherit)
		put.rule = NULL;
	return api_submit(c, &(struct api_change){ .op = &op, .fail = fail_put_rule, .then = reply_put_rule });
}

/* --- preview ---------------------------------------------------------------------------------------------------- */

struct upkeep_preview {
	struct call *call;
	struct retention_preview ask;
	struct retention_rule rule;
	struct retention_plan plan;
	struct err err;
	int rc;
};

static void run_preview_work(void *arg)
{
	struct upkeep_preview *p = arg;

	p->rc = retention_preview(p->call->api->store, &p->ask, p->call->arena, &p->plan, &p->err);
}

static void write_preview_item(struct call *c, struct js *j, const struct retention_experiment *e)
{
	js_open(j, '{');
	write_experiment_name(c, j, e->name, e->id);
	js_key_bool(j, "own", e->own);
	js_key_str(j, "goal", e->goal.key);
	js_key_str(j, "best", e->goal.key ? goal_best_word(e->goal.best) : NULL);
	js_key_int(j, "artifacts", (int64_t)e->doomed_files);
	js_key_int(j, "artifact_bytes", (int64_t)e->doomed_bytes);
	js_key_int(j, "runs", (int64_t)e->trash_runs);
	js_key_int(j, "models", (int64_t)e->trash_models);
	js_key_int(j, "trash_bytes", (int64_t)e->trash_bytes);
	js_key_int(j, "kept_runs", (int64_t)e->kept_runs);
	js_key_int(j, "total_artifacts", (int64_t)e->files);
	js_key_int(j, "total_bytes", (int64_t)e->bytes);
	js_close(j, '}');
}

/* Replies with what each experiment would lose, and the sums. */
static enum call_next reply_preview(struct call *c)
{
	const struct upkeep_preview *p = c->waiting;
	struct retention_experiment sum = { 0 };
	struct js j = { .out = &c->out };

	if (p->rc)
		return fail_upkeep(c, "experiment", &p->err);
	js_open(&j, '{');
	js_key_open(&j, "experiments", '[');
	for (size_t i = 0; i < p->plan.experiment_count; i++) {
		const struct retention_experiment *e = &p->plan.experiments[i];

		write_preview_item(c, &j, e);
		sum.doomed_files += e->doomed_files;
		sum.doomed_bytes += e->doomed_bytes;
		sum.trash_runs += e->trash_runs;
		sum.trash_models += e->trash_models;
		sum.trash_bytes += e->trash_bytes;
		sum.bytes += e->bytes;
	}
	js_close(&j, ']');
	js_key_int(&j, "artifacts", (int64_t)sum.doomed_files);
	js_key_int(&j, "artifact_bytes", (int64_t)sum.doomed_bytes);
	js_key_int(&j, "runs", (int64_t)sum.trash_runs);
	js_key_int(&j, "models", (int64_t)sum.trash_models);
	js_key_int(&j, "trash_bytes", (int64_t)sum.trash_bytes);
	js_key_int(&j, "total_bytes", (int64_t)sum.bytes);
	return js_reply(c, &j);
}

/* Reads a rule to try in place of the stored one. Returns false after failing the call. */
static bool read_preview_rule(struct call *c, struct upkeep_preview *p)
{
	bool artifact = false, trash = false;
	double artifact_days = 0, trash_days = 0;

	p->rule = (struct retention_rule)RETENTION_NO_RULE;
	if (!call_arg_double(c, "artifact_days", &artifact_days, &artifact) ||
	    !call_arg_double(c, "trash_days", &trash_days, &trash) ||
	    !call_arg_int(c, "keep_best", &p->rule.keep_best, 0, 1000000) ||
	    !call_arg_int(c, "quota_bytes", &p->rule.quota_bytes, 0, INT64_MAX) ||
	    (artifact && !set_days(c, "artifact_days", artifact_days, &p->rule.artifact_ms)) ||
	    (trash && !set_days(c, "trash_days", trash_days, &p->rule.trash_ms)))
		return false;
	if (artifact || trash || p->rule.quota_bytes != RETENTION_OFF || call_arg(c, "keep_best"))
		p->ask.instead = &p->rule;
	return true;
}

enum call_next on_retention_preview(struct call *c)
{
	struct upkeep_preview *p = arena_alloc(c->arena, sizeof(*p));

	p->ask.experiment = call_arg(c, "experiment");
	if (!read_preview_rule(c, p) || !call_args_done(c))
		return CALL_DONE;
	if (p->ask.instead && retention_check(p->ask.instead, &p->err))
		return call_fail_err(c, NULL, &p->err);
	p->call = c;
	return upkeep_start(c, run_preview_work, p, reply_preview);
}
