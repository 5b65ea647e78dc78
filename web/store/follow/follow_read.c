/* SPDX-License-Identifier: Apache-2.0 */
/* follow_read.c: reads files range by range and submits whole records to the writer's thread. One range of a file is
 * in transfer at a time; the next one starts at the durable offset. */
#include "web/store/follow/follow_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/event/record.h"
#include "tracker/mem/mem.h"

#define RANGE_BYTES_MAX ((size_t)96 << 20) /* a longer record ends its file */
#define RETRY_S 2.0
#define BAD_FILES_LOGGED 20

static void count_bad_file(struct follow *f)
{
	pthread_mutex_lock(&f->shared.lock);
	f->shared.stats.files_bad++;
	pthread_mutex_unlock(&f->shared.lock);
}

/* Ignores the file until it changes. */
static void mark_file_dead(struct follow *f, struct follow_file *file)
{
	file->dead = true;
	file->dead_size = file->size;
	count_bad_file(f);
	follow_first_done(f, file);
}

/* Notes and logs what is left out. */
static void report_bad_file(struct follow *f, const struct follow_file *file, const char *why)
{
	follow_note(f, file->path, why);
	if (f->shared.stats.files_bad < BAD_FILES_LOGGED)
		log_warn("%s/%s: %s: left out%s", f->root, file->path, why,
			 f->shared.stats.files_bad + 1 == BAD_FILES_LOGGED ? "; further ones: dptrack doctor" : "");
}

static void give_up_file(struct follow *f, struct follow_file *file, const char *why)
{
	report_bad_file(f, file, why);
	mark_file_dead(f, file);
}

void follow_denied(struct follow *f, struct follow_file *file, int why)
{
	if (file->denied == why)
		return;
	file->denied = why;
	report_bad_file(f, file, strerror(why));
	count_bad_file(f);
}

/* Retries later: the error may be temporary. */
static void postpone_follow_file(struct follow *f, struct follow_file *file)
{
	if (!f->reading.lines[FOLLOW_REFUSED].first)
		f->reading.retry_at_s = clock_mono_s() + RETRY_S;
	follow_enqueue(f, file, FOLLOW_REFUSED);
	follow_first_done(f, file);
}

static void retry_follow_file(struct follow *f, struct follow_file *file, const char *why)
{
	follow_note(f, file->path, why);
	postpone_follow_file(f, file);
}

static void on_range_stored(void *arg, const struct ingest_result *res)
{
	struct follow_file *file = arg;
	struct follow *f = file->f;

	pthread_mutex_lock(&f->shared.lock);
	file->result = res->code;
	if (!res->code || res->code == ERR_EXISTS || res->code == ERR_CORRUPT)
		file->offset = res->durable;
	if (res->code && res->code != ERR_EXISTS && res->code != ERR_GONE)
		snprintf(f->shared.stats.note, sizeof(f->shared.stats.note), "%.100s: %.150s", file->path,
			 res->err.text);
	file->next = f->shared.done;
	f->shared.done = file;
	follow_wake(f);
	pthread_mutex_unlock(&f->shared.lock);
}

/* Submits bytes of a file as a change_journal; on_range_stored receives the result. */
static int send_range(struct follow *f, struct follow_file *file, const void *bytes, size_t n, struct err *err)
{
	struct origin_room room;
	struct ingest_foreign foreign;
	struct ingest_op op = {
		.kind = &change_journal,
		.run = file->origin.run,
		.journal = { .writer = file->origin.writer, .offset = file->offset, .bytes = bytes, .len = n,
			     .path = file->path, .backlog = file->first,
			     .changed_ms = file->time_ns / 1000000 },
	};
	struct ingest_done done = { on_range_stored, file };
	int rc;

	if (file->origin.foreign) {
		origin_names(&file->origin, file->path, f->name, &foreign, &room);
		op.journal.foreign = &foreign;
	}
	file->under_way = true;
	file->sent = n;
	file->sent_end = file->offset + record_whole(bytes, n);
	if (file->sent_end - file->offset >= FOLLOW_TAIL_BYTES)
		memcpy(file->sent_tail, (const char *)bytes + (file->sent_end - file->offset) - FOLLOW_TAIL_BYTES,
		       FOLLOW_TAIL_BYTES);
	else
		file->sent_end = 0; /* the next look reads it from the file */
	pthread_mutex_lock(&f->shared.lock);
	f->shared.under_way++;
	f->shared.under_way_bytes += n;
	f->shared.stats.bytes_read += n;
	pthread_mutex_unlock(&f->shared.lock);
	rc = ingest_submit(f->s, &op, &done, NULL, err);
	if (!rc)
		return 0;
	file->under_way = false;
	pthread_mutex_lock(&f->shared.lock);
	f->shared.under_way--;
	f->shared.under_way_bytes -= n;
	pthread_mutex_unlock(&f->shared.lock);
	return rc;
}

