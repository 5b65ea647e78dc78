/* SPDX-License-Identifier: Apache-2.0 */
/* archiver.c: one thread that looks for ended runs periodically, and is woken to restore runs. */
#include "web/store/archive/archiver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/write/committer.h"
#include "web/store/write/lease.h"

#define LOOK_MOST_S 600.0
#define LOOK_LEAST_S 0.2
#define AGAIN_S 10.0  /* after the object store failed */
#define REFUSE_S 2.0  /* how long writes to a run whose restore failed are refused */
#define WANTED_MAX 64 /* the number of runs that the queue can hold */
#define PIECE_BYTES ((size_t)4 << 20)

struct wanted_run {
	char run[33];
	bool failed;
	double until_s; /* time after which `failed` is retried */
	struct err err;
};

struct archiver {
	struct store *s;
	int64_t after_ms;
	struct lease lease;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool stop;
	struct wanted_run wanted[WANTED_MAX];
	size_t wanted_count;
	struct archiver_stats stats;
	bool failing; /* and the log has reported it */
};

static int fetch_archive_range(void *store, const struct archive_range *r, void *to, struct err *err)
{
	return orphan_blobs_read(((struct store *)store)->files,
				 &(struct orphan_blobs_range){ r->object, r->from, r->n }, to, err);
}

static void find_archive_key(void *store, const char *object, char *ret, size_t room)
{
	orphan_blobs_key(((struct store *)store)->files, object, ret, room);
}

struct archives_source archiver_source(struct store *s)
{
	return (struct archives_source){ .fetch = fetch_archive_range, .key = find_archive_key, .arg = s };
}

static bool archiver_may_continue(void *arg)
{
	struct archiver *a = arg;
	bool stop;

	pthread_mutex_lock(&a->lock);
	stop = a->stop;
	pthread_mutex_unlock(&a->lock);
	return !stop;
}

static int submit_archive_change(struct archiver *a, const struct change_ops *kind, const struct archive *x,
				 struct err *err)
{
	return ingest_submit(a->s, &(struct ingest_op){ .kind = kind, .more = x }, NULL, NULL, err);
}

/* --- statistics ----------------------------------------------------------------------------------------------- */

static void note_archived(struct archiver *a, const struct archive *x)
{
	struct archiver_stats *s = &a->stats;

	pthread_mutex_lock(&a->lock);
	s->runs++;
	s->series += (uint64_t)x->totals.series;
	s->points += (uint64_t)x->totals.points;
	s->bytes += x->object.bytes;
	s->last_ms = clock_wall_ms();
	a->failing = false;
	pthread_mutex_unlock(&a->lock);
}

static void note_restored(struct archiver *a)
{
	pthread_mutex_lock(&a->lock);
	a->stats.returns++;
	a->failing = false;
	pthread_mutex_unlock(&a->lock);
}

/* The log reports the first failure in a row. */
static void note_failure(struct archiver *a, const struct err *why)
{
	bool said;

	pthread_mutex_lock(&a->lock);
	said = a->failing;
	a->failing = true;
	a->stats.failures++;
	pthread_mutex_unlock(&a->lock);
	if (!said)
		log_warn("cannot move points of ended runs to or from the object store: %s", why->text);
}

void archiver_stats(struct archiver *a, struct archiver_stats *ret)
{
	*ret = (struct archiver_stats){ .runs = 0 };
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	*ret = a->stats;
	pthread_mutex_unlock(&a->lock);
}

/* --- restore -------------------------------------------------------------------------------------------------- */

/* Finds the archive of the run: 1, 0 if there is none. */
static int find_archive(struct archiver *a, struct archive *x, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_run(a->s, &d, x->run, &x->run_id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_archive_get, err, "i", x->run_id);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(x->object.name, sizeof(x->object.name), "%s", db_str(q, COL_archive_get_object));
		snprintf(x->object.sha256, sizeof(x->object.sha256), "%s", db_str(q, COL_archive_get_sha256));
		x->object.bytes = (uint64_t)db_i64(q, COL_archive_get_bytes);
		db_stop(q);
	}
	readers_give(a->s, d);
	return rc;
}

