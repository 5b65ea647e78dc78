/* SPDX-License-Identifier: Apache-2.0 */
/* follow_sources.c: keeps runs and event files of other programs together while files are renamed, moved, copied,
 * replaced and deleted. A file is known by its first records. The run of a folder has exactly the content of its files:
 * content that turns up at another path moves, a copy in the same folder counts once. follow_sweep.c has the rest. */
#include "web/store/follow/follow_inside.h"

#include <stdio.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "web/store/db/db.h"

#define SWEEP_GRACE_S 0.5 /* a file may be renamed in several steps */

struct follow_content {
	struct follow_source *first;
};

void follow_sources_init(struct follow *f)
{
	f->runs = map_new(sizeof(struct follow_run));
	f->folders = map_new(sizeof(struct follow_folder));
	f->sources = map_new(sizeof(struct follow_source));
	f->contents = map_new(sizeof(struct follow_content));
}

void follow_sources_free(struct follow *f)
{
	map_free(f->runs);
	map_free(f->folders);
	map_free(f->sources);
	map_free(f->contents);
}

static void copy_origin_id(char to[ORIGIN_ID_BYTES], const char *from)
{
	snprintf(to, ORIGIN_ID_BYTES, "%.32s", from);
}

/* ---- the tables ---- */

static struct follow_run *run_of_uuid(struct follow *f, const char *uuid)
{
	struct follow_run *r = map_put(f->runs, uuid, strlen(uuid));

	if (!r->uuid[0])
		copy_origin_id(r->uuid, uuid);
	return r;
}

static struct follow_folder *folder_of_path(struct follow *f, const char *path)
{
	struct follow_folder *d = map_put(f->folders, path, strlen(path));

	if (!d->path)
		d->path = map_text(f->folders, path);
	return d;
}

static void set_run_folder(struct follow_run *r, struct follow_folder *d)
{
	if (r->folder && r->folder != d && r->folder->run == r)
		r->folder->run = NULL;
	r->folder = d;
	d->run = r;
}

/* Contents with the same first records are in one list. */
static void set_source_content(struct follow *f, struct follow_source *s, const char *content)
{
	struct follow_content *c = map_put(f->contents, content, ORIGIN_SAME_DIGITS);

	if (s->content[0])
		return;
	copy_origin_id(s->content, content);
	s->same = c->first;
	c->first = s;
}

static struct follow_source *first_of_content(struct follow *f, const char *content)
{
	struct follow_content *c = map_get(f->contents, content, ORIGIN_SAME_DIGITS);

	return c ? c->first : NULL;
}

/* Finds or adds the source of a writer. */
static struct follow_source *source_of_writer(struct follow *f, struct follow_run *r, const char *writer)
{
	char key[2 * ORIGIN_ID_BYTES];
	struct follow_source *s;

	snprintf(key, sizeof(key), "%s%s", r->uuid, writer);
	s = map_put(f->sources, key, strlen(key));
	if (s->run)
		return s;
	copy_origin_id(s->writer, writer);
	s->run = r;
	s->next = r->first;
	r->first = s;
	r->sources++;
	return s;
}

/* The folder of a run is that of its own files; hparams are in folders below it. */
static void learn_run_folder(struct follow *f, struct follow_run *r, const char *path)
{
	int rank, segment;
	struct origin o = { .annotates = origin_is_rank(path, &rank, &segment) };
	struct follow_folder *above, *d;
	char folder[PATH_MAX], parent[PATH_MAX];

	origin_folder(&o, path, folder);
	file_name_folder(folder, parent, sizeof(parent));
	above = map_get(f->folders, parent, strlen(parent));
	if ((above && above->run == r) || (r->folder && strlen(r->folder->path) <= strlen(folder)))
		return;
	d = folder_of_path(f, folder);
	if (!d->run || d->run->gone)
		set_run_folder(r, d);
}

