/* committer.c: the loop of the writer's thread, and commits of groups. */
#include "web/store/write/committer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/base/no_memory.h"
#include "web/store/state/state.h"
#include "web/store/write/apply.h"
#include "web/store/write/folding.h"
#include "web/store/write/lease_row.h"
#include "web/store/write/stale_runs.h"
#include "web/store/write/queue.h"
#include "web/store/write/trim.h"
#include "web/store/write/transaction.h"
#include "web/store/write/waiter.h"
#include "web/store/write/watchers.h"

#define QUEUE_BYTES ((size_t)32 << 20)
#define LOST_EVERY_S 5.0 /* the lease lasts longer */
#define WAL_LIMIT (8 << 20)
#define TRIES 8 /* of a group that conflicts with another process */

struct committer {
	pthread_t thread;
	pthread_mutex_t lock;
	struct queue *queue;
	struct watchers *watchers;
	pthread_mutex_t archived_lock; /* guards the next two */
	int (*archived)(void *arg, const char *run, struct err *err);
	void *archived_arg;
	/* used by the thread only */
	struct transaction tx;
	struct folding folding;
	struct trim spare;
	char id[40];
	int wal_limit_bytes;
	char holder[128];
	double last_commit_s, next_lost_s;
	/* guarded by lock */
	struct store_stats stats;
};

static size_t cache_bytes(const struct store_opts *o)
{
	return (size_t)(o->cache_mib > 0 ? o->cache_mib : STORE_CACHE_MIB) << 20;
}

static int open_db(struct committer *w, const struct store_opts *opts, struct err *err)
{
	const char *path = opts->db_path;
	struct db_rows *q;
	char shown[1024];
	int rc = db_open_writer(&w->tx.db, path, err);

	if (rc)
		return rc;
	rc = folding_count(&w->folding, err);
	if (!rc)
		rc = db_start(w->tx.db, &q, DB_store_id, err, "");
	if (!rc && (rc = db_next(w->tx.db, q, err)) > 0) {
		snprintf(w->id, sizeof w->id, "%s", db_str(q, COL_store_id_value));
		db_stop(q);
	} else if (!rc) {
		db_shown(shown, sizeof shown, path);
		rc = err_set(err, ERR_USAGE, "%s is half a store: finish the dptrack migrate that was filling it",
			     shown);
	}
	return rc < 0 ? rc : state_new(&w->tx.state, w->tx.db, cache_bytes(opts), err);
}

/* Without writers, nothing else would notice that the database is back. */
static void look_for_database(struct committer *w)
{
	if (!transaction_look(&w->tx))
		return;
	pthread_mutex_lock(&w->lock);
	if (w->stats.write_error == ERR_BUSY) { /* the database was away */
		w->stats.write_error = 0;
		w->stats.write_error_text[0] = '\0';
	}
	pthread_mutex_unlock(&w->lock);
}

/* Updates the statistics after a commit and calls the watchers. rev: revision of its last change; 0: nothing that
 * watchers need to see. */
static void note_commit(struct committer *w, int rc, const struct err *err, uint64_t rev, uint64_t jobs)
{
	bool news;

	pthread_mutex_lock(&w->lock);
	news = !rc && rev;
	/* A refusal is the client's fault. */
	w->stats.write_error = rc == ERR_LIMIT ? w->stats.write_error : rc;
	if (rc == ERR_LIMIT) {
		news = false;
	} else if (rc) {
		snprintf(w->stats.write_error_text, sizeof w->stats.write_error_text, "%.255s", err->text);
	} else {
		w->stats.commits++;
		w->stats.batches += jobs;
		w->stats.write_error_text[0] = '\0';
	}
	w->stats.log_rows = w->folding.rows;
	w->stats.log_points = w->folding.points;
	pthread_mutex_unlock(&w->lock);
	if (news)
		watchers_tell(w->watchers, rev);
}

/* Updates the counters before replying, so that a client sees its own write in them. */
static void count_answers(struct committer *w, const struct queue_job *jobs)
{
	pthread_mutex_lock(&w->lock);
	for (; jobs; jobs = jobs->next) {
		if (jobs->held)
			continue;
		w->stats.points += jobs->change.res.existed ? 0 : jobs->change.res.accepted;
		w->stats.records_bad += jobs->change.res.rejected;
	}
	pthread_mutex_unlock(&w->lock);
}

static void answer_jobs(struct committer *w, struct queue_job *jobs)
{
	struct queue_job *next;

	count_answers(w, jobs);
	for (; jobs; jobs = next) {
		const struct change_ops *kind = jobs->change.op.kind;

		next = jobs->next;
		if (jobs->held) {
			memset(&jobs->change.res, 0, sizeof jobs->change.res);
			queue_give_back(w->queue, jobs);
			continue;
		}
		if (kind->settled)
			kind->settled(jobs->change.store);
		jobs->done.fn(jobs->done.arg, &jobs->change.res);
		intake_done(&jobs->change.in);
		free(jobs);
	}
}

