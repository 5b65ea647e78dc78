/* writer.c: the writer thread. While the disk is full the encoded batch waits in the journal's buffer, later points in
 * the lanes, until those are full too. */
#include "tracker/run/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/cond.h"
#include "tracker/event/event_encode.h"
#include "tracker/run/keys.h"
#include "tracker/run/syncer.h"

#define BATCH_S 0.2
#define RETRY_S 1.0 /* while the disk refuses */
#define HEARTBEAT_S 10.0
#define DROPPED_S 1.0
#define GIVE_UP_S 5.0         /* at the end */
#define HANG_S 20             /* a network disk that never answers must not keep a program from ending */
#define WRITE_BYTES (256u << 10)

struct writer {
	struct writer_opts o;
	pthread_t thread;
	/* shared */
	pthread_mutex_t lock;
	pthread_cond_t moved; /* flush_done, flush_refused or through changed */
	uint64_t flush_wanted, flush_done, flush_refused; /* refused: by the disk */
	bool stop, through; /* the thread is to end, and has done all that it does */
	enum event_status status;
	/* the thread's own */
	bool draining; /* taken from the lanes, not yet all encoded */
	bool stuck;    /* the journal's buffer holds what the disk refused */
	bool ended;    /* the final records are in the buffer */
	bool dirty;    /* written since the last sync was asked for */
	struct syncer *syncer;
	double heartbeat_s, dropped_s, stuck_s;
	uint64_t heartbeats, dropped_said, lost;
	int64_t last_step;
	struct err err;
	int sync_rc; /* of the last sync, after the end */
};

static void add_point(struct writer *w, const struct point *p)
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

/* Out of memory while encoding: the batch cannot be told apart from whole records, so it is given up. */
static void check_buf(struct writer *w)
{
	struct buf *b = journal_buf(w->o.journal);

	if (!buf_failed(b))
		return;
	buf_reset(b);
	warn_post(w->o.warn, WARN_QUEUE, "out of memory: a batch of points was lost");
}

/* Writes the buffer; false when the disk refuses. */
static bool put(struct writer *w)
{
	struct journal *j = w->o.journal;
	bool was_stuck = w->stuck;

	if (!was_stuck)
		check_buf(w);

	w->stuck = journal_write(j, &w->err) != 0;
	if (w->stuck) {
		if (!was_stuck)
			w->stuck_s = clock_mono_s();
		warn_post(w->o.warn, WARN_DISK, "%s; points are kept in memory until it works again", w->err.text);
		return false;
	}
	w->dirty = true;
	if (w->o.uplink)
		journal_uploader_advance(w->o.uplink, journal_path(j), journal_writer_id(j), journal_bytes(j));
	return true;
}

/* Everything taken from the lanes goes through the buffer in slices; stops where the disk refuses. */
static void drain(struct writer *w, bool complete)
{
	struct buf *b = journal_buf(w->o.journal);
	const struct point *p;

	if (w->stuck && !put(w))
		return;
	if (!w->draining) {
		/* Points first: whatever was told before a point that is taken here is then among the records. */
		log_queue_take(w->o.lanes);
		p = log_queue_next(w->o.lanes);
		records_take(w->o.records, b, p || complete);
		w->draining = true;
	} else {
		p = log_queue_next(w->o.lanes);
	}
	for (; p; p = log_queue_next(w->o.lanes)) {
		add_point(w, p);
		if (b->len >= WRITE_BYTES && !put(w))
			return;
	}
	w->draining = false;
}

static void say_dropped(struct writer *w, double now, bool at_once)
{
	static const char text[] = "dptrack/dropped";
	const struct key key = { .text = { text, sizeof(text) - 1 } };
	uint64_t dropped = atomic_load_explicit(w->o.dropped, memory_order_relaxed);

	if (dropped == w->dropped_said || (!at_once && now < w->dropped_s))
		return;
	warn_post(w->o.warn, WARN_QUEUE, "%llu points were lost so far: the queue was full or their keys were refused",
		  (unsigned long long)dropped);
	w->dropped_said = dropped;
	w->dropped_s = now + DROPPED_S;
	add_point(w, &(struct point){ .key = &key, .wall_time = clock_wall_s(), .value = (double)dropped,
				      .step = w->last_step, .rank = w->o.journal_rank > 0 ? w->o.journal_rank : -1 });
}

