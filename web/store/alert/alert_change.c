/* alert_change.c: adding and deleting rules, and storing, claiming and posting alerts, as kinds of changes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/event/event.h"
#include "web/store/alert/alert.h"
#include "web/store/base/no_memory.h"
#include "web/store/write/change.h"

static bool is_alert_kind(const char *kind)
{
	static const char *const kinds[] = { "metric", "nan", "failed", "silent", "done" };
	size_t i;

	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
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

static int copy_alert(struct change *c, const struct ingest_op *op, struct err *err)
{
	const struct alert_op *from = op->more;
	struct arena *a = c->in.arena;
	struct alert_op *to = arena_alloc(a, sizeof *to);
	bool failed = !to;

	if (to) {
		*to = *from;
		to->experiment = change_dup(a, from->experiment, &failed);
		to->rule_kind = change_dup(a, from->rule_kind, &failed);
		to->metric = change_dup(a, from->metric, &failed);
		to->text = change_dup(a, from->text, &failed);
	}
	c->op = (struct ingest_op){ .kind = op->kind, .more = to };
	return failed ? no_memory(err) : 0;
}

struct ingest_op alert_ingest(const struct alert_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .more = op };
}

static int make_rule(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int64_t experiment = -1, count = 0;
	int rc = 1;

	if (op->experiment)
		rc = db_int(state_db(st), &experiment, DB_experiment_by_name, err, "t", op->experiment);
	if (!rc)
		return change_refuse(c, ERR_NOENT, "there is no experiment '%.100s'", op->experiment);
	if (rc > 0)
		rc = db_int(state_db(st), &count, DB_alert_rule_count, err, "");
	if (rc < 0)
		return rc;
	if (count >= LIMIT_alert_rules)
		return change_refuse(c, ERR_LIMIT, "there are %d rules, the maximum: delete one first",
				     LIMIT_alert_rules);
	rc = db_run(state_db(st), DB_alert_rule_add, err, "ittidi", experiment, op->rule_kind, op->metric,
		    (int64_t)op->above, op->bound, clock_wall_ms());
	snprintf(c->res.id, sizeof c->res.id, "%" PRId64, rc ? 0 : db_last_id(state_db(st)));
	return rc;
}

static int drop_rule(struct state *st, struct change *c, struct err *err)
{
	const struct alert_op *op = c->op.more;
	int64_t id;
	int rc = db_int(state_db(st), &id, DB_alert_rule_find, err, "i", op->id);

	if (rc <= 0)
		return rc ? rc : change_refuse(c, ERR_NOENT, "there is no rule %" PRId64, op->id);
	rc = db_run(state_db(st), DB_alert_unpost, err, "i", id);
	return rc ? rc : db_run(state_db(st), DB_alert_rule_delete, err, "i", id);
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

const struct change_ops alert_change_rule = {
	.name = "alert_rule", .check = check_rule, .copy = copy_alert, .apply = make_rule
};
const struct change_ops alert_change_unrule = { .name = "alert_unrule", .copy = copy_alert, .apply = drop_rule };
const struct change_ops alert_change_fire = { .name = "alert_fire", .copy = copy_alert, .apply = fire_alert };
const struct change_ops alert_change_claim = { .name = "alert_claim",
					       .copy = copy_alert,
					       .apply = claim_alert_delivery };
const struct change_ops alert_change_settle = { .name = "alert_settle",
						.copy = copy_alert,
						.apply = settle_alert_delivery };