/* Locks the runs of the group, and draws numbers for those that it adds. */
static int lock_group_runs(struct committer *w, const struct queue_job *jobs, struct err *err)
{
	const struct queue_job *j;
	const char **uuids;
	size_t n = 0, made = 0;
	int rc;

	if (!db_shared(w->tx.db))
		return 0;
	for (j = jobs; j; j = j->next) {
		n++;
		made += j->change.op.kind->makes_run;
	}
	uuids = calloc(n, sizeof *uuids);
	if (!uuids)
		return no_memory(err);
	for (j = jobs, n = 0; j; j = j->next)
		uuids[n++] = j->change.op.run;
	rc = state_expect_runs(w->tx.state, made, err);
	if (!rc)
		rc = state_lock(w->tx.state, uuids, n, err);
	free(uuids);
	return rc;
}

static int request_restore(struct committer *w, const char *run, struct err *err)
{
	int rc = ERR_BUSY;

	pthread_mutex_lock(&w->archived_lock);
	if (!w->archived || queue_ended(w->queue))
		err_set(err, rc, "the points of run %s lie in an archive; no more can be added now", run);
	else
		rc = w->archived(w->archived_arg, run, err);
	pthread_mutex_unlock(&w->archived_lock);
	return rc;
}

/* Holds an operation that adds points to an archived run in the queue until its points are rows again, or refuses
 * it. */
static int hold_until_restored(struct committer *w, struct queue_job *j, struct err *err)
{
	struct change *c = &j->change;
	struct err why = ERR_INIT;
	struct state_run *r;
	int rc;

	if (!change_wants_points(c))
		return 0;
	rc = state_run(w->tx.state, c->op.run, &r, &why);
	if (rc == ERR_NOENT || rc == ERR_GONE || (!rc && !r->archived))
		return 0;
	if (rc) {
		*err = why;
		return rc;
	}
	j->held = queue_hold(w->queue, c->op.run);
	if (!j->held)
		return change_refuse(c, ERR_BUSY, "too many archived runs are written to at once");
	rc = request_restore(w, c->op.run, &why);
	if (!rc)
		return 0;
	j->held = false;
	queue_release(w->queue, c->op.run);
	return change_refuse(c, rc, "%s", why.text);
}

/* Stores a group in one transaction: locks its runs, applies each change and flushes the state. */
static int commit_group(struct committer *w, struct queue_job *jobs, struct err *err)
{
	struct folding_logged logged = { 0 };
	uint64_t rev = 0, count = 0;
	struct queue_job *j;
	int rc;

	for (j = jobs; j; j = j->next)
		j->held = false;
	rc = transaction_begin(&w->tx, err);
	if (!rc)
		rc = lock_group_runs(w, jobs, err);
	for (j = jobs; j && !rc; j = j->next) {
		struct change *c = &j->change;

		rc = hold_until_restored(w, j, err);
		if (!rc && !j->held && !c->res.code)
			rc = c->op.kind->apply(w->tx.state, c, err);
		logged.rows += c->res.accepted && !c->res.existed ? apply_log_rows(&c->in) : 0;
		logged.points += c->res.existed ? 0 : c->res.accepted;
		logged.rows_gone += c->log_rows_gone;
		logged.points_gone += c->log_points_gone;
		count++;
	}
	if (!rc)
		rc = state_flush(w->tx.state, &rev, err);
	rc = transaction_finish(&w->tx, rc, err);
	if (!rc)
		folding_note(&w->folding, &logged);
	note_commit(w, rc, err, rev, count);
	return rc;
}

static void fail_jobs(struct queue_job *jobs, int rc, const struct err *err)
{
	for (; jobs; jobs = jobs->next) {
		jobs->change.res = (struct ingest_result){ .code = rc, .err = *err };
		jobs->change.res.err.code = rc;
	}
}

static void reset_results(struct queue_job *jobs)
{
	for (; jobs; jobs = jobs->next) {
		memset(&jobs->change.res, 0, sizeof jobs->change.res);
		jobs->change.log_rows_gone = jobs->change.log_points_gone = 0;
	}
}

/* Commits a group. Another process may have added the same row or won a deadlock; the next try then succeeds. */
static int commit_or_again(struct committer *w, struct queue_job *jobs, struct err *err)
{
	int tries, rc = commit_group(w, jobs, err);

	for (tries = 1; rc == ERR_BUSY && db_shared(w->tx.db) && !w->tx.away_since_s && tries < TRIES; tries++) {
		reset_results(jobs);
		rc = commit_group(w, jobs, err);
	}
	return rc;
}

