/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c: the writer thread, and a thread that syncs the journal for it. While the disk is full, the encoded batch
 * stays in the journal's buffer and later points stay in the log queue, until both are full. */
#include "tracker/run/run_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"

/* ---- the sync thread; it has at most one request ---- */

#define SYNC_S 1.0
#define REMOVED "the journal was removed while it was being written"
#define SLOW_SHARE 10.0 /* pause this many times as long as a sync took */

struct syncer {
	struct warn *warn;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd; /* the descriptor to sync; -1: none */
	bool stop;
	double due_s;
	bool removed; /* the file of the last sync has been unlinked */
};

static void sync_journal_file(struct syncer *s, int fd)
{
	struct err err = ERR_INIT;
	struct stat st;

	s->removed = false;
	if (fdatasync(fd)) {
		err_set_errno(&err, errno, "cannot sync the journal");
		warn_post(s->warn, WARN_SYNC, "%s", err.text);
	} else if (!fstat(fd, &st) && !st.st_nlink) {
		s->removed = true;
		warn_post(s->warn, WARN_SYNC, REMOVED);
	}
}

/* The thread: waits for a descriptor, syncs and closes it, and computes when the next sync is due. */
static void *run_syncer(void *arg)
{
	struct syncer *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		double start, took;

		while (s->fd < 0 && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->fd < 0)
			break;
		pthread_mutex_unlock(&s->lock);
		start = clock_mono_s();
		sync_journal_file(s, s->fd); /* no other thread changes fd until it is -1 again */
		close(s->fd);
		took = clock_mono_s() - start;
		pthread_mutex_lock(&s->lock);
		s->fd = -1;
		pthread_cond_signal(&s->changed);
		s->due_s = start + took + (took * SLOW_SHARE > SYNC_S ? took * SLOW_SHARE : SYNC_S);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Warn is borrowed until syncer_stop. */
static int syncer_start(struct syncer **ret, struct warn *warn, struct err *err)
{
	struct syncer *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(err, NULL);
	s->warn = warn;
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	rc = thread_start(&s->thread, run_syncer, s);
	if (rc) {
		free(s);
		return err_set_errno(err, rc, "cannot start the sync thread");
	}
	*ret = s;
	return 0;
}

/* Returns true if a sync is due: about a second after the last one, using at most a tenth of the time of a slow
 * disk. */
static bool syncer_due(struct syncer *s)
{
	bool due;

	pthread_mutex_lock(&s->lock);
	due = s->fd < 0 && clock_mono_s() >= s->due_s;
	pthread_mutex_unlock(&s->lock);
	return due;
}

/* Syncs and closes fd in the background. Call it only when a sync is due. */
static void syncer_post(struct syncer *s, int fd)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&s->lock);
	s->fd = fd;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Waits for the current sync, syncs and closes fd (-1: none), and ends the thread. Returns ERR_IO if that file has been
 * unlinked; a failed sync only causes a warning. */
static int syncer_stop(struct syncer *s, int fd, struct err *err)
{
	int rc;

	pthread_mutex_lock(&s->lock);
	while (s->fd >= 0)
		pthread_cond_wait(&s->changed, &s->lock);
	s->fd = fd;
	s->stop = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	rc = s->removed ? err_set(err, ERR_IO, REMOVED) : 0;
	free(s);
	return rc;
}

/* ---- the writer thread ---- */

#define BATCH_S 0.2
#define RETRY_S 1.0 /* while the disk refuses writes */
#define HEARTBEAT_S 10.0
#define DROPPED_S 1.0
#define GIVE_UP_S 5.0 /* time limit for the last writes */
#define HANG_S 20     /* a network disk that never answers must not prevent the program's end */
#define WRITE_BYTES (256u << 10)

struct writer {
	struct writer_opts o;
	pthread_t thread;
	/* shared, protected by lock */
	pthread_mutex_t lock;
	pthread_cond_t progress;			     /* flush_done, flush_refused or finished changed */
	uint64_t flush_requested, flush_done, flush_refused; /* refused: by the disk */
	bool stop, finished;				     /* the thread must end; it has done everything */
	enum event_status status;
	/* used by the thread only */
	bool draining; /* points taken from the log queue are not all encoded */
	bool stuck;    /* the journal's buffer has bytes that the disk refused */
	bool ended;    /* the final records are in the buffer */
	bool dirty;    /* written since the last sync request */
	struct syncer *syncer;
	double heartbeat_s, dropped_s, stuck_s;
	uint64_t heartbeats, dropped_reported, lost;
	int64_t last_step;
	struct err err;
	int sync_rc; /* result of the last sync, valid after the end */
};

