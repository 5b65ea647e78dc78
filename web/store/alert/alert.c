/* SPDX-License-Identifier: Apache-2.0 */
/* alert.c: reads rules and alerts, and changes them. */
#include "web/store/alert/alert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tracker/base/clock.h"
#include "web/store/write/change.h"

static struct alert_rule read_alert_rule(struct arena *a, struct db_rows *q)
{
	return (struct alert_rule){
		.id = db_i64(q, COL_alert_rules_id),
		.experiment_id = db_i64(q, COL_alert_rules_experiment_id),
		.experiment = db_text(a, q, COL_alert_rules_experiment),
		.kind = db_text(a, q, COL_alert_rules_kind),
		.metric = db_text(a, q, COL_alert_rules_metric),
		.above = db_i32(q, COL_alert_rules_above),
		.bound = db_f64(q, COL_alert_rules_bound),
		.since_rev = db_i64(q, COL_alert_rules_since_rev),
		.created_ms = db_i64(q, COL_alert_rules_created_ms),
	};
}

int alert_rules(struct store *s, struct arena *a, struct alert_rule **ret, size_t *ret_count, struct err *err)
{
	struct alert_rule *list = NULL;
	struct db_rows *q;
	struct db *d;
	size_t n = 0;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_alert_rules, err, "t", permitted_ids(d));
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list, &n, read_alert_rule(a, q));
	readers_give(s, d);
	if (!rc) {
		*ret = list;
		*ret_count = n;
	}
	return rc;
}

static struct alert_fired read_fired_alert(struct arena *a, struct db_rows *q)
{
	return (struct alert_fired){
		.id = db_i64(q, COL_alert_list_id),
		.rule = db_i64(q, COL_alert_list_rule_id),
		.run = db_text(a, q, COL_alert_list_run),
		.run_name = db_text(a, q, COL_alert_list_run_name),
		.experiment = db_text(a, q, COL_alert_list_experiment),
		.kind = db_text(a, q, COL_alert_list_kind),
		.metric = db_text(a, q, COL_alert_list_metric),
		.text = db_text(a, q, COL_alert_list_text),
		.step = db_i64(q, COL_alert_list_step),
		.value = db_f64(q, COL_alert_list_value),
		.time_ms = db_i64(q, COL_alert_list_time_ms),
		.due_ms = db_time(q, COL_alert_list_due_ms),
		.posted_ms = db_time(q, COL_alert_list_posted_ms),
		.tries = db_i32(q, COL_alert_list_tries),
	};
}

static int collect_alert_rows(struct db *d, struct db_rows *q, struct arena *a, struct alerts *ret, struct err *err)
{
	struct alerts all = { 0 };
	int rc;

	while ((rc = db_next(d, q, err)) > 0)
		list_push(a, &all.items, &all.count, read_fired_alert(a, q));
	if (!rc)
		*ret = all;
	return rc;
}

int alert_list(struct store *s, const struct alert_page *page, struct arena *a, struct alerts *ret, struct err *err)
{
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_alert_list, err, "tiit", page->experiment ? page->experiment : "",
		      page->before ? page->before : INT64_MAX, (int64_t)page->limit, permitted_ids(d));
	rc = rc ? rc : collect_alert_rows(d, q, a, ret, err);
	readers_give(s, d);
	return rc;
}

int alert_due(struct store *s, int64_t now_ms, struct arena *a, struct alerts *ret, struct err *err)
{
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_alert_due, err, "i", now_ms);
	rc = rc ? rc : collect_alert_rows(d, q, a, ret, err);
	readers_give(s, d);
	return rc;
}

/* --- changes -------------------------------------------------------------------------------------------------- */

static bool is_alert_kind(const char *kind)
{
	static const char *const kinds[] = { "metric", "nan", "failed", "silent", "done" };
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return true;
	return false;
}

static int check_rule(const struct ingest_op *ingest, struct err *err)
{
	const struct alert_op *op = ingest->more;

	if (!is_alert_kind(op->rule_kind))
		return err_set(err, ERR_USAGE, "kind: expected metric, nan, failed, silent or done");
	if (!strcmp(op->rule_kind, "metric") && !*op->metric)
		return err_set(err, ERR_USAGE, "metric: a rule of kind metric requires one");
	if (*op->metric && change_check_name(op->metric, "the metric", "metric", err))
		return err->code;
	if (isnan(op->bound))
		return err_set(err, ERR_USAGE, "bound: expected a number");
	return 0;
}