/* Commits and answers a group. One bad operation must not fail the others: a failed group is retried one by one. A
 * disk error fails them all at once. */
static void commit_jobs(struct committer *w, struct queue_job *jobs)
{
	struct err err = ERR_INIT;
	struct queue_job *j, *next;
	int rc = commit_or_again(w, jobs, &err);

	w->last_commit_s = clock_mono_s();
	w->spare.some = true;
	if (rc && (!jobs->next || rc == ERR_NOSPC || rc == ERR_IO || w->tx.away_since_s)) {
		fail_jobs(jobs, rc, &err);
	} else if (rc) {
		for (j = jobs; j; j = next) {
			next = j->next;
			j->next = NULL;
			reset_results(j);
			commit_jobs(w, j);
		}
		return;
	}
	answer_jobs(w, jobs);
}

static int fold_some_points(struct committer *w, uint64_t max_points)
{
	struct err err = ERR_INIT;
	uint64_t rev;
	int rc = folding_some(&w->folding, max_points, &rev, &err);

	note_commit(w, rc, &err, rev, 0);
	return rc;
}

/* Periodic work: reconnects, marks stale runs, deletes expired keys. */
static void do_periodic_work(struct committer *w)
{
	struct err err = ERR_INIT;
	uint64_t rev;
	bool more;
	int rc;

	w->next_lost_s = clock_mono_s() + LOST_EVERY_S;
	look_for_database(w);
	folding_recount(&w->folding);
	if (lease_row_take(w->tx.db, w->holder, "upkeep", &err) <= 0)
		return;
	if (db_shared(w->tx.db))
		apply_expire(w->tx.db, &err);
	if (db_lost(w->tx.db))
		return;
	rc = stale_runs_mark(&w->tx, &more, &rev, &err);
	if (rc)
		note_commit(w, rc < 0 ? rc : 0, &err, rev, 0);
	if (more)
		w->next_lost_s = clock_mono_s();
}

/* Folds new points before more are accepted; cheap operations do not wait for all of it. With other writers one step
 * is enough, because they continue to log. */
static void fold_while_pressing(struct committer *w, uint64_t points_before)
{
	struct queue_job *small;

	while (folding_pressing(&w->folding, clock_mono_s()) && !fold_some_points(w, FOLDING_BUSY_POINTS) &&
	       !db_shared(w->tx.db) && w->folding.points > points_before) {
		small = queue_take_small(w->queue);
		if (small)
			commit_jobs(w, small);
	}
}

/* Seconds until periodic work is due. */
static double next_due(const struct committer *w, double now)
{
	double due = w->next_lost_s, fold_at = folding_due_at(&w->folding, w->last_commit_s, now);

	due = fold_at < due ? fold_at : due;
	if ((db_wal_bytes(w->tx.db) || w->spare.some) && w->last_commit_s + 1 < due)
		due = w->last_commit_s + 1;
	return due > now + 0.001 ? due - now : 0.001;
}

static void do_idle_work(struct committer *w)
{
	double now = clock_mono_s();

	if (folding_due(&w->folding, w->last_commit_s, now)) {
		fold_some_points(w, FOLDING_POINTS);
		return;
	}
	folding_done(&w->folding);
	if (now >= w->next_lost_s)
		do_periodic_work(w);
	if (db_wal_bytes(w->tx.db) && now - w->last_commit_s >= 1) {
		db_checkpoint(w->tx.db, false);
		w->last_commit_s = now; /* readers may have blocked it: retry in a second */
	}
	state_trim(w->tx.state);
	if (w->spare.some && now - w->last_commit_s >= 1 && !db_wal_bytes(w->tx.db))
		trim_give_back(&w->spare, w->tx.db);
}

static void run_committer_step(struct committer *w, struct queue_job *job)
{
	struct ingest_result res = { 0 };

	look_for_database(w);
	res.code = job->step(job->step_arg, w->tx.db, &res.err);
	job->done.fn(job->done.arg, &res);
	free(job);
}

