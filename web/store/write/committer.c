/* SPDX-License-Identifier: Apache-2.0 */
/* committer.c: the loop of the writer's thread: what it does next. */
#include "web/store/write/committer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/write/apply.h"
#include "web/store/write/group_commit.h"
#include "web/store/write/queue.h"
#include "web/store/write/segment.h"

#define QUEUE_BYTES ((size_t)32 << 20)
#define PERIODIC_S 5.0 /* the lease lasts longer */
#define WAL_LIMIT (8 << 20)
#define FILE_CACHE_MIB 24

struct committer {
	struct group_commit g;
	pthread_t thread;
	char id[40];
	int wal_limit_bytes;
	char holder[128];
	double next_periodic_s;
};

/* Rows of a file are read again quickly. */
static size_t cache_bytes(const struct store_opts *o)
{
	int mib = !db_is_address(o->db_path) ? FILE_CACHE_MIB : o->cache_mib > 0 ? o->cache_mib : STORE_CACHE_MIB;

	return (size_t)mib << 20;
}

/* Opens the writer's connection; refuses a store that a migration has not completed. */
static int open_db(struct committer *w, const struct store_opts *opts, struct err *err)
{
	const char *path = opts->db_path;
	struct db_rows *q;
	char shown[1024];
	int rc = db_open_writer(&w->g.tx.db, path, err);

	if (rc)
		return rc;
	w->g.folding.shared = db_shared(w->g.tx.db);
	rc = folding_count(&w->g.folding, err);
	if (!rc)
		rc = db_start(w->g.tx.db, &q, DB_store_id, err, "");
	if (!rc && (rc = db_next(w->g.tx.db, q, err)) > 0) {
		snprintf(w->id, sizeof(w->id), "%s", db_str(q, COL_store_id_value));
		db_stop(q);
	} else if (!rc) {
		db_shown(shown, sizeof(shown), path);
		rc = err_set(err, ERR_USAGE,
			     "%s is an incomplete copy of a store: finish the dptrack migrate that was writing it",
			     shown);
	}
	if (rc < 0)
		return rc;
	w->g.tx.state = state_new(w->g.tx.db, cache_bytes(opts));
	return 0;
}

static int fold_some_points(struct committer *w, uint64_t max_points)
{
	struct err err = ERR_INIT;
	uint64_t rev;
	int rc = folding_some(&w->g.folding, max_points, &rev, &err);

	group_commit_note(&w->g, rc, &err, rev, 0);
	return rc;
}

/* Periodic work: reconnects, marks stale runs, deletes expired keys. */
static void do_periodic_work(struct committer *w)
{
	struct err err = ERR_INIT;
	uint64_t rev;
	bool more;
	int rc;

	w->next_periodic_s = clock_mono_s() + PERIODIC_S;
	db_look(w->g.tx.db);
	folding_recount(&w->g.folding);
	if (lease_row_take(w->g.tx.db, w->holder, "upkeep", &err) <= 0)
		return;
	apply_expire(w->g.tx.db, &err);
	rc = stale_runs_mark(&w->g.tx, &more, &rev, &err);
	if (rc)
		group_commit_note(&w->g, rc < 0 ? rc : 0, &err, rev, 0);
	if (more)
		w->next_periodic_s = clock_mono_s();
}

/* Folds new points before more are accepted; cheap operations do not wait for all of it. */
static void fold_while_pressing(struct committer *w, uint64_t points_before)
{
	struct queue_job *small;

	while (folding_pressing(&w->g.folding, clock_mono_s()) && !fold_some_points(w, FOLDING_BUSY_POINTS) &&
	       w->g.folding.points > points_before) {
		small = queue_take_small(w->g.queue);
		if (small)
			group_commit(&w->g, small);
	}
}

/* Seconds until periodic work is due. */
static double next_due(const struct committer *w, double now)
{
	double due = w->next_periodic_s, fold_at = folding_due_at(&w->g.folding, w->g.last_commit_s, now);

	due = fold_at < due ? fold_at : due;
	if ((db_wal_bytes(w->g.tx.db) || w->g.spare.some) && w->g.last_commit_s + 1 < due)
		due = w->g.last_commit_s + 1;
	return due > now + 0.001 ? due - now : 0.001;
}

static void do_idle_work(struct committer *w)
{
	double now = clock_mono_s();

	if (folding_due(&w->g.folding, w->g.last_commit_s, now)) {
		fold_some_points(w, FOLDING_POINTS);
		return;
	}
	folding_done(&w->g.folding);
	if (now >= w->next_periodic_s)
		do_periodic_work(w);
	if (db_wal_bytes(w->g.tx.db) && now - w->g.last_commit_s >= 1) {
		db_checkpoint(w->g.tx.db, false);
		w->g.last_commit_s = now; /* readers may have blocked it: retry in a second */
	}
	state_trim(w->g.tx.state);
	if (w->g.spare.some && now - w->g.last_commit_s >= 1 && !db_wal_bytes(w->g.tx.db))
		trim_give_back(&w->g.spare, w->g.tx.db);
}