void follow_source_learn(struct follow *f, struct follow_file *file, const char *run, const char *writer,
			 uint64_t durable)
{
	struct follow_run *r = run_of_uuid(f, run);
	struct follow_source *s = source_of_writer(f, r, writer);

	if (!s || s->file)
		return;
	s->offset = durable;
	r->gone = !file;
	if (file) {
		s->file = s->last = file;
		file->source = s;
		copy_origin_id(file->origin.run, run);
		copy_origin_id(file->origin.writer, writer);
		learn_run_folder(f, r, file->path);
	}
	set_source_content(f, s, writer);
}

/* Returns true if the file begins with what is stored of a source whose last file is gone. */
static bool has_stored_bytes(const struct follow *f, const struct follow_file *file, const struct follow_source *s,
			     const struct stat *sb)
{
	const uint64_t stored = s->file ? s->file->offset : s->offset;
	const struct follow_tail *want = s->file ? &s->file->tail : &s->tail;
	unsigned char tail[FOLLOW_TAIL_BYTES];
	bool same;
	int fd;

	if ((uint64_t)sb->st_size < stored)
		return false;
	if (!want->known)
		return true;
	fd = follow_open_file(f, file->path);
	same = fd >= 0 && file_read(fd, stored - sizeof(tail), tail, sizeof(tail)) == (ssize_t)sizeof(tail) &&
	       !memcmp(tail, want->bytes, sizeof(tail));
	if (fd >= 0)
		close(fd);
	return same;
}

/* ---- changes of the store ---- */

static void ignore_source_change(void *arg, const struct ingest_result *res)
{
	(void)arg;
	(void)res; /* it belongs to a removed run */
}

void follow_submit_source(struct follow *f, const struct ingest_op *op)
{
	struct ingest_done done = { ignore_source_change, NULL };
	struct ingest_result res;
	struct err err = ERR_INIT;
	int rc = ingest_submit(f->s, op, f->once ? NULL : &done, &res, &err);

	if (rc && rc != ERR_NOENT && rc != ERR_GONE)
		follow_note(f, op->journal.path ? op->journal.path : f->root, err.text);
}

static void store_source_path(struct follow *f, const struct follow_source *s)
{
	follow_submit_source(f, &(struct ingest_op){ .kind = &change_source, .run = s->run->uuid,
						     .journal.writer = s->writer,
						     .journal.path = s->file->path, .state = INGEST_NO_STATE });
}

/* Reads one row of the run, or of its removal: 1 and *ret_removed_ms (INT64_MIN: it exists), 0: no such run. */
static int find_stored_run(struct follow *f, const char *uuid, int64_t *ret_removed_ms, char *name, size_t room)
{
	struct err err = ERR_INIT;
	struct db *d = NULL;
	struct db_rows *q;
	int rc = readers_take(f->s, &d, &err);

	*ret_removed_ms = INT64_MIN;
	if (!rc)
		rc = db_start(d, &q, DB_run_row, &err, "t", uuid);
	if (!rc && (rc = db_next(d, q, &err)) > 0) {
		snprintf(name, room, "%s", db_str(q, COL_runs_all_name));
		db_stop(q);
	} else if (!rc) {
		rc = db_int(d, ret_removed_ms, DB_gone_removed, &err, "t", uuid);
	}
	readers_give(f->s, d);
	if (rc < 0)
		follow_note(f, uuid, err.text);
	return rc;
}

/* A run follows its folder to another name, unless a user renamed it. */
static void rename_moved_run(struct follow *f, const struct follow_run *r, const struct follow_file *from,
			     const struct follow_file *to)
{
	struct ingest_foreign before, after;
	struct origin_room room[2];
	char name[PATH_MAX] = "";
	int64_t removed_ms;

	if (!from)
		return;
	origin_names(&to->origin, from->path, f->name, &before, &room[0]);
	origin_names(&to->origin, to->path, f->name, &after, &room[1]);
	if (find_stored_run(f, r->uuid, &removed_ms, name, sizeof(name)) <= 0 || removed_ms != INT64_MIN)
		return;
	if (strcmp(name, before.name) || (!strcmp(name, after.name) && !strcmp(before.experiment, after.experiment)))
		return;
	follow_submit_source(f, &(struct ingest_op){ .kind = &change_run_patch, .run = r->uuid, .name = after.name,
						     .move_to = after.experiment, .state = INGEST_NO_STATE });
}