/* The writer's thread: takes groups and commits them until the queue ends, then folds, shrinks and checkpoints. */
static void *run_committer(void *arg)
{
	struct committer *w = arg;
	struct queue_job *jobs;
	uint64_t points_before;
	bool stop = false;

	while (!stop) {
		points_before = w->folding.points;
		folding_look(&w->folding);
		jobs = queue_take(w->queue, next_due(w, clock_mono_s()), &stop);
		if (jobs && jobs->step) {
			run_committer_step(w, jobs);
		} else if (jobs) {
			commit_jobs(w, jobs);
			fold_while_pressing(w, points_before);
			if (db_wal_bytes(w->tx.db) >= w->wal_limit_bytes)
				db_checkpoint(w->tx.db, false);
			state_trim(w->tx.state);
			trim_trim(&w->spare);
			if (clock_mono_s() >= w->next_lost_s)
				do_periodic_work(w);
		} else if (!stop) {
			do_idle_work(w);
		}
	}
	/* In a shared database other processes fold the rest, or the next one that opens it. */
	while (w->folding.points && !w->folding.never && !db_shared(w->tx.db) &&
	       !fold_some_points(w, FOLDING_BUSY_POINTS))
		;
	if (!w->folding.never)
		trim_shrink(w->tx.db);
	db_checkpoint(w->tx.db, true);
	return NULL;
}

static void committer_free(struct committer *w)
{
	state_free(w->tx.state);
	db_close(w->tx.db);
	queue_free(w->queue);
	watchers_free(w->watchers);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->archived_lock);
	free(w);
}

/* One word that is unique, even where a machine reuses process numbers. */
static void name_holder(struct committer *w)
{
	struct utsname u = { .nodename = "" };
	uint32_t drawn = 0;
	char *c;

	uname(&u);
	if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
		drawn = (uint32_t)clock_wall_ms();
	snprintf(w->holder, sizeof w->holder, "%.80s:%d:%08x", u.nodename, (int)getpid(), drawn);
	for (c = w->holder; *c; c++)
		*c = *c == ' ' ? '_' : *c;
}

int committer_start(struct committer **ret, const struct store_opts *opts, struct err *err)
{
	struct committer *w = calloc(1, sizeof *w);
	int rc;

	if (!w)
		return no_memory(err);
	w->folding.never = opts->no_fold;
	w->folding.t = &w->tx;
	w->wal_limit_bytes = opts->wal_limit_bytes > 0 ? opts->wal_limit_bytes : WAL_LIMIT;
	w->last_commit_s = w->folding.oldest_s = clock_mono_s();
	w->next_lost_s = w->last_commit_s + 1;
	w->spare.trimmed_s = w->last_commit_s;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->archived_lock, NULL);
	name_holder(w);
	w->queue = queue_new(opts->queue_bytes ? opts->queue_bytes : QUEUE_BYTES);
	w->tx.queue = w->queue;
	w->watchers = watchers_new();
	rc = w->queue && w->watchers ? open_db(w, opts, err) : no_memory(err);
	if (!rc && pthread_create(&w->thread, NULL, run_committer, w))
		rc = err_set(err, ERR_IO, "store: cannot start a thread");
	if (rc) {
		committer_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void committer_stop(struct committer *w)
{
	if (!w)
		return;
	queue_stop(w->queue);
	pthread_join(w->thread, NULL);
	committer_free(w);
}

void committer_hurry(struct committer *w)
{
	if (w)
		queue_stop(w->queue);
}

struct queue *committer_queue(struct committer *w)
{
	return w ? w->queue : NULL;
}

int committer_watch(struct committer *w, void (*fn)(void *arg, uint64_t rev), void *arg)
{
	return watchers_add(w->watchers, fn, arg);
}

void committer_tell(struct committer *w, uint64_t rev)
{
	watchers_tell(w->watchers, rev);
}

void committer_unwatch(struct committer *w, int handle)
{
	watchers_remove(w->watchers, handle);
}

void committer_on_archived(struct committer *w, int (*fn)(void *arg, const char *run, struct err *err), void *arg)
{
	pthread_mutex_lock(&w->archived_lock);
	w->archived = fn;
	w->archived_arg = arg;
	pthread_mutex_unlock(&w->archived_lock);
}

void committer_has_points(struct committer *w, const char *run)
{
	queue_release(w->queue, run);
}

void committer_fold_soon(struct committer *w)
{
	folding_ask(&w->folding);
	queue_wake(w->queue);
}

void committer_stats(struct committer *w, struct store_stats *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = w->stats;
	pthread_mutex_unlock(&w->lock);
}

const char *committer_holder(const struct committer *w)
{
	return w->holder;
}

const char *committer_store_id(const struct committer *w)
{
	return w->id;
}

int committer_step(struct committer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg, struct err *err)
{
	struct queue_job *job = calloc(1, sizeof *job);
	struct waiter done;
	int rc;

	if (!job)
		return no_memory(err);
	job->step = fn;
	job->step_arg = arg;
	job->done = waiter_init(&done);
	rc = queue_put(committer_queue(w), job, err);
	if (rc)
		free(job);
	else
		rc = waiter_wait(&done, NULL, err);
	waiter_done(&done);
	return rc;
}
