/* writer.c: group commit, folding, checkpoints. */
#include "web/store/writer.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/fold.h"
#include "web/store/segment.h"

#define MAX_WATCHERS 64
#define QUEUE_BYTES ((size_t)32 << 20)
#define GROUP_JOBS 512
#define GROUP_POINTS 200000
#define FOLD_BUSY_POINTS 400000 /* fold although more waits */
#define FOLD_POINTS 200000      /* of one transaction while idle */
#define FOLD_IDLE_S 0.25
#define FOLD_AGE_S 2.0
#define FOLD_BUSY_AGE_S 5.0
#define LOST_EVERY_S 5.0
#define WAL_LIMIT (8 << 20)
#define FREE_PAGES_KEPT 2048 /* the log needs them again soon */
#define SHRINK_S 1.0         /* for giving pages back when the store is closed */
#define FREE_PAGES_STEP 512  /* given back in one transaction */

struct watcher {
	void (*fn)(void *arg, uint64_t rev);
	void *arg;
};

struct writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, room;
	struct writer_job *head, **tail;
	size_t queued_bytes;
	bool stopping, no_fold;
	_Atomic bool fold_asked;
	/* the thread's own */
	bool busy_since_trim;
	struct db *db;
	struct state *state;
	char id[40];
	int wal_pages, wal_limit_pages;
	double last_commit_s, oldest_log_s, next_lost_s, fold_after_s;
	uint64_t log_rows, log_points;
	/* shared, under lock */
	uint64_t rev;
	struct store_stats stats;
	/* watchers have their own lock: store_unwatch waits for a running call */
	pthread_mutex_t watch_lock;
	struct watcher watchers[MAX_WATCHERS];
};

static int on_wal(void *arg, sqlite3 *h, const char *name, int pages)
{
	struct writer *w = arg;

	(void)h;
	(void)name;
	w->wal_pages = pages;
	return SQLITE_OK;
}

static int open_db(struct writer *w, const char *path, struct err *err)
{
	sqlite3_stmt *q;
	int64_t rev = 0;
	int rc = db_open_writer(&w->db, path, err);

	if (rc)
		return rc;
	sqlite3_wal_hook(db_handle(w->db), on_wal, w);
	rc = db_int(w->db, &rev, DB_rev_get, err, "");
	if (rc < 0)
		return rc;
	w->rev = (uint64_t)rev;
	rc = db_start(w->db, &q, DB_log_totals, err, "");
	if (!rc && (rc = db_next(w->db, q, err)) > 0) {
		w->log_rows = (uint64_t)sqlite3_column_int64(q, 0);
		w->log_points = (uint64_t)sqlite3_column_int64(q, 1);
		db_stop(q);
	}
	if (rc >= 0)
		rc = db_start(w->db, &q, DB_store_id, err, "");
	if (!rc && (rc = db_next(w->db, q, err)) > 0) {
		snprintf(w->id, sizeof w->id, "%s", (const char *)sqlite3_column_text(q, 0));
		db_stop(q);
	}
	return rc < 0 ? rc : state_new(&w->state, w->db, err);
}

static int begin(struct writer *w, struct err *err)
{
	return db_run(w->db, DB_begin, err, "");
}

/* Commits or, when rc says that something failed (or the commit does), undoes everything. */
static int finish(struct writer *w, int rc, struct err *err)
{
	if (!rc)
		rc = db_run(w->db, DB_commit, err, "");
	if (rc) {
		if (!sqlite3_get_autocommit(db_handle(w->db)))
			db_run(w->db, DB_rollback, NULL, "");
		state_drop(w->state);
	}
	return rc;
}

static void tell(struct writer *w, uint64_t rev)
{
	int i;

	pthread_mutex_lock(&w->watch_lock);
	for (i = 0; i < MAX_WATCHERS; i++)
		if (w->watchers[i].fn)
			w->watchers[i].fn(w->watchers[i].arg, rev);
	pthread_mutex_unlock(&w->watch_lock);
}