/* ---- placing a file ---- */

void follow_forget_file(struct follow_file *file)
{
	if (file->source && file->alias)
		file->source->copies--;
	file->source = NULL;
	file->origin = (struct origin){ 0 };
	file->alias = file->asked = file->dead = file->tail.known = file->changed = false;
	file->offset = file->inode = 0;
	file->time_ns = 0;
	file->missing_s = 0;
}

static void set_file_source(struct follow_file *file, struct follow_source *s)
{
	file->source = s;
	copy_origin_id(file->origin.run, s->run->uuid);
	copy_origin_id(file->origin.writer, s->writer);
	file->origin.known = true;
}

void follow_missing(struct follow *f, struct follow_file *file)
{
	if (!file->source || file->missing_s > 0)
		return;
	file->missing_s = clock_mono_s();
	f->scan.sweep_at_s = file->missing_s + (f->once ? 0 : SWEEP_GRACE_S);
	pthread_mutex_lock(&f->shared.lock);
	f->shared.unsettled = true;
	pthread_mutex_unlock(&f->shared.lock);
}

void follow_missing_unseen(struct follow *f)
{
	for (size_t i = 0; i < map_count(f->files); i++) {
		struct follow_file *file = map_at(f->files, i);

		/* what this follower never saw may be in the folder of another one, or of a backup */
		if ((file->seen || (f->own_store && f->scan.recognised)) && file->seen != f->scan.number)
			follow_missing(f, file);
	}
}

static void set_file_copy(struct follow_file *file, uint64_t bytes)
{
	file->source->copies += !file->alias;
	file->alias = true;
	file->alias_size = bytes;
}

void follow_lose_source(struct follow_source *s)
{
	s->offset = s->file->offset;
	s->tail = s->file->tail;
	s->file = NULL;
}

void follow_take_source(struct follow *f, struct follow_source *s, struct follow_file *file, bool copy)
{
	struct follow_file *before = s->file, *last = before ? before : s->last;

	set_file_source(file, s);
	file->offset = before ? before->offset : s->offset;
	file->asked = before ? before->asked : true;
	file->tail = before ? before->tail : s->tail;
	s->copies -= file->alias;
	file->alias = false;
	s->file = s->last = file;
	if (before && copy) {
		set_file_copy(before, before->size);
	} else if (last && last != file && last->source == s) {
		follow_forget_file(last);
		follow_enqueue(f, last, FOLLOW_REST); /* what is there now, if anything */
	}
	store_source_path(f, s);
	if (!f->scan.recognised && !f->scan.running) {
		f->scan.recognised = true;
		follow_missing_unseen(f);
	}
}

static bool is_source_absent(const struct follow *f, const struct follow_source *s)
{
	struct stat sb;

	return !s->file || s->file->missing_s || !follow_stat_file(f, s->file->path, &sb);
}

enum place_result { PLACE_READ, PLACE_COPY, PLACE_OTHER };

/* Compares the file with a source of its run that has the same first records. */
static enum place_result join_source(struct follow *f, struct follow_source *s, struct follow_file *file,
				     const struct stat *sb)
{
	struct follow_file *have = s->file;
	struct stat other;
	int fd, other_fd;
	bool same;

	if (is_source_absent(f, s)) {
		if (!has_stored_bytes(f, file, s, sb))
			return PLACE_OTHER;
		follow_take_source(f, s, file, false);
		return PLACE_READ;
	}
	fd = follow_open_file(f, file->path);
	other_fd = follow_open_file(f, have->path);
	same = fd >= 0 && other_fd >= 0 && !fstat(other_fd, &other) &&
	       follow_same_bytes(fd, other_fd, (uint64_t)(other.st_size < sb->st_size ? other.st_size : sb->st_size));
	if (fd >= 0)
		close(fd);
	if (other_fd >= 0)
		close(other_fd);
	if (!same)
		return PLACE_OTHER;
	if (other.st_size < sb->st_size) {
		follow_take_source(f, s, file, true);
		return PLACE_READ;
	}
	set_file_source(file, s);
	set_file_copy(file, (uint64_t)sb->st_size);
	return PLACE_COPY;
}