/* Returns true for an exported file of a run that the store has, or that was removed for good: not another run. */
static bool is_stored_export(struct follow *f, const struct origin *o)
{
	uint64_t durable;
	int rc = *o->exported ? ingest_durable(f->s, o->exported, o->content, &durable, NULL) : ERR_NOENT;

	return !rc || rc == ERR_GONE;
}

/* Hparams may be a note on the run of the parent folder. */
static bool place_foreign_file(struct follow *f, struct follow_file *file, const struct stat *sb)
{
	enum tb_hparams kind;

	file->inode = sb->st_ino;
	file->gone = is_stored_export(f, &file->origin);
	if (file->gone)
		return false;
	kind = file->origin.annotates ? TB_HPARAMS_NO : tb_hparams_find(f->root, file->path, !f->once);

	if (kind == TB_HPARAMS_LATER) {
		postpone_follow_file(f, file);
		return false;
	}
	file->origin.annotates = file->origin.annotates || kind == TB_HPARAMS_YES;
	return follow_place(f, file, sb);
}

/* Reads the first records: each time of a foreign file, because it may have been replaced. */
static bool learn_origin(struct follow *f, struct follow_file *file, int fd, const struct stat *sb)
{
	char head[ORIGIN_HEAD_BYTES];
	struct origin o;
	ssize_t n;
	int rc;

	if (file->origin.known && !file->source)
		return true;
	n = file_read(fd, 0, head, sizeof(head));
	if (n < 0) {
		retry_follow_file(f, file, strerror(errno));
		return false;
	}
	rc = origin_find(&o, file->path, head, (size_t)n);
	if (file->source)
		return follow_same(f, file, rc > 0 && o.foreign ? o.content : "", sb, fd);
	file->origin = o;
	if (rc < 0)
		give_up_file(f, file, "not a journal or event file");
	return rc > 0 && (!o.foreign || place_foreign_file(f, file, sb));
}

/* Reads the durable offset. */
static bool learn_offset(struct follow *f, struct follow_file *file)
{
	struct err err = ERR_INIT;
	int rc;

	if (file->asked)
		return true;
	rc = ingest_durable(f->s, file->origin.run, file->origin.writer, &file->offset, &err);
	file->gone = rc == ERR_GONE;
	file->asked = !rc || rc == ERR_NOENT;
	if (!file->asked && !file->gone)
		retry_follow_file(f, file, err.text);
	return file->asked;
}

/* Keeps all n bytes, or none if they are less than a record. 1: read a larger range. */
static int look_for_record(struct follow *f, struct follow_file *file, const void *bytes, ssize_t *n)
{
	struct record rec;
	size_t at = 0;

	if (*n <= 0 || record_whole(bytes, (size_t)*n) > 0 || record_next(bytes, (size_t)*n, &at, &rec) != RECORD_MORE)
		return 0;
	if ((size_t)*n < file->range) {
		*n = 0;
		return 0;
	}
	if (file->range < RANGE_BYTES_MAX) {
		file->range *= 4;
		return 1;
	}
	*n = 0;
	give_up_file(f, file, "a record is longer than 96 MiB: the file is read up to it");
	return 0;
}

