/* SPDX-License-Identifier: Apache-2.0 */
/* alert.h: alert rules for runs, and the alerts they fired. A rule fires once per run: the row of the alert records
 * that, for all processes and restarts. Changes go through ingest_submit. */
#ifndef DPT_STORE_ALERT_H
#define DPT_STORE_ALERT_H

#include "tracker/base/arena.h"
#include "web/store/write/ingest.h"

#define CHANGE(name) extern const struct change_ops name;
#include "web/store/alert/changes.def"
#undef CHANGE

struct alert_op {
	const struct change_ops *kind;
	int64_t id;
	const char *experiment; /* name; NULL: all */
	const char *rule_kind;	/* metric nan failed silent done */
	const char *metric;	/* "": none, or any */
	bool above;		/* metric: fires if its max is above bound; else if its min is below */
	double bound;		/* metric: a value; silent: seconds */
	int64_t run;		/* row */
	int64_t step;
	double value; /* NaN: none */
	const char *text;
	int64_t time_ms, due_ms; /* INT64_MIN: none */
};

/* op for ingest_submit; borrows it. */
struct ingest_op alert_ingest(const struct alert_op *op);

struct alert_rule {
	int64_t id, experiment_id;
	const char *experiment; /* "": all */
	const char *kind, *metric;
	bool above;
	double bound;
	int64_t since_rev; /* rev of the store when the rule was created */
	int64_t created_ms;
};

struct alert_fired {
	int64_t id, rule;
	const char *run, *run_name, *experiment;
	const char *kind, *metric, *text;
	int64_t step;
	double value;		   /* NaN: none */
	int64_t time_ms;	   /* when it was found */
	int64_t due_ms, posted_ms; /* INT64_MIN: not to be posted; not posted yet */
	int tries;		   /* attempts to post it */
};

/* In order of creation, without those of deleted experiments. */
int alert_rules(struct store *s, struct arena *a, struct alert_rule **ret, size_t *ret_count, struct err *err);

struct alerts {
	struct alert_fired *items;
	size_t count;
};

struct alert_page {
	const char *experiment; /* NULL: all */
	int64_t before;		/* only those with a lower id; 0: all */
	size_t limit;
};

/* The newest first, without those of deleted runs. */
int alert_list(struct store *s, const struct alert_page *page, struct arena *a, struct alerts *ret, struct err *err);

/* Some of those due for posting, the longest waiting first. */
int alert_due(struct store *s, int64_t now_ms, struct arena *a, struct alerts *ret, struct err *err);

/* --- alert_watch.c: a thread that evaluates rules while a server runs, at most once a second ------------------ */

struct alert_watch;

/* post: alerts are to be posted. */
int alert_watch_start(struct alert_watch **ret, struct store *s, bool post, struct err *err);
void alert_watch_stop(struct alert_watch *w); /* before store_close; NULL is fine */

/* The evaluation without its thread. One thread at a time. */
struct alert_eval;

/* post: alerts are to be posted, by any process. If false, they are posted only if another process of the store
 * posts. */
struct alert_eval *alert_eval_new(struct store *s, bool post);

#define ALERT_EVAL_POSTING "webhook"	    /* the lease of the posting process */
void alert_eval_free(struct alert_eval *j); /* NULL is fine */

/* Evaluates the rules on runs changed since the last call, and on silent runs. Failures are retried by the next
 * call. */
int alert_eval_look(struct alert_eval *j, int64_t now_ms, struct err *err);

#endif