struct follow_file *follow_find_copy(struct follow *f, const struct follow_source *s)
{
	struct stat sb;

	for (size_t i = 0; s->copies && i < map_count(f->files); i++) {
		struct follow_file *file = map_at(f->files, i);

		if (file->source == s && file->alias && !file->missing_s && follow_stat_file(f, file->path, &sb) &&
		    (uint64_t)sb.st_size >= s->offset)
			return file;
	}
	return NULL;
}

/* Returns true if a run whose content is no longer where it was is now in the folder: all of it, not a part. */
static bool has_moved_to(struct follow *f, const struct follow_run *r, const char *folder)
{
	char path[PATH_MAX];
	struct stat sb;

	if (r->broken)
		return false;
	for (const struct follow_source *s = r->first; s; s = s->next) {
		const char *slash = s->last ? strrchr(s->last->path, '/') : NULL;

		if (!is_source_absent(f, s) || follow_find_copy(f, s))
			return false;
		if (r->sources == 1)
			return true;
		if (!s->last || !file_join(path, sizeof(path), folder, slash ? slash + 1 : s->last->path) ||
		    !follow_stat_file(f, path, &sb))
			return false;
	}
	return r->first != NULL;
}

/* A run that moved here with its folder, or came back. */
static struct follow_source *adopt_run(struct follow *f, struct follow_file *file, struct follow_folder *d,
				       const struct stat *sb)
{
	struct follow_source *s = first_of_content(f, file->origin.content);

	for (; s; s = s->same) {
		struct follow_run *r = s->run;
		const struct follow_file *from = s->last;

		if (!has_moved_to(f, r, d->path) || !has_stored_bytes(f, file, s, sb))
			continue;
		r->gone = false;
		set_run_folder(r, d);
		follow_take_source(f, s, file, false);
		rename_moved_run(f, r, from, file);
		return s;
	}
	return NULL;
}

/* Chooses the id of a new run of the folder: the one of the folder, unless another run has it. NULL: the file belongs
 * to a run that was removed for good after the file's last change. */
static struct follow_run *choose_new_run(struct follow *f, const struct follow_file *file, const char *folder,
					 const struct stat *sb)
{
	char uuid[ORIGIN_ID_BYTES], name[PATH_MAX], text[PATH_MAX + 64];
	const int64_t changed_ms = (int64_t)sb->st_mtim.tv_sec * 1000 + sb->st_mtim.tv_nsec / 1000000;
	int64_t removed_ms;
	int rc;

	origin_run_of_folder(uuid, folder);
	for (int i = 1;; i++) {
		const struct follow_run *known = map_get(f->runs, uuid, strlen(uuid));

		rc = find_stored_run(f, uuid, &removed_ms, name, sizeof(name));
		if (rc < 0)
			return NULL;
		if (!rc && !(known && known->first)) /* one that is known may be queued to be stored */
			return run_of_uuid(f, uuid);
		if (removed_ms != INT64_MIN && changed_ms <= removed_ms)
			return NULL;
		snprintf(text, sizeof(text), "%s\n%s\n%d", folder, file->origin.content, i);
		origin_run_of_folder(uuid, text);
	}
}

/* A writer id that no source of the run has: the digest of the content, or one more with the same first records. */
static struct follow_source *add_new_source(struct follow *f, struct follow_run *r, struct follow_file *file)
{
	char writer[ORIGIN_ID_BYTES], key[2 * ORIGIN_ID_BYTES];
	struct follow_source *s;
	uint32_t more = 0;

	copy_origin_id(writer, file->origin.content);
	for (;;) {
		snprintf(key, sizeof(key), "%s%s", r->uuid, writer);
		if (!map_get(f->sources, key, strlen(key)))
			break;
		more = more ? more + 1 : crc32c(0, file->path, strlen(file->path));
		snprintf(writer + ORIGIN_SAME_DIGITS, sizeof(writer) - ORIGIN_SAME_DIGITS, "%08x", (unsigned)more);
	}
	s = source_of_writer(f, r, writer);
	if (!s)
		return NULL;
	set_source_content(f, s, file->origin.content);
	s->file = s->last = file;
	set_file_source(file, s);
	file->asked = file->tail.known = false;
	file->offset = 0;
	return s;
}

