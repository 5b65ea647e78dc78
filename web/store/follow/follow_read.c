/* follow_read.c: reads files range by range and submits whole records to the writer's thread. One range of a file is
 * in transfer at a time; the next one starts at the durable offset. The first record, or the path, tells the run of a
 * file. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "web/store/follow/follow_inside.h"
#include "web/store/follow/tb_hparams.h"
#include "web/store/write/ingest.h"

/* --- the run of a file ---------------------------------------------------------------------------------------- */

/* The parent folder of path, which is the run of a foreign file. */
static void copy_parent_folder(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(ret, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static void name_foreign_run(struct origin *o, const char *folder)
{
	char hex[65];

	sha256_hex(folder, strlen(folder), hex);
	memcpy(o->run, hex, 32);
}

static void make_foreign(struct origin *o, const char *path)
{
	char folder[PATH_MAX], hex[65];

	copy_parent_folder(path, folder);
	name_foreign_run(o, folder);
	sha256_hex(path, strlen(path), hex);
	/* The second half of the digest: the path of a file at the root could equal a run's. */
	memcpy(o->writer, hex + 32, 32);
	o->run[32] = o->writer[32] = '\0';
	o->known = o->foreign = true;
}

static void read_origin_header(struct origin *o, const struct record *rec)
{
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0)
		if (item.kind == EVENT_HEADER) {
			snprintf(o->run, sizeof o->run, "%.32s", item.header->run_id.at);
			snprintf(o->writer, sizeof o->writer, "%.32s", item.header->writer_id.at);
			o->known = true;
		}
}

/* Returns true if a foreign file has more than its version record. */
static bool says_something(const void *head, size_t n, size_t at)
{
	struct record rec;

	return n >= ORIGIN_HEAD_BYTES || record_next(head, n, &at, &rec) != RECORD_MORE;
}

int origin_find(struct origin *ret, const char *path, const void *head, size_t n)
{
	bool events = strstr(path, "tfevents") != NULL;
	struct record rec;
	size_t at = 0;
	enum record_state state = record_next(head, n, &at, &rec);

	*ret = (struct origin){ 0 };
	if (state == RECORD_MORE && !(events && n >= ORIGIN_HEAD_BYTES))
		return 0;
	if (state == RECORD_OK)
		read_origin_header(ret, &rec);
	if (ret->known || !events || (state != RECORD_OK && state != RECORD_MORE))
		return ret->known ? 1 : -1;
	if (!says_something(head, n, at))
		return 0;
	make_foreign(ret, path);
	return 1;
}

void origin_lift(struct origin *o, const char *path)
{
	char folder[PATH_MAX], above[PATH_MAX];

	copy_parent_folder(path, folder);
	copy_parent_folder(folder, above);
	name_foreign_run(o, above);
	o->annotates = true;
}

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room)
{
	const char *slash;

	copy_parent_folder(path, room->folder);
	if (o->annotates) {
		copy_parent_folder(room->folder, room->first);
		memcpy(room->folder, room->first, sizeof room->folder);
	}
	slash = strchr(room->folder, '/');
	ret->annotates = o->annotates;
	ret->experiment = "Default";
	ret->name = !strcmp(room->folder, ".") ? root : room->folder;
	if (!slash)
		return;
	snprintf(room->first, PATH_MAX, "%.*s", (int)(slash - room->folder), room->folder);
	ret->experiment = room->first;
	ret->name = slash + 1;
}

#define RANGE_BYTES_MAX ((size_t)96 << 20) /* a longer record ends its file */
#define RETRY_S 2.0
#define BAD_FILES_LOGGED 20

/* Ignores the file until it changes. */
static void mark_file_dead(struct follow *f, struct follow_file *file)
{
	file->dead = true;
	file->dead_size = file->size;
	pthread_mutex_lock(&f->lock);
	f->stats.files_bad++;
	pthread_mutex_unlock(&f->lock);
	follow_first_done(f, file);
}

static void give_up_file(struct follow *f, struct follow_file *file, const char *why)
{
	follow_note(f, file->path, why);
	if (f->stats.files_bad < BAD_FILES_LOGGED)
		log_warn("%s/%s: %s: left out%s", f->root, file->path, why,
			 f->stats.files_bad + 1 == BAD_FILES_LOGGED ? "; further ones: dptrack doctor" : "");
	mark_file_dead(f, file);
}

/* Retries later: the error may be temporary. */
static void postpone_follow_file(struct follow *f, struct follow_file *file)
{
	if (!f->lines[FOLLOW_REFUSED].first)
		f->retry_at_s = clock_mono_s() + RETRY_S;
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

	pthread_mutex_lock(&f->lock);
	file->result = res->code;
	if (!res->code || res->code == ERR_EXISTS || res->code == ERR_CORRUPT)
		file->offset = res->durable;
	if (res->code && res->code != ERR_EXISTS && res->code != ERR_GONE)
		snprintf(f->stats.note, sizeof f->stats.note, "%.100s: %.150s", file->path, res->err.text);
	file->next = f->done;
	f->done = file;
	follow_wake(f);
	pthread_mutex_unlock(&f->lock);
}