static void note_commit(struct writer *w, int rc, const struct err *err, uint64_t rev, uint64_t jobs)
{
	bool news;

	pthread_mutex_lock(&w->lock);
	news = !rc && rev != w->rev;
	/* A refusal is the client's business. */
	w->stats.write_error = rc == ERR_LIMIT ? w->stats.write_error : rc;
	if (rc == ERR_LIMIT) {
		news = false;
	} else if (rc) {
		snprintf(w->stats.write_error_text, sizeof w->stats.write_error_text, "%.255s", err->text);
	} else {
		w->rev = rev;
		w->stats.commits++;
		w->stats.batches += jobs;
		w->stats.write_error_text[0] = '\0';
	}
	w->stats.log_rows = w->log_rows;
	w->stats.log_points = w->log_points;
	pthread_mutex_unlock(&w->lock);
	if (news)
		tell(w, rev);
}

/* Counted before anybody is told, so that who was told finds himself counted. */
static void count_answers(struct writer *w, const struct writer_job *jobs)
{
	pthread_mutex_lock(&w->lock);
	for (; jobs; jobs = jobs->next) {
		w->stats.points += jobs->a.res.existed ? 0 : jobs->a.res.accepted;
		w->stats.records_bad += jobs->a.res.rejected;
	}
	pthread_mutex_unlock(&w->lock);
}

static void answer(struct writer *w, struct writer_job *jobs)
{
	struct writer_job *next;

	count_answers(w, jobs);
	for (; jobs; jobs = next) {
		next = jobs->next;
		jobs->done.fn(jobs->done.arg, &jobs->a.res);
		intake_done(&jobs->a.in);
		free(jobs);
	}
}

