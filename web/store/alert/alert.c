/* alert.c: reads rules and alerts. */
#include "web/store/alert/alert.h"

#include "web/store/base/list.h"
#include "web/store/db/readers.h"

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
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_alert_rules, err, "");
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		list = list_room(a, list, n, sizeof *list);
		rc = list ? 0 : db_no_memory(q, err);
		if (list)
			list[n++] = read_alert_rule(a, q);
	}
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
	int rc = 0;

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		all.items = list_room(a, all.items, all.count, sizeof *all.items);
		rc = all.items ? 0 : db_no_memory(q, err);
		if (all.items)
			all.items[all.count++] = read_fired_alert(a, q);
	}
	if (!rc)
		*ret = all;
	return rc;
}

int alert_list(struct store *s, const struct alert_page *page, struct arena *a, struct alerts *ret, struct err *err)
{
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_alert_list, err, "tii", page->experiment ? page->experiment : "",
		      page->before ? page->before : INT64_MAX, (int64_t)page->limit);
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