static int read_whole_archive(struct archiver *a, const struct archive *x, unsigned char *to, struct err *err)
{
	char came[65];
	struct sha256 sha;
	uint64_t at;
	size_t n;
	int rc = 0;

	sha256_init(&sha);
	for (at = 0; at < x->object.bytes && !rc; at += n) {
		n = x->object.bytes - at < PIECE_BYTES ? (size_t)(x->object.bytes - at) : PIECE_BYTES;
		rc = archiver_may_continue(a) ? orphan_blobs_read(a->s->files, &(struct orphan_blobs_range){
						      x->object.name, at, n }, to + at, err)
					      : err_set(err, ERR_CANCELED, "the store is closing");
		if (!rc)
			sha256_add(&sha, to + at, n);
	}
	sha256_end(&sha, came);
	if (!rc && strcmp(came, x->object.sha256))
		rc = archives_damaged(a->s->archives, x->object.name, err);
	return rc;
}

/* Reads the archive and inserts its chunks as rows: 1 restored, 0 they were rows already. */
static int restore_archive(struct archiver *a, const char *run, struct err *err)
{
	struct archive x = { .run_id = 0 };
	struct archived index = { .of = NULL };
	unsigned char *bytes = NULL;
	int rc;

	snprintf(x.run, sizeof(x.run), "%s", run);
	rc = find_archive(a, &x, err);
	if (rc <= 0)
		return rc;
	rc = archived_object(&index, a->s->archives, x.object.name, x.object.bytes, err);
	if (!rc) {
		bytes = malloc((size_t)x.object.bytes + 1); /* large: a failure leaves the run archived */
		rc = bytes ? read_whole_archive(a, &x, bytes, err) : err_nomem(err, NULL);
	}
	x.list = index.list;
	x.bytes = bytes;
	if (!rc)
		rc = submit_archive_change(a, &archive_change_undo, &x, err);
	archived_done(&index);
	free(bytes);
	if (rc == ERR_EXISTS) /* another process has restored it */
		return 0;
	return rc ? rc : 1;
}

/* Under the lock. */
static struct wanted_run *find_wanted(struct archiver *a, const char *run)
{
	size_t i;

	for (i = 0; i < a->wanted_count; i++)
		if (!strcmp(a->wanted[i].run, run))
			return &a->wanted[i];
	return NULL;
}

static void forget_wanted_run(struct archiver *a, struct wanted_run *w)
{
	*w = a->wanted[--a->wanted_count];
}

/* Under the lock: removes failed entries that may be retried. */
static void forget_failed(struct archiver *a)
{
	double now = clock_mono_s();
	size_t i = 0;

	while (i < a->wanted_count)
		if (a->wanted[i].failed && a->wanted[i].until_s <= now)
			forget_wanted_run(a, &a->wanted[i]);
		else
			i++;
}

/* On the writer's thread: queues the restore of the run, and holds its operations (committer_on_archived). */
static int want_archived_run(void *arg, const char *run, struct err *err)
{
	struct archiver *a = arg;
	struct wanted_run *w;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	forget_failed(a);
	w = find_wanted(a, run);
	if (w && w->failed) {
		*err = w->err;
		rc = w->err.code;
	} else if ((!w && a->wanted_count == WANTED_MAX) || !committer_hold(a->s->writer, run)) {
		rc = err_set(err, ERR_BUSY, "too many archived runs are written to at once");
	} else if (!w) {
		w = &a->wanted[a->wanted_count++];
		*w = (struct wanted_run){ .failed = false };
		snprintf(w->run, sizeof(w->run), "%s", run);
	}
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	return rc;
}

static bool next_wanted_run(struct archiver *a, char run[33])
{
	bool any = false;
	size_t i;

	pthread_mutex_lock(&a->lock);
	for (i = 0; i < a->wanted_count && !any && !a->stop; i++)
		if (!a->wanted[i].failed) {
			memcpy(run, a->wanted[i].run, sizeof(a->wanted[i].run));
			any = true;
		}
	pthread_mutex_unlock(&a->lock);
	return any;
}

static void finish_wanted_run(struct archiver *a, const char *run, int rc, const struct err *why)
{
	struct wanted_run *w;

	pthread_mutex_lock(&a->lock);
	w = find_wanted(a, run);
	if (w && rc) {
		w->failed = true;
		w->until_s = clock_mono_s() + REFUSE_S;
		w->err = *why;
		w->err.code = rc;
	} else if (w) {
		forget_wanted_run(a, w);
	}
	pthread_mutex_unlock(&a->lock);
	committer_has_points(a->s->writer, run);
}