static uint64_t less(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

static int commit_group(struct writer *w, struct writer_job *jobs, struct err *err)
{
	uint64_t rev = w->rev, rows = 0, points = 0, count = 0, rows_gone = 0, points_gone = 0;
	struct writer_job *j;
	int rc = begin(w, err);

	for (j = jobs; j && !rc; j = j->next) {
		rc = apply_job(w->state, &j->a, err);
		rows += j->a.in.point_count && j->a.res.accepted && !j->a.res.existed;
		points += j->a.res.existed ? 0 : j->a.res.accepted;
		rows_gone += j->a.log_rows_gone;
		points_gone += j->a.log_points_gone;
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

static void fail_all(struct writer_job *jobs, int rc, const struct err *err)
{
	for (; jobs; jobs = jobs->next) {
		jobs->a.res = (struct ingest_result){ .code = rc, .err = *err };
		jobs->a.res.err.code = rc;
	}
}

/* One bad operation must not take its neighbours down: a failed group is tried again one by one. A refused disk fails
 * them all at once. */
static void commit_jobs(struct writer *w, struct writer_job *jobs)
{
	struct err err = ERR_INIT;
	struct writer_job *j, *next;
	int rc = commit_group(w, jobs, &err);

	w->last_commit_s = clock_mono_s();
	w->busy_since_trim = true;
	if (rc && (!jobs->next || rc == ERR_NOSPC || rc == ERR_IO)) {
		fail_all(jobs, rc, &err);
	} else if (rc) {
		for (j = jobs; j; j = next) {
			next = j->next;
			j->next = NULL;
			memset(&j->a.res, 0, sizeof j->a.res);
			j->a.log_rows_gone = j->a.log_points_gone = 0;
			commit_jobs(w, j);
		}
		return;
	}
	answer(w, jobs);
}

static void checkpoint(struct writer *w, bool everything)
{
	int log_pages = 0, done_pages = 0;

	sqlite3_wal_checkpoint_v2(db_handle(w->db), NULL, everything ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
				  &log_pages, &done_pages);
	w->wal_pages = log_pages > done_pages ? log_pages - done_pages : 0;
}

static void mark_alerted(struct writer *w, const struct fold_result *f)
{
	struct state_run *r;
	size_t i;

	for (i = 0; i < f->alerted_count; i++)
		if (!state_run_by_id(w->state, f->alerted[i], &r, NULL))
			state_mark(w->state, r, true);
}

static int fold(struct writer *w, uint64_t max_points)
{
	struct err err = ERR_INIT;
	struct fold_result f = { 0 };
	uint64_t rev = w->rev;
	int rc = begin(w, &err);

	if (!rc)
		rc = fold_some(w->db, max_points, &f, &err);
	if (!rc)
		rc = db_run(w->db, DB_idempotency_expire, &err, "i", clock_wall_ms() - APPLY_IDEMPOTENCY_MS);
	if (!rc) {
		mark_alerted(w, &f);
		rc = state_flush(w->state, &rev, &err);
	}
	rc = finish(w, rc, &err);
	if (!rc) {
		w->log_rows = less(w->log_rows, f.rows);
		w->log_points = less(w->log_points, f.points);
		w->oldest_log_s = clock_mono_s();
	} else {
		w->fold_after_s = clock_mono_s() + 5;
	}
	note_commit(w, rc, &err, rev, 0);
	free(f.alerted);
	return rc;
}

static int lose(struct writer *w, struct err *err)
{
	int64_t before = clock_wall_ms() - SEGMENT_LOST_MS, ids[200], ours;
	struct state_run *r;
	sqlite3_stmt *q;
	size_t n = 0, i;
	int rc = db_start(w->db, &q, DB_run_lost, err, "i", before);

	while (!rc && n < 200 && (rc = db_next(w->db, q, err)) > 0) {
		ids[n++] = sqlite3_column_int64(q, 0);
		rc = 0;
	}
	if (n == 200)
		db_stop(q);
	for (i = 0; i < n && rc >= 0; i++) {
		rc = db_int(w->db, &ours, DB_run_has_journal, err, "i", ids[i]);
		if (rc >= 0 && !(state_run_by_id(w->state, ids[i], &r, err)))
			rc = segment_lost(w->state, r, rc ? "killed" : "finished", err);
	}
	return rc < 0 ? rc : 0;
}

/* Runs whose journals fell silent. */
static void check_lost(struct writer *w)
{
	struct err err = ERR_INIT;
	int64_t any;
	uint64_t rev = w->rev;
	int rc;

	w->next_lost_s = clock_mono_s() + LOST_EVERY_S;
	if (db_int(w->db, &any, DB_run_lost, &err, "i", clock_wall_ms() - SEGMENT_LOST_MS) <= 0)
		return;
	rc = begin(w, &err);
	if (!rc)
		rc = lose(w, &err);
	if (!rc)
		rc = state_flush(w->state, &rev, &err);
	rc = finish(w, rc, &err);
	note_commit(w, rc, &err, rev, 0);
}

static bool fold_due(const struct writer *w, double now)
{
	if (!w->log_points || w->no_fold || now < w->fold_after_s)
		return false;
	if (atomic_load(&w->fold_asked))
		return true;
	return now - w->last_commit_s >= FOLD_IDLE_S &&
	       (w->log_points >= 4096 || now - w->oldest_log_s >= FOLD_AGE_S);
}

/* Writers that never pause must not keep the log growing, nor alerts waiting. */
static bool fold_pressing(const struct writer *w, double now)
{
	if (!w->log_points || w->no_fold || now < w->fold_after_s)
		return false;
	return w->log_points >= FOLD_BUSY_POINTS || now - w->oldest_log_s >= FOLD_BUSY_AGE_S;
}

/* Seconds until something has to be done without being asked. */
static double next_due(const struct writer *w, double now)
{
	double due = w->next_lost_s, fold_at;

	if (fold_due(w, now))
		return 0.001;
	if (w->log_points && !w->no_fold) {
		fold_at = w->last_commit_s + FOLD_IDLE_S;
		if (w->log_points < 4096 && fold_at < w->oldest_log_s + FOLD_AGE_S)
			fold_at = w->oldest_log_s + FOLD_AGE_S;
		fold_at = fold_at < w->fold_after_s ? w->fold_after_s : fold_at;
		due = fold_at < due ? fold_at : due;
	}
	if ((w->wal_pages || w->busy_since_trim) && w->last_commit_s + 1 < due)
		due = w->last_commit_s + 1;
	return due > now + 0.001 ? due - now : 0.001;
}

static int vacuum_some(struct writer *w, struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(w->db, &q, DB_vacuum_some, err, "");

	while (!rc && (rc = db_next(w->db, q, err)) > 0)
		rc = 0;
	return rc;
}

/* After a burst: free pages of the file beyond a reserve, and memory, go back to the system. */
static void give_back(struct writer *w)
{
	struct err err = ERR_INIT;
	int64_t pages = 0;

	if (db_int(w->db, &pages, DB_free_pages, &err, "") > 0 && pages > FREE_PAGES_KEPT) {
		vacuum_some(w, &err);
		w->busy_since_trim = pages > FREE_PAGES_KEPT + FREE_PAGES_STEP;
	}
	malloc_trim(0);
}

/* At the end nothing is kept back, as far as that is quick. */
static void shrink(struct writer *w)
{
	double until_s = clock_mono_s() + SHRINK_S;
	struct err err = ERR_INIT;
	int64_t pages = 0;

	while (!w->no_fold && db_int(w->db, &pages, DB_free_pages, &err, "") > 0 && pages > 0 && clock_mono_s() < until_s)
		if (vacuum_some(w, &err))
			break;
}

static void housekeep(struct writer *w)
{
	double now = clock_mono_s();

	if (fold_due(w, now)) {
		fold(w, FOLD_POINTS);
		return;
	}
	atomic_store(&w->fold_asked, false);
	if (now >= w->next_lost_s)
		check_lost(w);
	if (w->wal_pages && now - w->last_commit_s >= 1) {
		checkpoint(w, false);
		w->last_commit_s = now; /* readers may have held it back: try again in a second */
	}
	state_trim(w->state);
	if (w->busy_since_trim && now - w->last_commit_s >= 1 && !w->wal_pages) {
		w->busy_since_trim = false;
		give_back(w);
	}
}

/* Takes what waits, up to the size of a group. */
static struct writer_job *take(struct writer *w)
{
	struct writer_job *first = w->head, *j = w->head, *last = NULL;
	uint64_t points = 0;
	int n = 0;

	for (; j && n < GROUP_JOBS && points < GROUP_POINTS && !(n && (j->step || last->step)); j = j->next, n++) {
		points += j->a.in.point_count;
		w->queued_bytes -= j->bytes;
		last = j;
	}
	w->head = j;
	if (!j)
		w->tail = &w->head;
	if (last)
		last->next = NULL;
	pthread_cond_broadcast(&w->room);
	return last ? first : NULL;
}

static struct writer_job *wait_for_work(struct writer *w, bool *ret_stop)
{
	struct writer_job *jobs;
	struct timespec until;
	double wait_s;

	pthread_mutex_lock(&w->lock);
	if (!w->head && !w->stopping) {
		wait_s = next_due(w, clock_mono_s());
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (time_t)wait_s;
		until.tv_nsec += (long)((wait_s - (double)(time_t)wait_s) * 1e9);
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&w->work, &w->lock, &until);
	}
	jobs = take(w);
	*ret_stop = w->stopping && !jobs;
	pthread_mutex_unlock(&w->lock);
	return jobs;
}

static void run_step(struct writer *w, struct writer_job *job)
{
	struct ingest_result res = { 0 };

	res.code = job->step(job->step_arg, w->db, &res.err);
	job->done.fn(job->done.arg, &res);
	free(job);
}

static void *main_loop(void *arg)
{
	struct writer *w = arg;
	struct writer_job *jobs;
	bool stop = false;

	while (!stop) {
		jobs = wait_for_work(w, &stop);
		if (jobs && jobs->step) {
			run_step(w, jobs);
		} else if (jobs) {
			commit_jobs(w, jobs);
			if (fold_pressing(w, clock_mono_s()))
				fold(w, FOLD_BUSY_POINTS);
			if (w->wal_pages >= w->wal_limit_pages)
				checkpoint(w, false);
			state_trim(w->state);
		} else if (!stop) {
			housekeep(w);
		}
	}
	while (w->log_points && !w->no_fold && !fold(w, FOLD_BUSY_POINTS))
		;
	shrink(w);
	checkpoint(w, true);
	return NULL;
}

static void writer_free(struct writer *w)
{
	state_free(w->state);
	db_close(w->db);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->room);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->watch_lock);
	free(w);
}

