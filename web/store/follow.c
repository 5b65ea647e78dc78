/* follow.c: reads the files that the tree finds, a range at a time, and hands whole records to the writer's thread. One
 * range of a file is under way at once; what the store says is durable is where the next one begins. */
#include "web/store/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/limits.h"
#include "tracker/event/record.h"
#include "web/store/ingest.h"
#include "web/store/inside.h"
#include "web/store/map.h"
#include "web/store/readers.h"
#include "web/store/tree.h"

#define RANGE_BYTES ((size_t)1 << 20)
#define RANGE_BYTES_MAX ((size_t)96 << 20) /* a longer record ends its file */
#define UNDER_WAY_MAX 64
#define GATHER_S 0.05  /* writes that come close together share a commit */
#define RETRY_S 2.0
#define LINKED_S 0.5   /* how often linked files are looked at */

enum file_kind { FILE_UNKNOWN, FILE_OURS, FILE_FOREIGN };

struct file {
	struct follow *f;
	struct file *next;      /* in one of the lists */
	const char *path;
	enum file_kind kind;
	char run[33], writer[33];
	uint64_t offset;        /* stored up to here */
	uint64_t size;          /* when it was read last */
	size_t range;           /* bytes of the next read */
	bool asked;             /* offset comes from the store */
	bool queued, under_way;
	bool linked, dead;
	bool gone;              /* of a run that was removed for good: never read again */
	uint64_t dead_size;     /* a dead file is looked at again when its size changes */
	bool first;             /* of the first scan, not read to its end yet */
	int result;             /* of the range that was under way */
};

struct follow {
	struct store *s;
	char root[PATH_MAX], name[NAME_MAX + 1]; /* name: the folder's own */
	bool poll_wanted, once;
	double poll_s;
	struct tree *tree;
	struct map *files;      /* path -> struct file */
	struct file *queue, **queue_end;
	struct file *retry;     /* refused by the disk */
	double retry_at_s;
	size_t linked_count;
	int wake_fd;
	pthread_t thread;
	/* shared with the writer's thread and callers */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct file *done;      /* answered, in any order */
	int under_way;
	uint64_t first_left;
	bool scanned, stopping;
	int scan_code;
	struct err scan_err;
	struct follow_stats stats;
};

static void wake(struct follow *f)
{
	uint64_t one = 1;

	if (write(f->wake_fd, &one, sizeof one) < 0)
		return;
}

static void note(struct follow *f, const char *path, const char *text)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->stats.note, sizeof f->stats.note, "%.100s: %.150s", path, text);
	pthread_mutex_unlock(&f->lock);
}

static void enqueue(struct follow *f, struct file *file)
{
	/* One that is under way is looked at again when it comes back. */
	if (file->under_way || file->queued)
		return;
	file->queued = true;
	file->next = NULL;
	*f->queue_end = file;
	f->queue_end = &file->next;
}

static void settle_first(struct follow *f, struct file *file)
{
	if (!file->first)
		return;
	file->first = false;
	pthread_mutex_lock(&f->lock);
	if (--f->first_left == 0 && f->scanned)
		pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void kill_file(struct follow *f, struct file *file, const char *why)
{
	file->dead = true;
	file->dead_size = file->size;
	note(f, file->path, why);
	pthread_mutex_lock(&f->lock);
	f->stats.files_bad++;
	pthread_mutex_unlock(&f->lock);
	settle_first(f, file);
}

static struct file *file_of(struct follow *f, const char *path)
{
	struct file *file = map_put(f->files, path, strlen(path));

	if (file && !file->f) {
		file->f = f;
		file->range = RANGE_BYTES;
		file->path = map_text(f->files, path);
	}
	return file;
}

static void on_found(void *arg, const char *path, bool linked)
{
	struct follow *f = arg;
	struct file *file = file_of(f, path);

	if (!file)
		return;
	f->linked_count += linked && !file->linked;
	file->linked = file->linked || linked;
	if (!f->scanned && !file->first) {
		file->first = true;
		pthread_mutex_lock(&f->lock);
		f->first_left++;
		pthread_mutex_unlock(&f->lock);
	}
	enqueue(f, file);
}

/* What the store knows of files by their path, so that a restart opens only those that grew. */
static int load_known(struct follow *f, struct err *err)
{
	struct db *d;
	sqlite3_stmt *q;
	int rc = readers_take(f->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_writer_paths, err, "");
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		struct file *file = file_of(f, (const char *)sqlite3_column_text(q, 0));

		rc = 0;
		if (!file)
			continue;
		snprintf(file->run, sizeof file->run, "%s", (const char *)sqlite3_column_text(q, 1));
		snprintf(file->writer, sizeof file->writer, "%s", (const char *)sqlite3_column_text(q, 2));
		file->offset = (uint64_t)sqlite3_column_int64(q, 3);
		file->asked = true;
	}
	readers_give(f->s, d);
	return rc;
}

