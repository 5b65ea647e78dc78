/* SPDX-License-Identifier: Apache-2.0 */
/* api_alerts.c: /alerts: fired alerts, and the rules. A rule has no recipient: the administrator sets the webhook. */
#include "web/store/alert/alert.h"
#include "web/store/audit/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/native/native_inside.h"

#define ALERTS_DEFAULT 100 /* default limit */
#define ALERTS_MAX 1000
#define SILENCE_MIN_S 10.0
#define SILENCE_MAX_S 31536000.0

static void write_alert_id(struct js *j, const char *key, int64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, id);
	js_key_str(j, key, text);
}

/* Who made each of n rules. Returns false after failing the call. */
static bool read_rule_authors(struct call *c, const struct alert_rule *rules, size_t n, struct audit_authors **ret)
{
	const char **ids = arena_array(c->arena, n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = arena_printf(c->arena, "%" PRId64, rules[i].id);
	return audit_read_authors(
		c, &(struct audit_objects){ .object = "alert_rule", .name = "", .ids = ids, .count = n }, ret);
}

static void write_alert_rule(struct js *j, const struct alert_rule *r, const struct audit_authors *by)
{
	js_open(j, '{');
	write_alert_id(j, "id", r->id);
	js_key_str(j, "experiment", r->experiment_id < 0 ? NULL : r->experiment);
	js_key_str(j, "kind", r->kind);
	if (*r->metric)
		js_key_str(j, "metric", r->metric);
	if (!strcmp(r->kind, "metric"))
		js_key_double(j, r->above ? "above" : "below", r->bound);
	if (!strcmp(r->kind, "silent"))
		js_key_double(j, "seconds", r->bound);
	run_json_time(j, "created_time", r->created_ms);
	audit_write_authors(j, by);
	js_close(j, '}');
}

static void write_fired_alert(struct js *j, const struct alert_fired *f)
{
	js_open(j, '{');
	write_alert_id(j, "id", f->id);
	write_alert_id(j, "rule", f->rule);
	js_key_str(j, "kind", f->kind);
	js_key_str(j, "text", f->text);
	js_key_str(j, "experiment", f->experiment);
	js_key_str(j, "run", f->run);
	js_key_str(j, "run_name", f->run_name);
	js_key_str(j, "metric", f->metric);
	js_key_int(j, "step", f->step);
	js_key_number(j, "value", f->value);
	run_json_time(j, "time", f->time_ms);
	run_json_time(j, "due_time", f->due_ms);
	run_json_time(j, "posted_time", f->posted_ms);
	js_key_int(j, "tries", f->tries);
	js_close(j, '}');
}

enum call_next on_alert_list(struct call *c)
{
	struct alert_page page = { .experiment = call_arg(c, "experiment") };
	int64_t limit = ALERTS_DEFAULT;
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct alerts all;
	size_t i;

	if (!call_arg_int(c, "limit", &limit, 1, ALERTS_MAX) ||
	    !call_arg_int(c, "before", &page.before, 1, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	page.limit = (size_t)limit;
	if (alert_list(c->api->store, &page, c->arena, &all, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "alerts", '[');
	for (i = 0; i < all.count; i++)
		write_fired_alert(&j, &all.items[i]);
	js_close(&j, ']');
	return js_reply(c, &j);
}

enum call_next on_alert_rule_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct audit_authors *by;
	struct alert_rule *rules;
	size_t n, i;

	if (!call_args_done(c))
		return CALL_DONE;
	if (alert_rules(c->api->store, c->arena, &rules, &n, &err))
		return call_fail_err(c, NULL, &err);
	if (!read_rule_authors(c, rules, n, &by))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, "rules", '[');
	for (i = 0; i < n; i++)
		write_alert_rule(&j, &rules[i], by ? &by[i] : NULL);
	js_close(&j, ']');
	return js_reply(c, &j);
}

static enum call_next reply_new_rule(struct call *c, const struct ingest_result *res)
{
	int64_t id = strtoll(res->id, NULL, 10);
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct audit_authors *by;
	struct alert_rule *rules;
	size_t n, i;

	if (alert_rules(c->api->store, c->arena, &rules, &n, &err))
		return call_fail_err(c, NULL, &err);
	for (i = 0; i < n && rules[i].id != id; i++)
		;
	if (i == n)
		return call_fail(c, CALL_not_found, NULL, "the rule is already deleted");
	c->status = 201;
	if (!read_rule_authors(c, &rules[i], 1, &by))
		return CALL_DONE;
	write_alert_rule(&j, &rules[i], by);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

/* Bounds that are present in the request. */
struct given_bounds {
	bool above, below, seconds;
};

/* Checks the members that a kind of rule requires or excludes. Returns false after failing the call. */
static bool check_rule_members(struct call *c, const struct alert_op *op, struct given_bounds g)
{
	bool metric = !strcmp(op->rule_kind, "metric"), silent = !strcmp(op->rule_kind, "silent");

	if (metric ? g.above == g.below : g.above || g.below)
		call_fail(c, CALL_bad_value, "above",
			  metric ? "above: a rule of kind metric needs either above or below"
				 : "above: only a rule of kind metric has a bound");
	else if (silent ? !(g.seconds && op->bound >= SILENCE_MIN_S && op->bound <= SILENCE_MAX_S) : g.seconds)
		call_fail(c, CALL_bad_value, "seconds", silent ? "seconds: expected 10 to 31536000 (a year)" :
			  "seconds: only a rule of kind silent has them");
	else if (*op->metric && !metric && strcmp(op->rule_kind, "nan"))
		call_fail(c, CALL_bad_value, "metric", "metric: a rule of this kind has no metric");
	else
		return true;
	return false;
}

enum call_next on_alert_rule_create(struct call *c)
{
	struct alert_op op = { .kind = &alert_change_rule, .metric = "", .rule_kind = "" };
	double above = 0, below = 0, seconds = 0;
	struct given_bounds g = { 0 };
	const struct json_field fields[] = {
		{ "kind", JSON_KIND_STRING, true, &op.rule_kind, NULL },
		{ "experiment", JSON_KIND_STRING, false, &op.experiment, NULL },
		{ "metric", JSON_KIND_STRING, false, &op.metric, NULL },
		{ "above", JSON_KIND_DOUBLE, false, &above, &g.above },
		{ "below", JSON_KIND_DOUBLE, false, &below, &g.below },
		{ "seconds", JSON_KIND_DOUBLE, false, &seconds, &g.seconds },
		{ 0 },
	};
	const struct ingest_op ingest = alert_ingest(&op);

	if (!json_args(c, fields))
		return CALL_DONE;
	op.above = g.above;
	op.bound = g.above ? above : g.below ? below : seconds;
	if (!check_rule_members(c, &op, g))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &ingest, .field = "kind", .then = reply_new_rule });
}

static enum call_next reply_deleted_rule(struct call *c, const struct ingest_result *res)
{
	(void)res;
	buf_adds(&c->out, "{}\n");
	return CALL_DONE;
}

enum call_next on_alert_rule_delete(struct call *c)
{
	const struct alert_op op = { .kind = &alert_change_unrule, .id = request_number(c, 0, "rule") };
	const struct ingest_op ingest = alert_ingest(&op);

	if (!op.id || !call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &ingest, .then = reply_deleted_rule });
}
