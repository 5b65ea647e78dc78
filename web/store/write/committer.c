/* committer.c: group commit, folding, checkpoints. */
#include "web/store/write/committer.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/points/fold.h"
#include "web/store/write/apply.h"
#include "web/store/points/backlog.h"
#include "web/store/write/lease_row.h"
#include "web/store/write/queue.h"
#include "web/store/write/segment.h"
#include "web/store/write/waiter.h"
#include "web/store/write/watchers.h"

#define QUEUE_BYTES ((size_t)32 << 20)
#define FOLD_BUSY_POINTS 400000 /* fold although more waits */
#define FOLD_POINTS 200000      /* of one transaction while idle */
#define FOLD_IDLE_S 0.25
#define FOLD_AGE_S 2.0
#define FOLD_BUSY_AGE_S 5.0
#define COUNT_EVERY_S 30.0 /* what others log */
#define LOST_EVERY_S 5.0 /* under a lease that lasts longer */
#define LOST_RUNS 200 /* of one transaction */
#define CACHE_MIB 256
#define WAL_LIMIT (8 << 20)
#define FREE_PAGES_KEPT 2048 /* the log needs them again soon */
#define TRIM_S 30.0          /* memory goes back to the system so often while there is no pause */
#define SHRINK_S 1.0         /* for giving pages back when the store is closed */
#define FREE_PAGES_STEP 512  /* given back in one transaction */
#define AWAY_S 10.0          /* writes wait so long for a database that went away */
#define AGAIN_S 0.2          /* between two tries to reach it */
#define TRIES 8              /* of a group that lost to another process's */

struct committer {
	pthread_t thread;
	pthread_mutex_t lock;
	struct queue *queue;
	struct watchers *watchers;
	bool no_fold;
	pthread_mutex_t archived_lock; /* of what follows */
	int (*archived)(void *arg, const char *run, struct err *err);
	void *archived_arg;
	_Atomic bool fold_asked;
	/* the thread's own */
	bool busy_since_trim;
	struct db *db;
	struct state *state;
	char id[40];
	int wal_limit_bytes;
	char holder[128];
	double last_commit_s, oldest_log_s, next_lost_s, fold_after_s, trimmed_s;
	double away_since_s; /* 0: the database is there */
	uint64_t log_rows, log_points; /* in the log; where others write too counted now and then */
	double counted_s;
	struct backlog backlog; /* where others write too */
	/* shared, under lock */
	struct store_stats stats;
};