static void copy_alert(struct change *c, const struct ingest_op *op)
{
	const struct alert_op *from = op->more;
	struct arena *a = c->in.arena;
	struct alert_op *to = arena_alloc(a, sizeof(*to));

	*to = *from;
	to->experiment = change_dup(a, from->experiment);
	to->rule_kind = change_dup(a, from->rule_kind);
	to->metric = change_dup(a, from->metric);
	to->text = change_dup(a, from->text);
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
}

struct ingest_op alert_ingest(const struct alert_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .more = op };
}

/* Adds a rule for an experiment that the caller may write, or for all. */
static int make_rule(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int64_t experiment = -1, count = 0;
	int rc = 1;

	if (op->experiment)
		rc = db_int(state_db(st), &experiment, DB_experiment_by_name, err, "t", op->experiment);
	if (!op->experiment && c->grants && grants_least(c->grants) < GRANT_WRITE)
		return change_refuse(c, ERR_DENIED, "a rule for all experiments needs a token for all experiments");
	if (rc > 0 && op->experiment)
		rc = change_may_write(st, c, experiment, err);
	if (op->experiment && (!rc || rc == ERR_NOENT) && !c->res.code)
		return change_refuse(c, ERR_NOENT, "there is no experiment '%.100s'", op->experiment);
	if (rc > 0)
		rc = db_int(state_db(st), &count, DB_alert_rule_count, err, "");
	if (rc <= 0)
		return rc;
	if (count >= LIMIT_alert_rules)
		return change_refuse(c, ERR_LIMIT, "there are %d rules, the maximum: delete one first",
				     LIMIT_alert_rules);
	rc = db_run(state_db(st), DB_alert_rule_add, err, "ittidi", experiment, op->rule_kind, op->metric,
		    (int64_t)op->above, op->bound, clock_wall_ms());
	snprintf(c->res.id, sizeof(c->res.id), "%" PRId64, rc ? 0 : db_last_id(state_db(st)));
	c->about.id = c->res.id;
	c->about.name = op->metric;
	c->about.experiment = op->experiment;
	c->about.detail = op->rule_kind;
	return rc;
}

static int drop_rule(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int64_t experiment;
	int rc = db_int(state_db(st), &experiment, DB_alert_rule_find, err, "i", op->id);

	rc = rc > 0 ? change_may_write(st, c, experiment, err) : rc;
	if ((!rc && !c->res.code) || rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "there is no rule %" PRId64, op->id);
	if (rc <= 0)
		return rc;
	c->about.id = arena_printf(c->in.arena, "%" PRId64, op->id);
	rc = change_about_experiment(st, c, experiment, err);
	if (!rc)
		rc = db_run(state_db(st), DB_alert_unpost, err, "i", op->id);
	return rc ? rc : db_run(state_db(st), DB_alert_rule_delete, err, "i", op->id);
}

static int fire_alert(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int rc = db_run(state_db(st), DB_alert_fire, err, "iitidtix", op->id, op->run, op->metric, op->step, op->value,
			op->text, op->time_ms, op->due_ms);

	c->res.existed = !rc && !db_changed(state_db(st));
	return rc;
}

static int claim_alert_delivery(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int rc = db_run(state_db(st), DB_alert_claim, err, "iii", op->id, op->due_ms, op->time_ms);

	c->res.existed = !rc && !db_changed(state_db(st));
	return rc;
}

static int settle_alert_delivery(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;

	return db_run(state_db(st), DB_alert_settle, err, "ixx", op->id, op->due_ms, op->time_ms);
}

const struct change_ops alert_change_rule = { .name = "alert_rule",
					      .judges = true,
					      .action = "create",
					      .object = "alert_rule",
					      .check = check_rule,
					      .copy = copy_alert,
					      .apply = make_rule };
const struct change_ops alert_change_unrule = { .name = "alert_unrule",
						.judges = true,
						.action = "delete",
						.object = "alert_rule",
						.copy = copy_alert,
						.apply = drop_rule };
const struct change_ops alert_change_fire = { .name = "alert_fire", .copy = copy_alert, .apply = fire_alert };
const struct change_ops alert_change_claim = { .name = "alert_claim",
					       .copy = copy_alert,
					       .apply = claim_alert_delivery };
const struct change_ops alert_change_settle = { .name = "alert_settle",
						.copy = copy_alert,
						.apply = settle_alert_delivery };
