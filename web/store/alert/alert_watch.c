/* SPDX-License-Identifier: Apache-2.0 */
/* alert_watch.c: evaluates rules after commits, and periodically for silent runs. */

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/alert/alert.h"
#include "web/store/db/db.h"
#include "web/store/store.h"
#include "web/store/write/lease.h"

/* --- evaluation ----------------------------------------------------------------------------------------------- */

/* Each kind of rule is one query over changed runs. How far a rule was evaluated is kept in memory only:
 * a new process starts from the creation of the rule, and rows of alerts prevent duplicates. */

#define POSTER_AWAY_MS 600000 /* the posting process may be restarting */
#define ALERT_FOUND_MAX 500   /* most results of a query; it is run again then */

struct alert_eval {
	struct store *s;
	bool post, posted; /* post: by this process; posted: by any process at the last look */
	struct map *seen;  /* rule id -> int64 rev evaluated so far */
};

struct rule_match {
	int64_t run, step;
	double value;
	const char *word; /* the metric, or the status */
};

struct alert_eval *alert_eval_new(struct store *s, bool post)
{
	struct alert_eval *j = mem_zalloc(sizeof(*j));

	*j = (struct alert_eval){ .s = s, .post = post, .seen = map_new(sizeof(int64_t)) };
	return j;
}

void alert_eval_free(struct alert_eval *j)
{
	if (!j)
		return;
	map_free(j->seen);
	free(j);
}

/* Starts the query for the rule's kind. */
static int start_rule_query(struct db *d, const struct alert_rule *r, int64_t rev, int64_t now_ms, struct db_rows **ret)
{
	int64_t silence_ms = (int64_t)(r->bound * 1000);
	bool done;

	if (!strcmp(r->kind, "metric"))
		return db_start(d, ret, DB_alert_by_metric, NULL, "iiitid", rev, r->experiment_id, r->id, r->metric,
				(int64_t)r->above, r->bound);
	if (!strcmp(r->kind, "nan"))
		return db_start(d, ret, DB_alert_by_nan, NULL, "iiit", rev, r->experiment_id, r->id, r->metric);
	if (!strcmp(r->kind, "silent")) /* not for runs that were silent when the rule was created */
		return db_start(d, ret, DB_alert_by_silence, NULL, "iiii", r->created_ms - silence_ms, r->experiment_id,
				r->id, now_ms - silence_ms);
	done = !strcmp(r->kind, "done");
	return db_start(d, ret, DB_alert_by_status, NULL, "iiitt", rev, r->experiment_id, r->id,
			done ? "finished" : "failed", done ? "finished" : "killed");
}

static const char *describe_alert(struct arena *a, const struct alert_rule *r, const struct rule_match *f)
{
	if (!strcmp(r->kind, "metric"))
		return arena_printf(a, "%s is %.6g at step %lld, %s %.6g", f->word, f->value, (long long)f->step,
				    r->above ? "above" : "below", r->bound);
	if (!strcmp(r->kind, "nan"))
		return arena_printf(a, "%s is not finite at step %lld", f->word, (long long)f->step);
	if (!strcmp(r->kind, "silent"))
		return arena_printf(a, "no record for %.6g s", r->bound);
	return arena_printf(a, "the run %s", strcmp(f->word, "killed") ? f->word : "was killed");
}

static int store_fired_alert(struct alert_eval *j, const struct alert_rule *r, const struct rule_match *f,
			     int64_t now_ms, struct arena *a)
{
	bool of_metric = !strcmp(r->kind, "metric") || !strcmp(r->kind, "nan");
	const struct alert_op op = { .kind = &alert_change_fire,
				     .id = r->id,
				     .run = f->run,
				     .step = f->step,
				     .value = f->value,
				     .metric = of_metric ? f->word : "",
				     .text = describe_alert(a, r, f),
				     .time_ms = now_ms,
				     .due_ms = j->posted ? now_ms : INT64_MIN };
	const struct ingest_op ingest = alert_ingest(&op);
	struct ingest_result res;

	return ingest_submit(j->s, &ingest, NULL, &res, NULL);
}

/* The runs that match a rule, and the largest rev of a run in the snapshot. */
struct rule_finding {
	struct rule_match *items;
	size_t count;
	int64_t rev;
};

/* Runs the query of a rule in a snapshot. */
static int find_matching_runs(struct alert_eval *j, const struct alert_rule *r, int64_t now_ms, struct arena *a,
			      struct rule_finding *ret)
{
	const int64_t *seen = map_get(j->seen, &r->id, sizeof(r->id));
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take(j->s, &d, NULL);