static void restore_wanted_runs(struct archiver *a)
{
	char run[33];

	while (next_wanted_run(a, run)) {
		struct err err = ERR_INIT;
		int rc = restore_archive(a, run, &err);

		/* a run that is gone: its writers get the error from its row */
		rc = rc == ERR_NOENT || rc == ERR_GONE ? 0 : rc;
		if (rc > 0)
			note_restored(a);
		else if (rc && rc != ERR_CANCELED)
			note_failure(a, &err);
		finish_wanted_run(a, run, rc < 0 ? rc : 0, &err);
	}
}

/* --- archive -------------------------------------------------------------------------------------------------- */

/* The next run after io->run_id that ended before before_ms: 1, 0 if there is none. */
static int next_ended_run(struct archiver *a, int64_t before_ms, struct archive *io, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(a->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_archive_next, err, "ii", before_ms, io->run_id);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		io->run_id = db_i64(q, COL_archive_next_id);
		snprintf(io->run, sizeof(io->run), "%s", db_str(q, COL_archive_next_uuid));
		db_stop(q);
	}
	readers_give(a->s, d);
	return rc;
}

/* Returns 0 also if the run changed, is too large or is gone. */
static int upload_archive(struct archiver *a, struct archive *x, struct err *err)
{
	int rc = archive_pack(x, a->s, archiver_may_continue, a, err);

	if (!rc)
		rc = submit_archive_change(a, &archive_change_put, x, err);
	if (!rc)
		note_archived(a, x);
	return rc == ERR_EXISTS || rc == ERR_LIMIT || rc == ERR_NOENT || rc == ERR_GONE ? 0 : rc;
}

/* Archives ended runs; returns the seconds until the next look. */
static double archive_ended_runs(struct archiver *a)
{
	double pause_s = (double)a->after_ms / 10e3;
	struct archive x = { .run_id = -1 };
	struct err err = ERR_INIT;
	int rc = lease_take(&a->lease, &err);

	while (rc > 0 && archiver_may_continue(a) &&
	       (rc = next_ended_run(a, clock_wall_ms() - a->after_ms, &x, &err)) > 0) {
		rc = upload_archive(a, &x, &err);
		rc = rc ? rc : lease_take(&a->lease, &err);
		restore_wanted_runs(a);
	}
	if (rc < 0 && rc != ERR_CANCELED)
		note_failure(a, &err);
	if (rc < 0 && pause_s < AGAIN_S)
		pause_s = AGAIN_S;
	return pause_s < LOOK_LEAST_S ? LOOK_LEAST_S : pause_s > LOOK_MOST_S ? LOOK_MOST_S : pause_s;
}

/* Under the lock. */
static bool has_wanted_run(const struct archiver *a)
{
	size_t i;

	for (i = 0; i < a->wanted_count; i++)
		if (!a->wanted[i].failed)
			return true;
	return false;
}

/* False: stop. */
static bool wait_archiver_until(struct archiver *a, double look_s)
{
	bool stop;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && !has_wanted_run(a) && cond_wait_until(&a->wake, &a->lock, look_s))
		;
	stop = a->stop;
	pthread_mutex_unlock(&a->lock);
	return !stop;
}

static void *run_archiver(void *arg)
{
	struct archiver *a = arg;
	double look_s = a->after_ms > 0 ? clock_mono_s() + LOOK_LEAST_S : INFINITY;

	while (wait_archiver_until(a, look_s)) {
		restore_wanted_runs(a);
		if (clock_mono_s() >= look_s)
			look_s = clock_mono_s() + archive_ended_runs(a);
	}
	lease_give(&a->lease);
	return NULL;
}

int archiver_start(struct archiver **ret, struct store *s, int64_t after_ms, struct err *err)
{
	struct archiver *a;

	if (!artifacts_objects(s->files) || !s->writer)
		return 0;
	a = mem_zalloc(sizeof(*a));
	a->s = s;
	a->after_ms = after_ms;
	lease_init(&a->lease, s, "archive");
	pthread_mutex_init(&a->lock, NULL);
	cond_init(&a->wake);
	if (thread_start(&a->thread, run_archiver, a)) {
		pthread_cond_destroy(&a->wake);
		pthread_mutex_destroy(&a->lock);
		free(a);
		return err_set(err, ERR_IO, "store: cannot start a thread");
	}
	committer_on_archived(s->writer, want_archived_run, a);
	*ret = a;
	return 0;
}

void archiver_stop(struct archiver *a)
{
	if (!a)
		return;
	committer_on_archived(a->s->writer, NULL, NULL);
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	orphan_blobs_stop(a->s->files);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