/* The path of a foreign run: of the folder that holds the file. */
static void foreign_folder(const struct file *file, char ret[PATH_MAX])
{
	const char *slash = strrchr(file->path, '/');

	snprintf(ret, PATH_MAX, "%.*s", slash ? (int)(slash - file->path) : 1, slash ? file->path : ".");
}

static void identify_foreign(struct file *file)
{
	char folder[PATH_MAX], hex[65];

	foreign_folder(file, folder);
	sha256_hex(folder, strlen(folder), hex);
	memcpy(file->run, hex, 32);
	sha256_hex(file->path, strlen(file->path), hex);
	/* The second half: a file at the root has its own name as its path, never a run's. */
	memcpy(file->writer, hex + 32, 32);
	file->kind = FILE_FOREIGN;
}

static int identify(struct file *file, const void *bytes, size_t n)
{
	struct event ev;
	struct event_item item;
	struct record rec;
	size_t at = 0;
	enum record_state state = record_next(bytes, n, &at, &rec);

	if (state == RECORD_MORE)
		return 0;
	if (state != RECORD_OK)
		return -1;
	file->kind = FILE_UNKNOWN;
	if (!event_open(&ev, rec.payload, rec.payload_bytes))
		while (event_next(&ev, &item) > 0)
			if (item.kind == EVENT_HEADER) {
				snprintf(file->run, sizeof file->run, "%.32s", item.header->run_id.at);
				snprintf(file->writer, sizeof file->writer, "%.32s", item.header->writer_id.at);
				file->kind = FILE_OURS;
			}
	if (file->kind == FILE_UNKNOWN && strstr(file->path, "tfevents"))
		identify_foreign(file);
	return file->kind == FILE_UNKNOWN ? -1 : 1;
}

static void on_done(void *arg, const struct ingest_result *res)
{
	struct file *file = arg;
	struct follow *f = file->f;

	pthread_mutex_lock(&f->lock);
	file->result = res->code;
	if (!res->code || res->code == ERR_EXISTS || res->code == ERR_CORRUPT)
		file->offset = res->durable;
	if (res->code && res->code != ERR_EXISTS && res->code != ERR_GONE)
		snprintf(f->stats.note, sizeof f->stats.note, "%.100s: %.150s", file->path, res->err.text);
	file->next = f->done;
	f->done = file;
	wake(f);
	pthread_mutex_unlock(&f->lock);
}

static void split_foreign(const struct follow *f, const char *folder, struct ingest_foreign *ret, char first[PATH_MAX])
{
	const char *slash = strchr(folder, '/');

	ret->experiment = "Default";
	ret->name = !strcmp(folder, ".") ? f->name : folder;
	if (!slash)
		return;
	snprintf(first, PATH_MAX, "%.*s", (int)(slash - folder), folder);
	ret->experiment = first;
	ret->name = slash + 1;
}