	if (rc)
		return rc;
	rc = db_int(d, &ret->rev, DB_alert_rev, NULL, "") < 0 ? ERR_IO : 0;
	if (!rc)
		rc = start_rule_query(d, r, seen ? *seen : r->since_rev, now_ms, &q);
	while (rc >= 0 && (rc = db_next(d, q, NULL)) > 0)
		list_push(a, &ret->items, &ret->count,
			  (struct rule_match){ db_i64(q, COL_alert_by_status_run_id),
					       db_i64(q, COL_alert_by_status_step),
					       db_f64(q, COL_alert_by_status_value),
					       db_text(a, q, COL_alert_by_status_word) });
	readers_give(j->s, d);
	return rc;
}

static int judge_alert_rule(struct alert_eval *j, const struct alert_rule *r, int64_t now_ms, struct arena *a)
{
	struct rule_finding f = { 0 };
	int64_t *seen;
	int rc = find_matching_runs(j, r, now_ms, a, &f);
	size_t i;

	for (i = 0; i < f.count && !rc; i++)
		if (!i || f.items[i].run != f.items[i - 1].run)
			rc = store_fired_alert(j, r, &f.items[i], now_ms, a);
	if (rc || f.count == ALERT_FOUND_MAX)
		return rc;
	seen = map_put(j->seen, &r->id, sizeof(r->id));
	if (*seen < f.rev)
		*seen = f.rev;
	return 0;
}

int alert_eval_look(struct alert_eval *j, int64_t now_ms, struct err *err)
{
	struct arena *a = arena_new();
	struct alert_rule *rules;
	size_t n = 0, i;
	int rc = alert_rules(j->s, a, &rules, &n, err);

	j->posted = j->post || lease_is_held(j->s, ALERT_EVAL_POSTING, POSTER_AWAY_MS, NULL) > 0;
	for (i = 0; i < n && !rc; i++)
		if (judge_alert_rule(j, &rules[i], now_ms, a))
			rc = err_set(err, ERR_IO, "rule %lld could not be evaluated", (long long)rules[i].id);
	arena_free(a);
	return rc;
}

#define PAUSE_S 1.0   /* between two evaluations */
#define SILENCE_S 5.0 /* time without a commit */

struct alert_watch {
	struct store *s;
	struct alert_eval *judge;
	struct lease lease; /* in a team one process evaluates */
	bool post;
	struct lease posting; /* shows the evaluating process that alerts are posted */
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool news, stop;
	int handle; /* handle from store_watch */
};

static void wake_alert_watch(void *arg, uint64_t rev)
{
	struct alert_watch *w = arg;

	(void)rev;
	pthread_mutex_lock(&w->lock);
	w->news = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* False: stop. */
static bool wait_for_commits(struct alert_watch *w)
{
	double now = clock_mono_s(), soonest = now + PAUSE_S, latest = now + SILENCE_S;
	bool go_on;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && cond_wait_until(&w->wake, &w->lock, w->news ? soonest : latest))
		;
	w->news = false;
	go_on = !w->stop;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void *run_alert_watch(void *arg)
{
	struct alert_watch *w = arg;

	while (wait_for_commits(w)) {
		if (w->post)
			lease_take(&w->posting, NULL);
		if (lease_take(&w->lease, NULL) > 0)
			alert_eval_look(w->judge, clock_wall_ms(), NULL);
	}
	lease_give(&w->lease);
	return NULL;
}

int alert_watch_start(struct alert_watch **ret, struct store *s, bool post, struct err *err)
{
	struct alert_watch *w = mem_zalloc(sizeof(*w));

	w->s = s;
	w->post = post;
	w->news = true; /* evaluates existing runs once the server has started */
	lease_init(&w->lease, s, "alerts");
	lease_init(&w->posting, s, ALERT_EVAL_POSTING);
	w->judge = alert_eval_new(s, post);
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->wake);
	w->handle = store_watch(s, wake_alert_watch, w);
	if (w->handle >= 0 && !thread_start(&w->thread, run_alert_watch, w)) {
		*ret = w;
		return 0;
	}
	if (w->handle >= 0)
		store_unwatch(s, w->handle);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	alert_eval_free(w->judge);
	free(w);
	return err_set(err, ERR_IO, "alerts: cannot start a thread");
}

void alert_watch_stop(struct alert_watch *w)
{
	if (!w)
		return;
	store_unwatch(w->s, w->handle);
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	alert_eval_free(w->judge);
	free(w);
}
