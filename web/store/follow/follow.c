/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c: the follower's thread: learns what is stored, scans in steps, reads what changed, sleeps. */
#include "web/store/follow/follow_inside.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/base/thread.h"
#include "tracker/event/event.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"

#define LEARN_ROWS 1000 /* per query */
#define NEWEST_ROWS 100 /* per query: each may cost the disk some reads */
#define NEWEST_MAX 5000 /* the scan finds further ones soon enough */
#define UNDER_WAY_MAX 64
#define UNDER_WAY_BYTES ((size_t)16 << 20)
#define GATHER_S 0.05  /* writes close together share a commit */
#define STAND_BY_S 1.0 /* time until the next check for the lease */
#define STEP_S 0.02    /* time to scan, then to read: neither waits long for the other */

/* ---- files: found by the tree, or stored earlier ---- */

/* A file, or all of a folder, has another name or none. */
static void note_missing_below(struct follow *f, const char *path)
{
	struct follow_file *file = map_get(f->files, path, strlen(path));
	size_t n = strlen(path), i;

	if (file) {
		follow_missing(f, file);
		return;
	}
	for (i = 0; i < map_count(f->files); i++) {
		file = map_at(f->files, i);
		if (!strncmp(file->path, path, n) && file->path[n] == '/')
			follow_missing(f, file);
	}
}

/* A tree_found. */
static void note_found_file(void *arg, const struct tree_file *found)
{
	struct follow *f = arg;
	struct follow_file *file;

	if (found->gone) {
		note_missing_below(f, found->path);
		return;
	}
	file = follow_file_of(f, found->path);
	if (found->denied) {
		follow_denied(f, file, found->denied);
		return;
	}
	file->seen = f->scan.number;
	f->scan.recognised = f->scan.recognised || (file->source && file->asked && found->scanned);
	if (found->linked)
		follow_glance_at(f, file, INFINITY);
	else if (!tree_watching(f->scan.tree) && found->bytes >= 0 &&
		 clock_wall_s() - (double)found->time_s < FOLLOW_GROWS_S)
		follow_glance_at(f, file, FOLLOW_GROWS_S);
	if (found->scanned && file->asked && !file->under_way && !file->dead && found->bytes >= 0 &&
	    (uint64_t)found->bytes <= file->offset &&
	    (!file->source ||
	     (!file->alias && (uint64_t)found->bytes == file->offset && (!file->inode || file->inode == found->inode) &&
	      (!file->time_ns || file->time_ns == found->time_ns))))
		return; /* unchanged */
	if (!f->shared.scanned && found->scanned && !file->first) {
		file->first = true;
		pthread_mutex_lock(&f->shared.lock);
		f->shared.first_left++;
		pthread_mutex_unlock(&f->shared.lock);
	}
	follow_enqueue(f, file, found->scanned ? FOLLOW_REST : FOLLOW_URGENT);
}

static struct follow_file *learn_stored_file(struct follow *f, struct db_rows *q)
{
	const char *path = db_str(q, COL_writer_paths_path);
	struct follow_file *file = follow_file_of(f, path);
	uint64_t durable = (uint64_t)db_i64(q, COL_writer_paths_durable);
	int rank, segment;

	if (file->asked)
		return file;
	file->offset = durable;
	file->asked = true;
	/* our own journals name their run themselves */
	if (db_i32(q, COL_writer_paths_rank) == EVENT_RANK_RUN || origin_is_rank(path, &rank, &segment))
		follow_source_learn(f, file, db_str(q, COL_writer_paths_run), db_str(q, COL_writer_paths_writer),
				    durable);
	return file;
}

/* Reads some stored offsets of files of recently changed runs, which are read before the scan finds them. */
static int learn_newest_files(struct follow *f, struct err *err)
{
	struct follow_newest *at = &f->learned.newest_at;
	struct follow_file *file;
	size_t before = f->learned.newest_count;
	struct db_rows *q;
	struct db *d = NULL;
	int rc = readers_take(f->s, &d, err);

	if (!rc)
		rc = db_start(d, &q, DB_writer_paths_newest, err, "iiii", at->rev, at->run, at->writer,
			      (int64_t)NEWEST_ROWS);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		file = learn_stored_file(f, q);
		if (file) {
			tree_watch_file(f->scan.tree, file->path);
			follow_enqueue(f, file, FOLLOW_RECENT);
		}
		*at = (struct follow_newest){ db_i64(q, COL_writer_paths_rev), db_i64(q, COL_writer_paths_run_id),
					      db_i64(q, COL_writer_paths_id) };
		f->learned.newest_count++;
		rc = 0;
	}
	readers_give(f->s, d);
	f->learned.knows_newest = rc || f->learned.newest_count == before || f->learned.newest_count >= NEWEST_MAX;
	return rc;
}