static int send_range(struct follow *f, struct file *file, const void *bytes, size_t n, struct err *err)
{
	char folder[PATH_MAX], first[PATH_MAX];
	struct ingest_foreign foreign;
	struct ingest_op op = { .kind = INGEST_JOURNAL, .run = file->run, .writer = file->writer, .offset = file->offset,
				.bytes = bytes, .len = n, .path = file->path };
	struct ingest_done done = { on_done, file };
	int rc;

	if (file->kind == FILE_FOREIGN) {
		foreign_folder(file, folder);
		split_foreign(f, folder, &foreign, first);
		op.foreign = &foreign;
	}
	file->under_way = true;
	pthread_mutex_lock(&f->lock);
	f->under_way++;
	f->stats.bytes_read += n;
	pthread_mutex_unlock(&f->lock);
	rc = ingest_submit(f->s, &op, &done, NULL, err);
	if (!rc)
		return 0;
	file->under_way = false;
	pthread_mutex_lock(&f->lock);
	f->under_way--;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static ssize_t read_at(int fd, void *bytes, size_t n, uint64_t offset)
{
	size_t got = 0;
	ssize_t part;

	while (got < n) {
		part = pread(fd, (char *)bytes + got, n - got, (off_t)(offset + got));
		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return got ? (ssize_t)got : -1;
		if (part == 0)
			break;
		got += (size_t)part;
	}
	return (ssize_t)got;
}

/* Makes sure that it is known whose journal it is and how much of it is stored. 1 yes, 0 too short yet, negative bad. */
static int know(struct follow *f, struct file *file, int fd)
{
	char head[4096];
	ssize_t n;
	int rc;

	if (file->kind == FILE_UNKNOWN) {
		n = read_at(fd, head, sizeof head, 0);
		if (n < 0)
			return -1;
		rc = identify(file, head, (size_t)n);
		if (!rc && n == (ssize_t)sizeof head && strstr(file->path, "tfevents")) {
			identify_foreign(file); /* our first records are short */
			rc = 1;
		}
		if (rc <= 0)
			return rc;
	}
	if (!file->asked) {
		rc = ingest_durable(f->s, file->run, file->writer, &file->offset, NULL);
		file->gone = rc == ERR_GONE;
		if (rc && rc != ERR_NOENT && !file->gone)
			return -1;
		file->asked = !file->gone;
	}
	return file->gone ? 0 : 1;
}

static int send_some(struct follow *f, struct file *file, int fd, uint64_t size)
{
	size_t want = size - file->offset < file->range ? (size_t)(size - file->offset) : file->range;
	struct err err = ERR_INIT;
	void *bytes = malloc(want);
	ssize_t n;
	int rc;

	if (!bytes)
		return -1;
	n = read_at(fd, bytes, want, file->offset);
	/* A tail without one whole record is left for later, or for a longer read. */
	if (n > 0 && record_whole(bytes, (size_t)n) == 0) {
		struct record rec;
		size_t at = 0;

		if (record_next(bytes, (size_t)n, &at, &rec) == RECORD_MORE) {
			if ((size_t)n == file->range && file->range < RANGE_BYTES_MAX) {
				file->range *= 4;
				free(bytes);
				return 1;
			}
			n = (size_t)n == file->range ? -2 : 0;
		}
	}
	rc = n > 0 ? send_range(f, file, bytes, (size_t)n, &err) : 0;
	free(bytes);
	if (rc && rc != ERR_CANCELED)
		kill_file(f, file, err.text);
	if (n == -2)
		kill_file(f, file, "a record is longer than 96 MiB; the file is read up to there");
	return n < 0 || rc ? -1 : 0;
}

/* Reads on in a file, unless there is nothing new. */
static void pump(struct follow *f, struct file *file)
{
	char full[PATH_MAX * 2];
	struct stat sb;
	int fd, rc;

	snprintf(full, sizeof full, "%s/%s", f->root, file->path);
	if (file->gone || stat(full, &sb) || !S_ISREG(sb.st_mode) || (file->asked && (uint64_t)sb.st_size <= file->offset) ||
	    (file->dead && (uint64_t)sb.st_size == file->dead_size)) {
		settle_first(f, file);
		return;
	}
	file->size = (uint64_t)sb.st_size;
	file->dead = false;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		note(f, file->path, strerror(errno));
		settle_first(f, file);
		return;
	}
	rc = know(f, file, fd);
	if (rc < 0)
		kill_file(f, file, "not a journal or event file");
	while (rc > 0 && (uint64_t)sb.st_size > file->offset)
		if ((rc = send_some(f, file, fd, (uint64_t)sb.st_size)) <= 0)
			break;
	close(fd);
	if (!file->under_way)
		settle_first(f, file);
}