/* Looks for the content in the run of the folder. */
static enum place_result place_in_run(struct follow *f, struct follow_run *r, struct follow_file *file,
				      const struct stat *sb)
{
	struct follow_source *s = first_of_content(f, file->origin.content);
	enum place_result rc = PLACE_OTHER;

	for (; s && rc == PLACE_OTHER; s = s->same)
		if (s->run == r)
			rc = join_source(f, s, file, sb);
	return rc;
}

/* A file with this content has bytes in transfer: their end is not known yet. */
static bool is_content_moving(struct follow *f, const char *content)
{
	const struct follow_source *s = first_of_content(f, content);

	while (s && !(s->file && s->file->under_way))
		s = s->same;
	return s != NULL;
}

/* Some content of the run is missing: follow_sweep decides first what becomes of the run. */
static bool is_run_in_doubt(struct follow *f, const struct follow_run *r)
{
	bool doubt = false;

	for (const struct follow_source *s = r->first; s; s = s->next)
		if (s->file && is_source_absent(f, s)) {
			follow_missing(f, s->file);
			doubt = true;
		}
	return doubt;
}

bool follow_place(struct follow *f, struct follow_file *file, const struct stat *sb)
{
	char folder[PATH_MAX];
	struct follow_folder *d;
	struct follow_run *r;
	enum place_result rc = PLACE_OTHER;

	file->inode = sb->st_ino;
	if (!f->learned.knows_all || is_content_moving(f, file->origin.content)) {
		follow_enqueue(f, file, FOLLOW_REST);
		return false;
	}
	origin_folder(&file->origin, file->path, folder);
	d = folder_of_path(f, folder);
	if (!d)
		return false;
	r = d->run && !d->run->gone ? d->run : NULL;
	if (r)
		rc = place_in_run(f, r, file, sb);
	else if (adopt_run(f, file, d, sb))
		rc = PLACE_READ;
	if (rc != PLACE_OTHER)
		return rc == PLACE_READ;
	if (r && is_run_in_doubt(f, r)) {
		follow_enqueue(f, file, FOLLOW_REFUSED);
		return false;
	}
	if (!r)
		r = choose_new_run(f, file, folder, sb);
	file->gone = !r;
	if (!r || !add_new_source(f, r, file))
		return false;
	r->gone = false;
	set_run_folder(r, d);
	return true;
}

/* Compares the bytes in front of the stored offset with those that were stored; after a start it reads them. */
static bool has_kept_tail(struct follow_file *file, int fd)
{
	unsigned char tail[FOLLOW_TAIL_BYTES];

	if (file->offset < sizeof(tail))
		return true;
	if (file_read(fd, file->offset - sizeof(tail), tail, sizeof(tail)) != (ssize_t)sizeof(tail))
		return false;
	if (file->tail.known)
		return !memcmp(tail, file->tail.bytes, sizeof(tail));
	memcpy(file->tail.bytes, tail, sizeof(tail));
	file->tail.known = true;
	return true;
}

bool follow_same(struct follow *f, struct follow_file *file, const char *content, const struct stat *sb, int fd)
{
	struct follow_source *s = file->source;
	bool same = !s->content[0] || !strncmp(s->content, content, ORIGIN_SAME_DIGITS);

	if (file->alias) {
		follow_forget_file(file); /* the next look places it */
		follow_enqueue(f, file, FOLLOW_URGENT);
		return false;
	}
	same = same && (uint64_t)sb->st_size >= file->offset && has_kept_tail(file, fd);
	if (!same) {
		file->changed = true;
		follow_missing(f, file);
		return false;
	}
	set_source_content(f, s, content);
	file->inode = sb->st_ino;
	file->origin.known = true;
	return true;
}