/* Reads the writers of event files that are gone. */
static int learn_gone_sources(struct follow *f, struct db *d, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_writer_paths_gone, err, "");

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		follow_source_learn(f, NULL, db_str(q, COL_writer_paths_run), db_str(q, COL_writer_paths_writer),
				    (uint64_t)db_i64(q, COL_writer_paths_durable));
		rc = 0;
	}
	return rc;
}

/* Reads stored offsets of some files by path, so that a restart opens only files that grew. */
static int learn_some_files(struct follow *f, struct err *err)
{
	int64_t before = f->learned.row;
	struct db *d;
	struct db_rows *q;
	int rc = readers_take(f->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_writer_paths, err, "ii", f->learned.row, (int64_t)LEARN_ROWS);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		learn_stored_file(f, q);
		f->learned.row = db_i64(q, COL_writer_paths_id);
		rc = 0;
	}
	if (!rc && f->learned.row == before)
		rc = learn_gone_sources(f, d, err);
	readers_give(f->s, d);
	f->learned.knows_all = rc || f->learned.row == before;
	return rc;
}

/* ---- the thread ---- */

static bool follow_is_stopped(struct follow *f)
{
	struct follow_shared *s = &f->shared;
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stopping || (f->once && s->scanned && s->first_left == 0 && s->under_way == 0 && !s->unsettled &&
			       !follow_waiting(f));
	pthread_mutex_unlock(&s->lock);
	return stop;
}

/* Leaves room for other writers. */
static bool may_send(const struct follow *f)
{
	return f->shared.under_way < UNDER_WAY_MAX && f->shared.under_way_bytes < UNDER_WAY_BYTES;
}

static void send_some_files(struct follow *f, double for_s)
{
	double until_s = clock_mono_s() + for_s;

	while (may_send(f) && follow_waiting(f) && !follow_is_stopped(f) && clock_mono_s() < until_s) {
		follow_read(f, follow_dequeue(f));
		follow_collect(f);
	}
}

/* Updates the progress of the scan. */
static void update_scan_progress(struct follow *f)
{
	pthread_mutex_lock(&f->shared.lock);
	f->shared.stats.files = map_count(f->files);
	f->shared.stats.folders = tree_folders(f->scan.tree);
	pthread_mutex_unlock(&f->shared.lock);
}

static void publish_follow_state(struct follow *f, int rc, const struct err *err)
{
	update_scan_progress(f);
	pthread_mutex_lock(&f->shared.lock);
	f->shared.stats.scans++;
	f->shared.stats.polling = !tree_watching(f->scan.tree);
	if (rc)
		snprintf(f->shared.stats.note, sizeof(f->shared.stats.note), "%.250s", err->text);
	else if (f->shared.stats.polling && !f->poll_wanted)
		snprintf(f->shared.stats.note, sizeof(f->shared.stats.note),
			 "cannot watch for changes (fs.inotify limits): polling every %.1f s", f->poll_s);
	if (!f->shared.scanned) {
		f->shared.scan_code = rc;
		f->shared.scan_err = *err;
		f->shared.scanned = true;
		pthread_cond_broadcast(&f->shared.changed);
	}
	pthread_mutex_unlock(&f->shared.lock);
}

static void begin_follow_scan(struct follow *f)
{
	f->scan.began_s = clock_mono_s();
	f->scan.running = true;
	f->scan.number++;
	tree_scan_begin(f->scan.tree);
}

/* Reads some stored offsets; on failure each file's is read when needed. */
static void learn_more_files(struct follow *f)
{
	struct err err = ERR_INIT;

	if (f->learned.knows_all)
		return;
	if (f->learned.knows_newest ? learn_some_files(f, &err) : learn_newest_files(f, &err))
		follow_note(f, f->root, err.text);
}