int writer_start(struct writer **ret, const struct store_opts *opts, struct err *err)
{
	struct writer *w = calloc(1, sizeof *w);
	pthread_condattr_t attr;
	int rc;

	if (!w)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	w->tail = &w->head;
	w->no_fold = opts->no_fold;
	w->wal_limit_pages = (opts->wal_limit_bytes > 0 ? opts->wal_limit_bytes : WAL_LIMIT) / DB_PAGE_BYTES;
	w->last_commit_s = w->oldest_log_s = clock_mono_s();
	w->next_lost_s = w->last_commit_s + 1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->watch_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->work, &attr);
	pthread_cond_init(&w->room, &attr);
	pthread_condattr_destroy(&attr);
	rc = open_db(w, opts->db_path, err);
	if (!rc && pthread_create(&w->thread, NULL, main_loop, w))
		rc = err_set(err, ERR_IO, "store: cannot start a thread");
	if (rc) {
		writer_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void writer_stop(struct writer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->work);
	pthread_cond_broadcast(&w->room);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	writer_free(w);
}

int writer_submit(struct writer *w, struct writer_job *job, struct err *err)
{
	pthread_mutex_lock(&w->lock);
	while (w->queued_bytes > QUEUE_BYTES && !w->stopping)
		pthread_cond_wait(&w->room, &w->lock);
	if (w->stopping) {
		pthread_mutex_unlock(&w->lock);
		return err_set(err, ERR_CANCELED, "the store is closing");
	}
	job->next = NULL;
	*w->tail = job;
	w->tail = &job->next;
	w->queued_bytes += job->bytes;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void writer_fold_soon(struct writer *w)
{
	atomic_store(&w->fold_asked, true);
	pthread_mutex_lock(&w->lock);
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
}

void writer_stats(struct writer *w, struct store_stats *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = w->stats;
	pthread_mutex_unlock(&w->lock);
}

int writer_watch(struct writer *w, void (*fn)(void *arg, uint64_t rev), void *arg)
{
	int i, at = ERR_LIMIT;

	pthread_mutex_lock(&w->watch_lock);
	for (i = 0; i < MAX_WATCHERS && at < 0; i++)
		if (!w->watchers[i].fn) {
			w->watchers[i] = (struct watcher){ fn, arg };
			at = i;
		}
	pthread_mutex_unlock(&w->watch_lock);
	return at;
}

void writer_unwatch(struct writer *w, int handle)
{
	if (handle < 0 || handle >= MAX_WATCHERS)
		return;
	pthread_mutex_lock(&w->watch_lock);
	w->watchers[handle] = (struct watcher){ 0 };
	pthread_mutex_unlock(&w->watch_lock);
}

const char *writer_store_id(const struct writer *w)
{
	return w->id;
}

struct step_waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	struct ingest_result res;
};

static void step_done(void *arg, const struct ingest_result *res)
{
	struct step_waiter *s = arg;

	pthread_mutex_lock(&s->lock);
	s->res = *res;
	s->done = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

int writer_step(struct writer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg, struct err *err)
{
	struct step_waiter s = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	struct writer_job *job = calloc(1, sizeof *job);
	int rc;

	if (!job)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	job->step = fn;
	job->step_arg = arg;
	job->done = (struct ingest_done){ step_done, &s };
	rc = writer_submit(w, job, err);
	if (rc) {
		free(job);
		return rc;
	}
	pthread_mutex_lock(&s.lock);
	while (!s.done)
		pthread_cond_wait(&s.cond, &s.lock);
	pthread_mutex_unlock(&s.lock);
	if (s.res.code && err)
		*err = s.res.err;
	return s.res.code;
}