/* Submits bytes of a file as a change_journal; on_range_stored gets the answer. */
static int send_range(struct follow *f, struct follow_file *file, const void *bytes, size_t n, struct err *err)
{
	struct origin_room room;
	struct ingest_foreign foreign;
	struct ingest_op op = { .kind = &change_journal, .run = file->origin.run, .writer = file->origin.writer,
				.offset = file->offset,
				.bytes = bytes, .len = n, .path = file->path };
	struct ingest_done done = { on_range_stored, file };
	int rc;

	if (file->origin.foreign) {
		origin_names(&file->origin, file->path, f->name, &foreign, &room);
		op.foreign = &foreign;
	}
	file->under_way = true;
	file->sent = n;
	pthread_mutex_lock(&f->lock);
	f->under_way++;
	f->under_way_bytes += n;
	f->stats.bytes_read += n;
	pthread_mutex_unlock(&f->lock);
	rc = ingest_submit(f->s, &op, &done, NULL, err);
	if (!rc)
		return 0;
	file->under_way = false;
	pthread_mutex_lock(&f->lock);
	f->under_way--;
	f->under_way_bytes -= n;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static ssize_t read_file_at(int fd, void *bytes, size_t n, uint64_t offset)
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

/* Hparams may be a note on the run of the parent folder. */
static void place_foreign_file(struct follow *f, struct follow_file *file)
{
	switch (tb_hparams_find(f->root, file->path, !f->once)) {
	case TB_HPARAMS_YES:
		origin_lift(&file->origin, file->path);
		break;
	case TB_HPARAMS_LATER:
		file->origin.known = false;
		postpone_follow_file(f, file);
		break;
	case TB_HPARAMS_NO:
		break;
	}
}

static bool learn_origin(struct follow *f, struct follow_file *file, int fd)
{
	char head[ORIGIN_HEAD_BYTES];
	ssize_t n;

	if (file->origin.known)
		return true;
	n = read_file_at(fd, head, sizeof head, 0);
	if (n < 0)
		retry_follow_file(f, file, strerror(errno));
	else if (origin_find(&file->origin, file->path, head, (size_t)n) < 0)
		give_up_file(f, file, "not a journal or event file");
	if (file->origin.known && file->origin.foreign)
		place_foreign_file(f, file);
	return file->origin.known;
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
	void *bytes = malloc(want);
	ssize_t n = bytes ? read_file_at(fd, bytes, want, file->offset) : -1;
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

void follow_read(struct follow *f, struct follow_file *file)
{
	char full[PATH_MAX * 2];
	struct stat sb;
	int fd;

	snprintf(full, sizeof full, "%s/%s", f->root, file->path);
	if (file->gone || stat(full, &sb) || !S_ISREG(sb.st_mode) ||
	    (file->asked && (uint64_t)sb.st_size <= file->offset) ||
	    (file->dead && (uint64_t)sb.st_size == file->dead_size)) {
		follow_first_done(f, file);
		return;
	}
	if (!file->first && !tree_watching(f->tree))
		follow_glance_at(f, file, FOLLOW_GROWS_S);
	file->size = (uint64_t)sb.st_size;
	file->dead = false;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		follow_note(f, file->path, strerror(errno));
		follow_first_done(f, file);
		return;
	}
	if (learn_origin(f, file, fd) && learn_offset(f, file) && file->size > file->offset)
		while (send_some(f, file, fd))
			;
	close(fd);
	if (!file->under_way)
		follow_first_done(f, file);
}

/* Handles the result of a range: requeue, retry later, or ignore the file. */
static void finish_follow_file(struct follow *f, struct follow_file *file)
{
	enum follow_turn again = file->again;

	file->under_way = false;
	file->again = FOLLOW_NOWHERE;
	switch (file->result) {
	case 0:
	case ERR_EXISTS:
		follow_enqueue(f, file, again ? again : file->first ? FOLLOW_REST : FOLLOW_URGENT);
		break;
	case ERR_NOSPC:
	case ERR_IO:
	case ERR_BUSY:
	case ERR_NOMEM:
	case ERR_DAMAGED: /* of the store: until a backup is restored */
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

	pthread_mutex_lock(&f->lock);
	file = f->done;
	f->done = NULL;
	pthread_mutex_unlock(&f->lock);
	for (; file; file = next) {
		next = file->next;
		pthread_mutex_lock(&f->lock);
		f->under_way--;
		f->under_way_bytes -= file->sent;
		pthread_mutex_unlock(&f->lock);
		finish_follow_file(f, file);
	}
}