static void encode_point(struct writer *w, const struct point *p)
{
	const struct encode_scalar s = {
		.key = p->key->text,
		.step = p->step,
		.wall_time = p->wall_time,
		.value = p->value,
		.rank = p->rank,
		.journal_rank = w->o.journal_rank,
	};

	encode_scalar(journal_buf(w->o.journal), &s);
	w->last_step = p->step;
}

/* Out of memory while encoding: the buffer may have incomplete records, so the batch is dropped. */
static void drop_failed_batch(struct writer *w)
{
	struct buf *b = journal_buf(w->o.journal);

	if (!buf_failed(b))
		return;
	buf_reset(b);
	warn_post(w->o.warn, WARN_QUEUE, "out of memory: a batch of points was lost");
}

/* Writes the buffer; returns false if the disk refuses. */
static bool write_buffer(struct writer *w)
{
	struct journal *j = w->o.journal;
	bool was_stuck = w->stuck;

	if (!was_stuck)
		drop_failed_batch(w);

	w->stuck = journal_write(j, &w->err) != 0;
	if (w->stuck) {
		if (!was_stuck)
			w->stuck_s = clock_mono_s();
		warn_post(w->o.warn, WARN_DISK, "%s; points stay in memory until it works again", w->err.text);
		return false;
	}
	w->dirty = true;
	if (w->o.uplink)
		journal_uploader_advance(w->o.uplink, journal_path(j), journal_writer_id(j), journal_bytes(j));
	return true;
}

/* Encodes everything taken from the log queue, in slices of the buffer; stops if the disk refuses. */
static void encode_queued(struct writer *w, bool complete)
{
	struct buf *b = journal_buf(w->o.journal);
	const struct point *p;

	if (w->stuck && !write_buffer(w))
		return;
	if (!w->draining) {
		/* Points first: the records then include everything that was recorded before one of these points. */
		log_queue_take(w->o.lanes);
		p = log_queue_next(w->o.lanes);
		records_take(w->o.records, b, p || complete);
		w->draining = true;
	} else {
		p = log_queue_next(w->o.lanes);
	}
	for (; p; p = log_queue_next(w->o.lanes)) {
		encode_point(w, p);
		if (b->len >= WRITE_BYTES && !write_buffer(w))
			return;
	}
	w->draining = false;
}

static void report_dropped(struct writer *w, double now, bool at_once)
{
	static const char text[] = "dptrack/dropped";
	const struct key key = { .text = { text, sizeof(text) - 1 } };
	uint64_t dropped = atomic_load_explicit(w->o.dropped, memory_order_relaxed);

	if (dropped == w->dropped_reported || (!at_once && now < w->dropped_s))
		return;
	warn_post(w->o.warn, WARN_QUEUE, "points lost so far: %llu: the queue was full or keys were refused",
		  (unsigned long long)dropped);
	w->dropped_reported = dropped;
	w->dropped_s = now + DROPPED_S;
	encode_point(w, &(struct point){ .key = &key, .wall_time = clock_wall_s(), .value = (double)dropped,
				      .step = w->last_step, .rank = w->o.journal_rank > 0 ? w->o.journal_rank : -1 });
}

static void add_heartbeat(struct writer *w, double now)
{
	if (now < w->heartbeat_s)
		return;
	w->heartbeat_s = now + HEARTBEAT_S;
	encode_heartbeat(journal_buf(w->o.journal), clock_wall_s(), ++w->heartbeats);
}

static void request_sync(struct writer *w)
{
	if (!w->dirty || !syncer_due(w->syncer))
		return;
	w->dirty = false;
	syncer_post(w->syncer, journal_dup(w->o.journal));
}

static void add_final_records(struct writer *w)
{
	struct buf *b = journal_buf(w->o.journal);

	if (w->ended || w->status == EVENT_RUNNING)
		return;
	w->ended = true;
	encode_status(b, clock_wall_s(), w->status, (struct event_text){ "", 0 });
	if (w->status == EVENT_FINISHED || w->status == EVENT_FAILED || w->status == EVENT_KILLED)
		records_end(w->o.records, b, w->status);
}