static void beat(struct writer *w, double now)
{
	if (now < w->heartbeat_s)
		return;
	w->heartbeat_s = now + HEARTBEAT_S;
	encode_heartbeat(journal_buf(w->o.journal), clock_wall_s(), ++w->heartbeats);
}

static void sync_if_due(struct writer *w)
{
	if (!w->dirty || !syncer_due(w->syncer))
		return;
	w->dirty = false;
	syncer_post(w->syncer, journal_dup(w->o.journal));
}

static void end_records(struct writer *w)
{
	struct buf *b = journal_buf(w->o.journal);

	if (w->ended || w->status == EVENT_RUNNING)
		return;
	w->ended = true;
	encode_status(b, clock_wall_s(), w->status, (struct event_text){ "", 0 });
	if (w->status == EVENT_FINISHED || w->status == EVENT_FAILED || w->status == EVENT_KILLED)
		records_end(w->o.records, b, w->status);
}

/* One round; true when everything that was queued before is in the file. */
static bool round_once(struct writer *w, bool flush, bool stop)
{
	double now = clock_mono_s();

	drain(w, flush || stop);
	if (!w->draining && !w->stuck) {
		say_dropped(w, now, flush || stop);
		console_capture_take(w->o.printed, journal_buf(w->o.journal), stop);
		if (stop)
			end_records(w);
		else
			beat(w, now);
		if (journal_buf(w->o.journal)->len)
			put(w);
	}
	return !w->draining && !w->stuck;
}

/* What is still queued when the disk has refused for too long. */
static void give_up(struct writer *w)
{
	while (log_queue_next(w->o.lanes))
		w->lost++;
	log_queue_take(w->o.lanes);
	while (log_queue_next(w->o.lanes))
		w->lost++;
}

static void *writer_main(void *arg)
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
		wanted = w->flush_wanted;
		pthread_mutex_unlock(&w->lock);
		whole = round_once(w, wanted != w->flush_done, stop);
		pthread_mutex_lock(&w->lock);
		*(whole ? &w->flush_done : &w->flush_refused) = wanted;
		pthread_cond_broadcast(&w->moved);
		pthread_mutex_unlock(&w->lock);
		if (!whole && stop && clock_mono_s() - w->stuck_s > GIVE_UP_S) {
			give_up(w);
			break;
		}
		sync_if_due(w);
		warn_deliver(w->o.warn, false);
	}
	w->sync_rc = syncer_stop(w->syncer, journal_dup(w->o.journal), &sync_err);
	if (!w->stuck)
		w->err = sync_err;
	pthread_mutex_lock(&w->lock);
	w->through = true;
	pthread_cond_broadcast(&w->moved);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int writer_start(struct writer **ret, const struct writer_opts *opts, struct err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	sigset_t all, before;
	int rc;

	if (!w)
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = syncer_start(&w->syncer, opts->warn, err);
	if (rc) {
		free(w);
		return rc;
	}
	w->o = *opts;
	w->heartbeat_s = clock_mono_s() + HEARTBEAT_S;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->moved);
	sigfillset(&all); /* signals belong to the host program's threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
	wanted = ++w->flush_wanted;
	log_queue_wake(w->o.lanes);
	while (w->flush_done < wanted && w->flush_refused < wanted && cond_wait_until(&w->moved, &w->lock, until_s))
		;
	rc = w->flush_done < wanted ? ERR_BUSY : 0;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* False when the thread hangs in the system. */
static bool join_in_time(struct writer *w)
{
	const double until_s = clock_mono_s() + HANG_S;
	bool through;

	pthread_mutex_lock(&w->lock);
	while (!w->through && cond_wait_until(&w->moved, &w->lock, until_s))
		;
	through = w->through;
	pthread_mutex_unlock(&w->lock);
	return through && !pthread_join(w->thread, NULL);
}

int writer_stop(struct writer *w, enum event_status status, uint64_t *ret_lost, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	w->status = status;
	pthread_mutex_unlock(&w->lock);
	log_queue_wake(w->o.lanes);
	if (!join_in_time(w))
		return err_set(err, ERR_BUSY, "the disk of %s does not answer", journal_path(w->o.journal));
	if (w->stuck || w->sync_rc) {
		rc = w->err.code;
		err_set(err, rc, "%s", w->err.text);
	}
	*ret_lost = w->lost;
	pthread_cond_destroy(&w->moved);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return rc;
}