static void run_committer_step(struct committer *w, struct queue_job *job)
{
	struct ingest_result res = { 0 };

	db_look(w->g.tx.db);
	res.code = job->step(job->step_arg, w->g.tx.db, &res.err);
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
		points_before = w->g.folding.points;
		folding_look(&w->g.folding);
		jobs = queue_take(w->g.queue, next_due(w, clock_mono_s()), &stop);
		if (jobs && jobs->step) {
			run_committer_step(w, jobs);
		} else if (jobs) {
			group_commit(&w->g, jobs);
			fold_while_pressing(w, points_before);
			if (db_wal_bytes(w->g.tx.db) >= w->wal_limit_bytes)
				db_checkpoint(w->g.tx.db, false);
			state_trim(w->g.tx.state);
			trim_trim(&w->g.spare);
			if (clock_mono_s() >= w->next_periodic_s)
				do_periodic_work(w);
		} else if (!stop) {
			do_idle_work(w);
		}
	}
	while (folding_left(&w->g.folding) && !fold_some_points(w, FOLDING_BUSY_POINTS))
		;
	if (!w->g.folding.never)
		trim_shrink(w->g.tx.db);
	db_checkpoint(w->g.tx.db, true);
	return NULL;
}

static void committer_free(struct committer *w)
{
	state_free(w->g.tx.state);
	db_close(w->g.tx.db);
	queue_free(w->g.queue);
	watchers_free(w->g.watchers);
	pthread_mutex_destroy(&w->g.lock);
	pthread_mutex_destroy(&w->g.restore_lock);
	free(w);
}

/* One word that is unique, even where a machine reuses process numbers. */
static void name_holder(struct committer *w)
{
	struct utsname u = { .nodename = "" };
	uint32_t drawn = 0;
	char *c;

	uname(&u);
	if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
		drawn = (uint32_t)clock_wall_ms();
	snprintf(w->holder, sizeof(w->holder), "%.80s:%d:%08x", u.nodename, (int)getpid(), drawn);
	for (c = w->holder; *c; c++)
		*c = *c == ' ' ? '_' : *c;
}

int committer_start(struct committer **ret, const struct store_opts *opts, struct err *err)
{
	struct committer *w = mem_zalloc(sizeof(*w));
	int rc;

	w->g.folding.never = opts->no_fold;
	w->g.folding.t = &w->g.tx;
	w->wal_limit_bytes = opts->wal_limit_bytes > 0 ? opts->wal_limit_bytes : WAL_LIMIT;
	w->g.last_commit_s = w->g.folding.oldest_s = clock_mono_s();
	w->next_periodic_s = w->g.last_commit_s + 1;
	w->g.spare.trimmed_s = w->g.last_commit_s;
	pthread_mutex_init(&w->g.lock, NULL);
	pthread_mutex_init(&w->g.restore_lock, NULL);
	name_holder(w);
	w->g.queue = queue_new(opts->queue_bytes ? opts->queue_bytes : QUEUE_BYTES);
	w->g.watchers = watchers_new();
	rc = open_db(w, opts, err);
	if (!rc && thread_start(&w->thread, run_committer, w))
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
	committer_hurry(w);
	pthread_join(w->thread, NULL);
	committer_free(w);
}

void committer_hurry(struct committer *w)
{
	if (!w)
		return;
	queue_stop(w->g.queue);
	db_hurry(w->g.tx.db);
}

struct queue *committer_queue(struct committer *w)
{
	return w ? w->g.queue : NULL;
}

int committer_watch(struct committer *w, void (*fn)(void *arg, uint64_t rev), void *arg)
{
	return watchers_add(w->g.watchers, fn, arg);
}

void committer_tell(struct committer *w, uint64_t rev)
{
	watchers_tell(w->g.watchers, rev);
}

void committer_unwatch(struct committer *w, int handle)
{
	watchers_remove(w->g.watchers, handle);
}

void committer_on_archived(struct committer *w, int (*fn)(void *arg, const char *run, struct err *err), void *arg)
{
	pthread_mutex_lock(&w->g.restore_lock);
	w->g.restore = fn;
	w->g.restore_arg = arg;
	pthread_mutex_unlock(&w->g.restore_lock);
}

bool committer_hold(struct committer *w, const char *run)
{
	return queue_hold(w->g.queue, run);
}

void committer_has_points(struct committer *w, const char *run)
{
	queue_release(w->g.queue, run);
}

void committer_fold_soon(struct committer *w)
{
	folding_ask(&w->g.folding);
	queue_wake(w->g.queue);
}

void committer_stats(struct committer *w, struct store_stats *ret)
{
	pthread_mutex_lock(&w->g.lock);
	*ret = w->g.stats;
	pthread_mutex_unlock(&w->g.lock);
	if (db_away(w->g.tx.db)) {
		ret->write_error = ERR_BUSY;
		snprintf(ret->write_error_text, sizeof(ret->write_error_text), "the database cannot be reached");
	}
}

const char *committer_holder(const struct committer *w)
{
	return w->holder;
}

const char *committer_store_id(const struct committer *w)
{
	return w->id;
}

static int periodic_step(void *arg, struct db *d, struct err *err)
{
	(void)d;
	(void)err;
	do_periodic_work(arg);
	return 0;
}

int committer_step(struct committer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg, struct err *err)
{
	struct queue_job *job = mem_zalloc(sizeof(*job));
	struct waiter done;
	int rc;

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

void committer_mark_stale(struct committer *w)
{
	struct err err = ERR_INIT;

	committer_step(w, periodic_step, w, &err);
}