static void finish_file(struct follow *f, struct file *file)
{
	file->under_way = false;
	switch (file->result) {
	case 0:
	case ERR_EXISTS:
		enqueue(f, file);
		break;
	case ERR_NOSPC:
	case ERR_IO:
	case ERR_BUSY:
	case ERR_NOMEM:
		file->next = f->retry;
		f->retry = file;
		f->retry_at_s = clock_mono_s() + RETRY_S;
		settle_first(f, file);
		break;
	case ERR_CANCELED:
	case ERR_GONE:
		file->gone = file->result == ERR_GONE;
		settle_first(f, file);
		break;
	default:
		file->dead = true;
		file->dead_size = file->size;
		pthread_mutex_lock(&f->lock);
		f->stats.files_bad++;
		pthread_mutex_unlock(&f->lock);
		settle_first(f, file);
	}
}

static void collect(struct follow *f)
{
	struct file *file, *next;

	pthread_mutex_lock(&f->lock);
	file = f->done;
	f->done = NULL;
	pthread_mutex_unlock(&f->lock);
	for (; file; file = next) {
		next = file->next;
		pthread_mutex_lock(&f->lock);
		f->under_way--;
		pthread_mutex_unlock(&f->lock);
		finish_file(f, file);
	}
}

static bool stopped(struct follow *f)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	stop = f->stopping || (f->once && f->first_left == 0 && f->under_way == 0);
	pthread_mutex_unlock(&f->lock);
	return stop;
}

static void pump_queue(struct follow *f)
{
	while (f->queue && f->under_way < UNDER_WAY_MAX && !stopped(f)) {
		struct file *file = f->queue;

		f->queue = file->next;
		if (!f->queue)
			f->queue_end = &f->queue;
		file->queued = false;
		pump(f, file);
		collect(f);
	}
}

static void look_at_linked(struct follow *f)
{
	size_t i;

	for (i = 0; i < map_count(f->files) && f->linked_count; i++) {
		struct file *file = map_at(f->files, i);

		if (file->linked)
			enqueue(f, file);
	}
}

static void requeue_refused(struct follow *f)
{
	struct file *file = f->retry, *next;

	f->retry = NULL;
	for (; file; file = next) {
		next = file->next;
		enqueue(f, file);
	}
}