/* What is logged and not folded, by whichever process. */
static int count_log(struct committer *w, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(w->db, &q, DB_log_totals, err, "");

	w->counted_s = clock_mono_s();
	if (!rc && (rc = db_next(w->db, q, err)) > 0) {
		w->log_rows = (uint64_t)db_i64(q, COL_log_totals_rows);
		w->log_points = (uint64_t)db_i64(q, COL_log_totals_points);
		db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

static int open_db(struct committer *w, const struct store_opts *opts, struct err *err)
{
	const char *path = opts->db_path;
	struct db_rows *q;
	char shown[1024];
	int rc = db_open_writer(&w->db, path, err);

	if (rc)
		return rc;
	rc = count_log(w, err);
	if (!rc)
		rc = db_start(w->db, &q, DB_store_id, err, "");
	if (!rc && (rc = db_next(w->db, q, err)) > 0) {
		snprintf(w->id, sizeof w->id, "%s", db_str(q, COL_store_id_value));
		db_stop(q);
	} else if (!rc) {
		db_shown(shown, sizeof shown, path);
		rc = err_set(err, ERR_USAGE, "%s is half a store: finish the dptrack migrate that was filling it",
			     shown);
	}
	return rc < 0 ? rc : state_new(&w->state, w->db,
					     (size_t)(opts->cache_mib > 0 ? opts->cache_mib : CACHE_MIB) << 20, err);
}

/* One try to reach a database that went away; a new connection trusts nothing that was remembered. */
static int reach(struct committer *w, bool *ret_committed, struct err *err)
{
	double now_s = clock_mono_s();
	int rc = db_recover(w->db, ret_committed, err);

	state_drop(w->state);
	if (!rc)
		w->away_since_s = 0;
	else if (!w->away_since_s)
		w->away_since_s = now_s;
	return rc;
}

/* One try, where it is away: nobody may be left who writes, and finds that it is back. Who writes meanwhile still waits
 * for it as long as others do. */
static void look_for_database(struct committer *w)
{
	bool committed;

	if (!db_lost(w->db) || db_recover(w->db, &committed, NULL))
		return;
	state_drop(w->state);
	w->away_since_s = 0;
	pthread_mutex_lock(&w->lock);
	if (w->stats.write_error == ERR_BUSY) { /* it was away; perhaps nobody writes who would find that it is back */
		w->stats.write_error = 0;
		w->stats.write_error_text[0] = '\0';
	}
	pthread_mutex_unlock(&w->lock);
}

/* Who finds it away waits for it, but nobody for longer than AWAY_S. */
static int reach_in_time(struct committer *w, struct err *err)
{
	bool committed;
	int rc;

	while ((rc = reach(w, &committed, err)) && !queue_ended(w->queue) &&
	       clock_mono_s() < w->away_since_s + AWAY_S)
		clock_sleep_s(AGAIN_S);
	return rc;
}

static int begin(struct committer *w, struct err *err)
{
	int rc = db_lost(w->db) ? reach_in_time(w, err) : db_still_there(w->db, err);

	state_begin(w->state);
	return rc ? rc : db_run(w->db, DB_begin, err, "");
}

/* The connection broke while committing: nobody is told anything until it is known whether it was done. */
static int ask_outcome(struct committer *w, struct err *err)
{
	bool committed = false;

	while (reach(w, &committed, err)) {
		if (queue_ended(w->queue) && clock_mono_s() > w->away_since_s + AWAY_S)
			return err->code;
		clock_sleep_s(AGAIN_S);
	}
	return committed ? 0 : err_set(err, ERR_BUSY, "the database went away; nothing of this was stored");
}

/* Commits or, when rc says that something failed (or the commit does), undoes everything. */
static int finish(struct committer *w, int rc, struct err *err)
{
	bool committing = !rc;

	if (!rc)
		rc = db_run(w->db, DB_commit, err, "");
	if (rc && committing && db_lost(w->db))
		rc = ask_outcome(w, err);
	if (rc) {
		if (db_in_transaction(w->db))
			db_run(w->db, DB_rollback, NULL, "");
		state_drop(w->state);
	}
	return rc;
}

/* rev: of the last change in it; 0: there was none that others want to hear of. */
static void note_commit(struct committer *w, int rc, const struct err *err, uint64_t rev, uint64_t jobs)
{
	bool news;

	pthread_mutex_lock(&w->lock);
	news = !rc && rev;
	/* A refusal is the client's business. */
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
	w->stats.log_rows = w->log_rows;
	w->stats.log_points = w->log_points;
	pthread_mutex_unlock(&w->lock);
	if (news)
		watchers_tell(w->watchers, rev);
}

/* Counted before anybody is told, so that who was told finds himself counted. */
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

static void answer(struct committer *w, struct queue_job *jobs)
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

static uint64_t less(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

/* The runs that the group names. */
static int lock_runs(struct committer *w, const struct queue_job *jobs, struct err *err)
{
	const struct queue_job *j;
	const char **uuids;
	size_t n = 0;
	int rc;

	if (!db_shared(w->db))
		return 0;
	for (j = jobs; j; j = j->next)
		n++;
	uuids = calloc(n, sizeof *uuids);
	if (!uuids)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	for (j = jobs, n = 0; j; j = j->next)
		uuids[n++] = j->change.op.run;
	rc = state_lock(w->state, uuids, n, err);
	free(uuids);
	return rc;
}

static int ask_for_points(struct committer *w, const char *run, struct err *err)
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

/* Points come to rows: an operation on an archived run waits in the queue until its points are rows again, or is
 * refused. */
static int want_points(struct committer *w, struct queue_job *j, struct err *err)
{
	struct change *c = &j->change;
	struct err why = ERR_INIT;
	struct state_run *r;
	int rc;

	if (!change_wants_points(c))
		return 0;
	rc = state_run(w->state, c->op.run, &r, &why);
	if (rc == ERR_NOENT || rc == ERR_GONE || (!rc && !r->archived))
		return 0;
	if (rc) {
		*err = why;
		return rc;
	}
	j->held = queue_hold(w->queue, c->op.run);
	if (!j->held)
		return change_refuse(c, ERR_BUSY, "too many archived runs are written to at once");
	rc = ask_for_points(w, c->op.run, &why);
	if (!rc)
		return 0;
	j->held = false;
	queue_release(w->queue, c->op.run);
	return change_refuse(c, rc, "%s", why.text);
}

static int commit_group(struct committer *w, struct queue_job *jobs, struct err *err)
{
	uint64_t rev = 0, rows = 0, points = 0, count = 0, rows_gone = 0, points_gone = 0;
	struct queue_job *j;
	int rc;

	for (j = jobs; j; j = j->next)
		j->held = false;
	rc = begin(w, err);
	if (!rc)
		rc = lock_runs(w, jobs, err);
	for (j = jobs; j && !rc; j = j->next) {
		struct change *c = &j->change;

		rc = want_points(w, j, err);
		if (!rc && !j->held && !c->res.code)
			rc = c->op.kind->apply(w->state, c, err);
		rows += c->res.accepted && !c->res.existed ? apply_log_rows(&c->in) : 0;
		points += c->res.existed ? 0 : c->res.accepted;
		rows_gone += c->log_rows_gone;
		points_gone += c->log_points_gone;
		count++;
	}
	if (!rc)
		rc = state_flush(w->state, &rev, err);
	rc = finish(w, rc, err);
	if (!rc) {
		if (!w->log_points && points)
			w->oldest_log_s = clock_mono_s();
		w->log_rows = less(w->log_rows + rows, rows_gone);
		w->log_points = less(w->log_points + points, points_gone);
	}
	note_commit(w, rc, err, rev, count);
	return rc;
}

static void fail_all(struct queue_job *jobs, int rc, const struct err *err)
{
	for (; jobs; jobs = jobs->next) {
		jobs->change.res = (struct ingest_result){ .code = rc, .err = *err };
		jobs->change.res.err.code = rc;
	}
}

static void make_new(struct queue_job *jobs)
{
	for (; jobs; jobs = jobs->next) {
		memset(&jobs->change.res, 0, sizeof jobs->change.res);
		jobs->change.log_rows_gone = jobs->change.log_points_gone = 0;
	}
}

/* Another process may have made the same row, or won a deadlock: then the group is undone, and good the next time. */
static int commit_or_again(struct committer *w, struct queue_job *jobs, struct err *err)
{
	int tries, rc = commit_group(w, jobs, err);

	for (tries = 1; rc == ERR_BUSY && db_shared(w->db) && !w->away_since_s && tries < TRIES; tries++) {
		make_new(jobs);
		rc = commit_group(w, jobs, err);
	}
	return rc;
}

/* One bad operation must not take its neighbours down: a failed group is tried again one by one. A refused disk fails
 * them all at once. */
static void commit_jobs(struct committer *w, struct queue_job *jobs)
{
	struct err err = ERR_INIT;
	struct queue_job *j, *next;
	int rc = commit_or_again(w, jobs, &err);

	w->last_commit_s = clock_mono_s();
	w->busy_since_trim = true;
	if (rc && (!jobs->next || rc == ERR_NOSPC || rc == ERR_IO || w->away_since_s)) {
		fail_all(jobs, rc, &err);
	} else if (rc) {
		for (j = jobs; j; j = next) {
			next = j->next;
			j->next = NULL;
			make_new(j);
			commit_jobs(w, j);
		}
		return;
	}
	answer(w, jobs);
}

static void mark_alerted(struct committer *w, const struct fold_result *f)
{
	struct state_run *r;
	size_t i;

	for (i = 0; i < f->alerted_count; i++)
		if (!state_run_by_id(w->state, f->alerted[i], &r, NULL))
			state_mark(w->state, r, true);
}

/* 1: folding is ours as long as this transaction lasts; 0: another process is at it. */
static int fold_is_ours(struct committer *w, struct err *err)
{
	int64_t mine = 0;
	int rc = db_int(w->db, &mine, DB_fold_mine, err, "");

	return rc < 0 ? rc : mine != 0;
}

static int expire(struct committer *w, struct err *err)
{
	return db_run(w->db, DB_idempotency_expire, err, "i", clock_wall_ms() - APPLY_IDEMPOTENCY_MS);
}

static int fold(struct committer *w, uint64_t max_points)
{
	struct fold_bound bound = { .points = max_points };
	struct err err = ERR_INIT;
	struct fold_result f = { 0 };
	uint64_t rev = 0;
	int rc = begin(w, &err), ours = 1;

	bound.last_row = atomic_load(&w->fold_asked) ? INT64_MAX : backlog_bound(&w->backlog, clock_mono_s());
	bound.run_count = state_full(w->state, &bound.runs);
	if (!rc && db_shared(w->db) && (ours = fold_is_ours(w, &err)) < 0)
		rc = ours;
	if (!rc && ours)
		rc = fold_some(w->db, &bound, &f, &err);
	if (!rc && !db_shared(w->db))
		rc = expire(w, &err);
	if (!rc) {
		mark_alerted(w, &f);
		rc = state_flush(w->state, &rev, &err);
	}
	rc = finish(w, rc, &err);
	if (!rc) {
		w->log_rows = less(w->log_rows, f.rows);
		w->log_points = less(w->log_points, f.points);
		w->oldest_log_s = clock_mono_s();
	}
	if (!rc && ours)
		state_folded(w->state);
	w->backlog.looked_s = 0;
	if (rc || !ours)
		w->fold_after_s = clock_mono_s() + (rc ? 5 : 1);
	if (!rc && ours && !f.rows && db_shared(w->db))
		w->fold_after_s = clock_mono_s() + 0.1; /* its runs are being written to */
	note_commit(w, rc, &err, rev, 0);
	free(f.alerted);
	return rc;
}

/* Some at a time: after a cut of the power there may be thousands. */
static int lose(struct committer *w, struct err *err)
{
	int64_t before = clock_wall_ms() - SEGMENT_LOST_MS, ids[LOST_RUNS], ours;
	struct state_run *r;
	struct db_rows *q;
	size_t n = 0, i;
	int rc = db_start(w->db, &q, DB_run_lost, err, "i", before);

	while (!rc && n < LOST_RUNS && (rc = db_next(w->db, q, err)) > 0) {
		ids[n++] = db_i64(q, COL_run_lost_id);
		rc = 0;
	}
	if (n == LOST_RUNS) {
		db_stop(q);
		w->next_lost_s = clock_mono_s();
	}
	for (i = 0; i < n && rc >= 0; i++) {
		rc = db_int(w->db, &ours, DB_run_has_journal, err, "i", ids[i]);
		/* under its lock it may turn out to have spoken to another process meanwhile */
		if (rc >= 0 && !(state_run_by_id(w->state, ids[i], &r, err)) && r->last_ms < before &&
		    !strcmp(r->status, "running"))
			rc = segment_lost(w->state, r, rc ? "killed" : "finished", err);
	}
	return rc < 0 ? rc : 0;
}

/* Runs whose journals fell silent. */
static void check_lost(struct committer *w)
{
	struct err err = ERR_INIT;
	int64_t any;
	uint64_t rev = 0;
	int rc;

	w->next_lost_s = clock_mono_s() + LOST_EVERY_S;
	look_for_database(w);
	if (db_shared(w->db) && !db_lost(w->db) && clock_mono_s() >= w->counted_s + COUNT_EVERY_S)
		count_log(w, &err);
	if (lease_row_take(w->db, w->holder, "upkeep", &err) <= 0)
		return;
	if (db_shared(w->db))
		expire(w, &err);
	if (db_lost(w->db) || db_int(w->db, &any, DB_run_lost, &err, "i", clock_wall_ms() - SEGMENT_LOST_MS) <= 0)
		return;
	rc = begin(w, &err);
	if (!rc)
		rc = lose(w, &err);
	if (!rc)
		rc = state_flush(w->state, &rev, &err);
	rc = finish(w, rc, &err);
	note_commit(w, rc, &err, rev, 0);
}

/* Where others write too. */
static bool shared_due(const struct committer *w, double now)
{
	const int64_t *runs;

	return !w->no_fold && now >= w->fold_after_s &&
	       (state_full(w->state, &runs) || backlog_due(&w->backlog, now) ||
		(atomic_load(&w->fold_asked) && w->backlog.oldest));
}

static bool fold_due(const struct committer *w, double now)
{
	if (db_shared(w->db))
		return shared_due(w, now);
	if (!w->log_points || w->no_fold || now < w->fold_after_s)
		return false;
	if (atomic_load(&w->fold_asked))
		return true;
	return now - w->last_commit_s >= FOLD_IDLE_S &&
	       (w->log_points >= 4096 || now - w->oldest_log_s >= FOLD_AGE_S);
}

/* Writers that never pause must not keep the log growing, nor alerts waiting. */
static bool fold_pressing(const struct committer *w, double now)
{
	if (db_shared(w->db))
		return shared_due(w, now);
	if (!w->log_points || w->no_fold || now < w->fold_after_s)
		return false;
	return w->log_points >= FOLD_BUSY_POINTS || now - w->oldest_log_s >= FOLD_BUSY_AGE_S;
}

/* What came is folded before more comes, but who brings little does not wait for all of it. Where others write too,
 * they would go on meanwhile: some at a time will do. */
static void fold_while_pressing(struct committer *w, uint64_t points_before)
{
	struct queue_job *small;

	while (fold_pressing(w, clock_mono_s()) && !fold(w, FOLD_BUSY_POINTS) && !db_shared(w->db) &&
	       w->log_points > points_before) {
		small = queue_take_small(w->queue);
		if (small)
			commit_jobs(w, small);
	}
}

/* Seconds until something has to be done without being asked. */
static double next_due(const struct committer *w, double now)
{
	double due = w->next_lost_s, fold_at;

	if (fold_due(w, now))
		return 0.001;
	if (db_shared(w->db)) {
		if (!db_lost(w->db) && w->backlog.looked_s + BACKLOG_LOOK_S < due)
			due = w->backlog.looked_s + BACKLOG_LOOK_S;
	} else if (w->log_points && !w->no_fold) {
		fold_at = w->last_commit_s + FOLD_IDLE_S;
		if (w->log_points < 4096 && fold_at < w->oldest_log_s + FOLD_AGE_S)
			fold_at = w->oldest_log_s + FOLD_AGE_S;
		fold_at = fold_at < w->fold_after_s ? w->fold_after_s : fold_at;
		due = fold_at < due ? fold_at : due;
	}
	if ((db_wal_bytes(w->db) || w->busy_since_trim) && w->last_commit_s + 1 < due)
		due = w->last_commit_s + 1;
	return due > now + 0.001 ? due - now : 0.001;
}

static int vacuum_some(struct committer *w, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(w->db, &q, DB_vacuum_some, err, "");

	while (!rc && (rc = db_next(w->db, q, err)) > 0)
		rc = 0;
	return rc;
}

/* Every thread's share of the heap keeps what its largest request took, unless it is asked for it. */
static void trim(struct committer *w)
{
	malloc_trim(0);
	w->trimmed_s = clock_mono_s();
}

/* After a burst: free pages of the file beyond a reserve, and memory, go back to the system. */
static void give_back(struct committer *w)
{
	struct err err = ERR_INIT;
	int64_t pages = 0;

	if (db_int(w->db, &pages, DB_free_pages, &err, "") > 0 && pages > FREE_PAGES_KEPT) {
		vacuum_some(w, &err);
		w->busy_since_trim = pages > FREE_PAGES_KEPT + FREE_PAGES_STEP;
	}
	trim(w);
}

/* At the end nothing is kept back, as far as that is quick. */
static void shrink(struct committer *w)
{
	double until_s = clock_mono_s() + SHRINK_S;
	struct err err = ERR_INIT;
	int64_t pages = 0;

	while (!w->no_fold && db_int(w->db, &pages, DB_free_pages, &err, "") > 0 && pages > 0 &&
	       clock_mono_s() < until_s)
		if (vacuum_some(w, &err))
			break;
}

static void housekeep(struct committer *w)
{
	double now = clock_mono_s();

	if (fold_due(w, now)) {
		fold(w, FOLD_POINTS);
		return;
	}
	atomic_store(&w->fold_asked, false);
	if (now >= w->next_lost_s)
		check_lost(w);
	if (db_wal_bytes(w->db) && now - w->last_commit_s >= 1) {
		db_checkpoint(w->db, false);
		w->last_commit_s = now; /* readers may have held it back: try again in a second */
	}
	state_trim(w->state);
	if (w->busy_since_trim && now - w->last_commit_s >= 1 && !db_wal_bytes(w->db)) {
		w->busy_since_trim = false;
		give_back(w);
	}
}

static void run_step(struct committer *w, struct queue_job *job)
{
	struct ingest_result res = { 0 };

	look_for_database(w);
	res.code = job->step(job->step_arg, w->db, &res.err);
	job->done.fn(job->done.arg, &res);
	free(job);
}

static void *main_loop(void *arg)
{
	struct committer *w = arg;
	struct queue_job *jobs;
	uint64_t points_before;
	bool stop = false;

	while (!stop) {
		points_before = w->log_points;
		if (db_shared(w->db) && !db_lost(w->db))
			backlog_look(&w->backlog, w->db, clock_mono_s(), NULL);
		jobs = queue_take(w->queue, next_due(w, clock_mono_s()), &stop);
		if (jobs && jobs->step) {
			run_step(w, jobs);
		} else if (jobs) {
			commit_jobs(w, jobs);
			fold_while_pressing(w, points_before);
			if (db_wal_bytes(w->db) >= w->wal_limit_bytes)
				db_checkpoint(w->db, false);
			state_trim(w->state);
			if (clock_mono_s() >= w->trimmed_s + TRIM_S)
				trim(w);
			if (clock_mono_s() >= w->next_lost_s)
				check_lost(w);
		} else if (!stop) {
			housekeep(w);
		}
	}
	/* In a database others go on with it, or whoever opens it next. */
	while (w->log_points && !w->no_fold && !db_shared(w->db) && !fold(w, FOLD_BUSY_POINTS))
		;
	shrink(w);
	db_checkpoint(w->db, true);
	return NULL;
}

static void committer_free(struct committer *w)
{
	state_free(w->state);
	db_close(w->db);
	queue_free(w->queue);
	watchers_free(w->watchers);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->archived_lock);
	free(w);
}

/* Of one word, and never another's, even of a machine that gives process numbers anew. */
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
		return err_set(err, ERR_NOMEM, "store: out of memory");
	w->no_fold = opts->no_fold;
	w->wal_limit_bytes = opts->wal_limit_bytes > 0 ? opts->wal_limit_bytes : WAL_LIMIT;
	w->last_commit_s = w->oldest_log_s = clock_mono_s();
	w->next_lost_s = w->last_commit_s + 1;
	w->trimmed_s = w->last_commit_s;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->archived_lock, NULL);
	name_holder(w);
	w->queue = queue_new(opts->queue_bytes ? opts->queue_bytes : QUEUE_BYTES);
	w->watchers = watchers_new();
	rc = w->queue && w->watchers ? open_db(w, opts, err) : err_set(err, ERR_NOMEM, "store: out of memory");
	if (!rc && pthread_create(&w->thread, NULL, main_loop, w))
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
	atomic_store(&w->fold_asked, true);
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
		return err_set(err, ERR_NOMEM, "store: out of memory");
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