/* Scans for one step; files found so far are read in between. */
static void look_at_more(struct follow *f)
{
	struct err err = ERR_INIT;
	int rc;

	learn_more_files(f);
	rc = tree_step(f->scan.tree, STEP_S, &err);
	f->scan.more_to_see = rc > 0 || !f->learned.knows_all;
	if (rc > 0 || !f->scan.running || (!rc && !f->learned.knows_all)) {
		update_scan_progress(f);
		return;
	}
	f->scan.running = false;
	if (!rc)
		follow_missing_unseen(f);
	/* Polling takes at most a twentieth of the time. */
	f->scan.next_s = clock_mono_s() + f->poll_s + 20 * (clock_mono_s() - f->scan.began_s);
	publish_follow_state(f, rc, &err);
}

/* Seconds until something is due without an event; negative: never. */
static double wait_time(const struct follow *f)
{
	double now = clock_mono_s(), due = f->s->live ? f->lease.renewed_s + LEASE_RENEW_S : -1;

	if (f->scan.more_to_see || (follow_waiting(f) && may_send(f)))
		return 0;
	if (!tree_watching(f->scan.tree))
		due = due < 0 || f->scan.next_s < due ? f->scan.next_s : due;
	if (f->reading.glances && (due < 0 || f->reading.next_glance_s < due))
		due = f->reading.next_glance_s;
	if (f->scan.sweep_at_s > 0 && (due < 0 || f->scan.sweep_at_s < due))
		due = f->scan.sweep_at_s;
	if (f->reading.lines[FOLLOW_REFUSED].first && (due < 0 || f->reading.retry_at_s < due))
		due = f->reading.retry_at_s;
	return due < 0 ? -1 : due > now ? due - now : 0;
}

static void sleep_until_news(struct follow *f, double wait_s)
{
	struct pollfd fds[2] = { { .fd = f->wake_fd, .events = POLLIN },
				 { .fd = tree_fd(f->scan.tree), .events = POLLIN } };
	uint64_t drained;

	poll(fds, fds[1].fd < 0 ? 1 : 2, wait_s < 0 ? -1 : wait_s > 0 ? (int)(wait_s * 1000) + 1 : 0);
	while (read(f->wake_fd, &drained, sizeof(drained)) > 0)
		;
	if (fds[1].revents && wait_s != 0 && f->shared.first_left == 0)
		clock_sleep_s(GATHER_S);
}

static void follow_look_around(struct follow *f)
{
	double now = clock_mono_s();

	tree_events(f->scan.tree);
	if (!f->scan.running && !tree_watching(f->scan.tree) && now >= f->scan.next_s)
		begin_follow_scan(f);
	look_at_more(f);
	if (f->reading.glances && !f->once && now >= f->reading.next_glance_s)
		follow_glance(f);
	if (now >= f->reading.retry_at_s)
		follow_requeue_refused(f);
	follow_sweep(f);
}

/* Another process follows the folder, or the lease is unknown: ends waits for the first scan. */
static void wait_as_standby(struct follow *f, int rc, const struct err *err)
{
	f->leads = false;
	pthread_mutex_lock(&f->shared.lock);
	snprintf(f->shared.stats.note, sizeof(f->shared.stats.note), "%.250s",
		 rc ? err->text : "another process follows this folder");
	f->shared.scanned = true;
	f->shared.scan_code = 0;
	pthread_cond_broadcast(&f->shared.changed);
	pthread_mutex_unlock(&f->shared.lock);
	tree_events(f->scan.tree); /* drains events of a folder that was ours */
	if (!follow_is_stopped(f))
		sleep_until_news(f, STAND_BY_S);
}

/* A new leader scans the whole folder. */
static void begin_leading(struct follow *f)
{
	if (f->leads)
		return;
	f->leads = true;
	pthread_mutex_lock(&f->shared.lock);
	f->shared.stats.note[0] = '\0';
	pthread_mutex_unlock(&f->shared.lock);
	begin_follow_scan(f);
}

/* The follower's thread: works while it has the lease, then waits for ranges in transfer. */
static void *run_follow(void *arg)
{
	struct follow *f = arg;
	struct err err = ERR_INIT;
	int rc;

	while (!follow_is_stopped(f)) {
		rc = lease_take(&f->lease, &err);
		if (rc <= 0) {
			wait_as_standby(f, rc, &err);
			continue;
		}
		begin_leading(f);
		follow_look_around(f);
		send_some_files(f, STEP_S);
		follow_collect(f);
		if (!follow_is_stopped(f))
			sleep_until_news(f, wait_time(f));
		follow_collect(f);
	}
	pthread_mutex_lock(&f->shared.lock);
	while (f->shared.under_way > 0) {
		pthread_mutex_unlock(&f->shared.lock);
		sleep_until_news(f, 0.1);
		follow_collect(f);
		pthread_mutex_lock(&f->shared.lock);
	}
	pthread_mutex_unlock(&f->shared.lock);
	lease_give(&f->lease);
	return NULL;
}