static void publish(struct follow *f, int rc, const struct err *err)
{
	pthread_mutex_lock(&f->lock);
	f->stats.scans++;
	f->stats.files = map_count(f->files);
	f->stats.folders = tree_folders(f->tree);
	f->stats.polling = !tree_watching(f->tree);
	if (rc)
		snprintf(f->stats.note, sizeof f->stats.note, "%.250s", err->text);
	else if (f->stats.polling && !f->poll_wanted)
		snprintf(f->stats.note, sizeof f->stats.note, "changes cannot be watched here (fs.inotify limits); looking for them "
			 "every %.1f s", f->poll_s);
	if (!f->scanned) {
		f->scan_code = rc;
		f->scan_err = *err;
		f->scanned = true;
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
}

static void scan(struct follow *f)
{
	struct err err = ERR_INIT;
	int rc = tree_scan(f->tree, &err);

	publish(f, rc, &err);
}

/* Seconds until something is due without a sign from outside; negative: never. */
static double wait_time(const struct follow *f, double next_scan_s, double next_linked_s)
{
	double now = clock_mono_s(), due = -1;

	if (f->queue && f->under_way < UNDER_WAY_MAX)
		return GATHER_S;
	if (!tree_watching(f->tree))
		due = next_scan_s;
	if (f->linked_count && (due < 0 || next_linked_s < due))
		due = next_linked_s;
	if (f->retry && (due < 0 || f->retry_at_s < due))
		due = f->retry_at_s;
	return due < 0 ? -1 : due > now ? due - now : 0;
}

static void sleep_until_news(struct follow *f, double wait_s)
{
	struct pollfd fds[2] = { { .fd = f->wake_fd, .events = POLLIN }, { .fd = tree_fd(f->tree), .events = POLLIN } };
	uint64_t drained;

	poll(fds, fds[1].fd < 0 ? 1 : 2, wait_s < 0 ? -1 : (int)(wait_s * 1000) + 1);
	while (read(f->wake_fd, &drained, sizeof drained) > 0)
		;
	if (fds[1].revents && f->first_left == 0)
		clock_sleep_s(GATHER_S);
}

static void *main_loop(void *arg)
{
	struct follow *f = arg;
	struct err err = ERR_INIT;
	double next_scan_s, next_linked_s, began = clock_mono_s();

	scan(f);
	/* Polling takes at most a twentieth of the time. */
	next_scan_s = clock_mono_s() + f->poll_s + 20 * (clock_mono_s() - began);
	next_linked_s = clock_mono_s() + LINKED_S;
	while (!stopped(f)) {
		pump_queue(f);
		collect(f);
		if (stopped(f))
			break;
		if (!f->queue || f->under_way >= UNDER_WAY_MAX)
			sleep_until_news(f, wait_time(f, next_scan_s, next_linked_s));
		collect(f);
		tree_events(f->tree, &err);
		began = clock_mono_s();
		if (!tree_watching(f->tree) && began >= next_scan_s) {
			scan(f);
			next_scan_s = clock_mono_s() + f->poll_s + 20 * (clock_mono_s() - began);
		}
		if (began >= next_linked_s) {
			look_at_linked(f);
			next_linked_s = began + LINKED_S;
		}
		if (f->retry && began >= f->retry_at_s)
			requeue_refused(f);
	}
	pthread_mutex_lock(&f->lock);
	while (f->under_way > 0) {
		pthread_mutex_unlock(&f->lock);
		sleep_until_news(f, 0.1);
		collect(f);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void follow_free(struct follow *f)
{
	tree_close(f->tree);
	map_free(f->files);
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static int prepare(struct follow *f, const struct follow_opts *o, struct err *err)
{
	const char *slash;

	if (!realpath(o->logdir, f->root))
		return err_set_errno(err, errno, "%s", o->logdir);
	slash = strrchr(f->root, '/');
	snprintf(f->name, sizeof f->name, "%s", slash && slash[1] ? slash + 1 : "runs");
	f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f->files = map_new(sizeof(struct file));
	if (f->wake_fd < 0 || !f->files)
		return err_set(err, ERR_NOMEM, "cannot follow %s: out of memory or descriptors", f->root);
	if (tree_open(&f->tree, f->root, !o->poll && !o->once, on_found, f, err))
		return ERR_NOMEM;
	return load_known(f, err);
}

int follow_start(struct follow **ret, struct store *s, const struct follow_opts *o, struct err *err)
{
	struct follow *f = calloc(1, sizeof *f);
	pthread_condattr_t attr;
	int rc;

	if (!f)
		return err_set(err, ERR_NOMEM, "out of memory");
	f->s = s;
	f->once = o->once;
	f->poll_wanted = o->poll || o->once;
	f->poll_s = o->poll_s > 0 ? o->poll_s : 0.5;
	f->queue_end = &f->queue;
	f->wake_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = prepare(f, o, err);
	if (!rc && pthread_create(&f->thread, NULL, main_loop, f))
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
	struct timespec until;
	int rc = 0, waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)wait_s;
	until.tv_nsec += (long)((wait_s - (double)(time_t)wait_s) * 1e9);
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&f->lock);
	while (!waited && !f->stopping && (!f->scanned || f->first_left))
		waited = wait_s < 0 ? pthread_cond_wait(&f->changed, &f->lock)
				    : pthread_cond_timedwait(&f->changed, &f->lock, &until);
	if (!f->scanned || f->first_left)
		rc = err_set(err, f->stopping ? ERR_CANCELED : ERR_BUSY, "%s is still being read", f->root);
	else if (f->scan_code) {
		rc = f->scan_code;
		if (err)
			*err = f->scan_err;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

void follow_stats(struct follow *f, struct follow_stats *ret)
{
	pthread_mutex_lock(&f->lock);
	*ret = f->stats;
	pthread_mutex_unlock(&f->lock);
}

void follow_stop(struct follow *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	wake(f);
	pthread_join(f->thread, NULL);
	follow_free(f);
}