/* Runs one round; returns true if everything queued before it is in the file. */
static bool run_write_round(struct writer *w, bool flush, bool stop)
{
	double now = clock_mono_s();

	encode_queued(w, flush || stop);
	if (!w->draining && !w->stuck) {
		report_dropped(w, now, flush || stop);
		console_capture_take(w->o.printed, journal_buf(w->o.journal), stop);
		if (stop)
			add_final_records(w);
		else
			add_heartbeat(w, now);
		if (journal_buf(w->o.journal)->len)
			write_buffer(w);
	}
	return !w->draining && !w->stuck;
}

/* Counts what is still queued after the disk has refused for too long. */
static void count_lost_points(struct writer *w)
{
	while (log_queue_next(w->o.lanes))
		w->lost++;
	log_queue_take(w->o.lanes);
	while (log_queue_next(w->o.lanes))
		w->lost++;
}

/* The thread: rounds until it is asked to stop and everything is written, or the disk refuses for too long; then a last
 * sync. */
static void *run_writer(void *arg)
{
	struct writer *w = arg;
	struct err sync_err = ERR_INIT;
	bool stop = false, whole = false;

	pthread_setname_np(pthread_self(), "dptrack-write");
	while (!stop || !whole) {
		uint64_t wanted;

		log_queue_wait(w->o.lanes, w->stuck ? RETRY_S : BATCH_S);
		pthread_mutex_lock(&w->lock);
		stop = w->stop;
		wanted = w->flush_requested;
		pthread_mutex_unlock(&w->lock);
		whole = run_write_round(w, wanted != w->flush_done, stop);
		pthread_mutex_lock(&w->lock);
		*(whole ? &w->flush_done : &w->flush_refused) = wanted;
		pthread_cond_broadcast(&w->progress);
		pthread_mutex_unlock(&w->lock);
		if (!whole && stop && clock_mono_s() - w->stuck_s > GIVE_UP_S) {
			count_lost_points(w);
			break;
		}
		request_sync(w);
		warn_deliver(w->o.warn, false);
	}
	w->sync_rc = syncer_stop(w->syncer, journal_dup(w->o.journal), &sync_err);
	if (!w->stuck)
		w->err = sync_err;
	pthread_mutex_lock(&w->lock);
	w->finished = true;
	pthread_cond_broadcast(&w->progress);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int writer_start(struct writer **ret, const struct writer_opts *opts, struct err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return err_nomem(err, NULL);
	rc = syncer_start(&w->syncer, opts->warn, err);
	if (rc) {
		free(w);
		return rc;
	}
	w->o = *opts;
	w->heartbeat_s = clock_mono_s() + HEARTBEAT_S;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->progress);
	rc = thread_start(&w->thread, run_writer, w);
	if (rc) {
		syncer_stop(w->syncer, -1, NULL);
		free(w);
		return err_set_errno(err, rc, "cannot start the writer thread");
	}
	*ret = w;
	return 0;
}

int writer_flush(struct writer *w, double wait_s)
{
	double until_s = clock_mono_s() + wait_s;
	uint64_t wanted;
	int rc;

	pthread_mutex_lock(&w->lock);
	wanted = ++w->flush_requested;
	log_queue_wake(w->o.lanes);
	while (w->flush_done < wanted && w->flush_refused < wanted && cond_wait_until(&w->progress, &w->lock, until_s))
		;
	rc = w->flush_done < wanted ? ERR_BUSY : 0;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Returns false if the thread hangs in a system call. */
static bool join_with_timeout(struct writer *w)
{
	const double until_s = clock_mono_s() + HANG_S;
	bool finished;

	pthread_mutex_lock(&w->lock);
	while (!w->finished && cond_wait_until(&w->progress, &w->lock, until_s))
		;
	finished = w->finished;
	pthread_mutex_unlock(&w->lock);
	return finished && !pthread_join(w->thread, NULL);
}

int writer_stop(struct writer *w, enum event_status status, uint64_t *ret_lost, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	w->status = status;
	pthread_mutex_unlock(&w->lock);
	log_queue_wake(w->o.lanes);
	if (!join_with_timeout(w))
		return err_set(err, ERR_BUSY, "the disk of %s does not respond", journal_path(w->o.journal));
	if (w->stuck || w->sync_rc) {
		rc = w->err.code;
		err_set(err, rc, "%s", w->err.text);
	}
	*ret_lost = w->lost;
	pthread_cond_destroy(&w->progress);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return rc;
}