/* 1: call it again. */
static int send_some(struct follow *f, struct follow_file *file, int fd)
{
	size_t want = file->size - file->offset < file->range ? (size_t)(file->size - file->offset) : file->range;
	struct err err = ERR_INIT;
	void *bytes = mem_alloc(want);
	ssize_t n = file_read(fd, file->offset, bytes, want);
	int more = look_for_record(f, file, bytes, &n), rc = 0;

	if (n < 0)
		retry_follow_file(f, file, strerror(errno));
	else if (n > 0 && !more)
		rc = send_range(f, file, bytes, (size_t)n, &err);
	free(bytes);
	if (rc && rc != ERR_CANCELED)
		give_up_file(f, file, err.text);
	return more;
}

static int64_t mtime_ns(const struct stat *sb)
{
	return (int64_t)sb->st_mtim.tv_sec * 1000000000 + sb->st_mtim.tv_nsec;
}

/* A file that has not changed, or is not read any more. */
static bool is_up_to_date(const struct follow_file *file, const struct stat *sb)
{
	const uint64_t size = (uint64_t)sb->st_size;

	if (file->missing_s > 0 || (file->dead && size == file->dead_size))
		return true;
	if (file->gone)
		return !file->inode || file->inode == sb->st_ino;
	if (file->source && ((file->inode && file->inode != sb->st_ino) || size < file->offset ||
			     (file->time_ns && file->time_ns != mtime_ns(sb))))
		return false;
	return file->alias ? size == file->alias_size : file->asked && size <= file->offset;
}

void follow_read(struct follow *f, struct follow_file *file)
{
	char full[PATH_MAX * 2];
	struct stat sb;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", f->root, file->path);
	if (stat(full, &sb) || !S_ISREG(sb.st_mode)) {
		if (file->seen || file->inode)
			follow_missing(f, file);
		follow_first_done(f, file);
		return;
	}
	if (is_up_to_date(file, &sb)) {
		follow_first_done(f, file);
		return;
	}
	if (!file->first && !tree_watching(f->scan.tree))
		follow_glance_at(f, file, FOLLOW_GROWS_S);
	file->size = (uint64_t)sb.st_size;
	file->time_ns = mtime_ns(&sb);
	file->dead = file->gone = false;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		follow_denied(f, file, errno);
		follow_first_done(f, file);
		return;
	}
	file->denied = 0;
	if (learn_origin(f, file, fd, &sb) && learn_offset(f, file) && file->size > file->offset)
		while (send_some(f, file, fd))
			;
	close(fd);
	if (!file->under_way && !file->turn)
		follow_first_done(f, file);
}

/* Handles the result of a range: requeue, retry later, or ignore the file. */
static void finish_follow_file(struct follow *f, struct follow_file *file)
{
	enum follow_turn again = file->again;

	file->under_way = false;
	file->again = FOLLOW_NOWHERE;
	file->tail.known = file->offset == file->sent_end;
	memcpy(file->tail.bytes, file->sent_tail, sizeof(file->tail.bytes));
	switch (file->result) {
	case 0:
	case ERR_EXISTS:
		follow_enqueue(f, file, again ? again : file->first ? FOLLOW_REST : FOLLOW_URGENT);
		break;
	case ERR_NOSPC:
	case ERR_IO:
	case ERR_BUSY:
	case ERR_NOMEM:
	case ERR_DAMAGED: /* the store is damaged: until a backup is restored */
		postpone_follow_file(f, file);
		break;
	case ERR_CANCELED:
	case ERR_GONE:
		file->gone = file->result == ERR_GONE;
		follow_first_done(f, file);
		break;
	default:
		mark_file_dead(f, file);
	}
}

void follow_collect(struct follow *f)
{
	struct follow_file *file, *next;

	pthread_mutex_lock(&f->shared.lock);
	file = f->shared.done;
	f->shared.done = NULL;
	pthread_mutex_unlock(&f->shared.lock);
	for (; file; file = next) {
		next = file->next;
		pthread_mutex_lock(&f->shared.lock);
		f->shared.under_way--;
		f->shared.under_way_bytes -= file->sent;
		pthread_mutex_unlock(&f->shared.lock);
		finish_follow_file(f, file);
	}
}