static void follow_free(struct follow *f)
{
	tree_close(f->scan.tree);
	map_free(f->files);
	follow_sources_free(f);
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	pthread_cond_destroy(&f->shared.changed);
	pthread_mutex_destroy(&f->shared.lock);
	free(f);
}

/* Equal paths on two machines are two folders, except on a network filesystem. */
static void name_lease(struct follow *f, bool network)
{
	struct utsname u = { .nodename = "" };
	char name[256], digest[65];

	uname(&u);
	sha256_hex(f->root, strlen(f->root), digest);
	snprintf(name, sizeof(name), "follow %.80s %.16s", network ? "-" : u.nodename, digest);
	lease_init(&f->lease, f->s, name);
}

static int prepare_follow(struct follow *f, const struct follow_opts *o, struct err *err)
{
	char store[PATH_MAX];
	const char *slash;

	if (!realpath(o->logdir, f->root))
		return err_set_errno(err, errno, "%s", o->logdir);
	f->own_store = realpath(f->s->path, store) && !strncmp(store, f->root, strlen(f->root)) &&
		       store[strlen(f->root)] == '/';
	name_lease(f, o->network);
	slash = strrchr(f->root, '/');
	snprintf(f->name, sizeof(f->name), "%s", slash && slash[1] ? slash + 1 : "runs");
	f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f->files = map_new(sizeof(struct follow_file));
	follow_sources_init(f);
	if (f->wake_fd < 0)
		return err_set_errno(err, errno, "cannot follow %s", f->root);
	f->scan.tree = tree_open(&(struct tree_opts){ f->root, !o->poll && !o->once, note_found_file, f });
	return 0;
}

int follow_start(struct follow **ret, struct store *s, const struct follow_opts *o, struct err *err)
{
	struct follow *f = mem_zalloc(sizeof(*f));
	int rc, i;

	f->s = s;
	f->once = o->once;
	f->poll_wanted = o->poll || o->once;
	f->poll_s = o->poll_s > 0 ? o->poll_s : 0.5;
	f->learned.newest_at = (struct follow_newest){ INT64_MAX, INT64_MAX, INT64_MAX };
	for (i = 0; i < FOLLOW_TURNS; i++)
		f->reading.lines[i].end = &f->reading.lines[i].first;
	f->wake_fd = -1;
	pthread_mutex_init(&f->shared.lock, NULL);
	cond_init(&f->shared.changed);
	rc = prepare_follow(f, o, err);
	if (!rc && thread_start(&f->thread, run_follow, f))
		rc = err_set(err, ERR_IO, "cannot start a thread");
	if (rc) {
		follow_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

int follow_scan_wait(struct follow *f, double wait_s, struct err *err)
{
	double until_s = wait_s < 0 ? INFINITY : clock_mono_s() + wait_s;
	bool in_time = true;
	int rc = 0;

	pthread_mutex_lock(&f->shared.lock);
	while (in_time && !f->shared.stopping && (!f->shared.scanned || f->shared.first_left || f->shared.unsettled))
		in_time = cond_wait_until(&f->shared.changed, &f->shared.lock, until_s);
	if (!f->shared.scanned || f->shared.first_left || f->shared.unsettled)
		rc = err_set(err, f->shared.stopping ? ERR_CANCELED : ERR_BUSY, "%s is still being read", f->root);
	else if (f->shared.scan_code) {
		rc = f->shared.scan_code;
		if (err)
			*err = f->shared.scan_err;
	}
	pthread_mutex_unlock(&f->shared.lock);
	return rc;
}

void follow_stats(struct follow *f, struct follow_stats *ret)
{
	pthread_mutex_lock(&f->shared.lock);
	*ret = f->shared.stats;
	ret->scanning = !f->shared.scanned || f->shared.first_left;
	ret->files_waiting = f->shared.first_left;
	pthread_mutex_unlock(&f->shared.lock);
}

void follow_stop(struct follow *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->shared.lock);
	f->shared.stopping = true;
	pthread_cond_broadcast(&f->shared.changed);
	pthread_mutex_unlock(&f->shared.lock);
	follow_wake(f);
	pthread_join(f->thread, NULL);
	follow_free(f);
}
