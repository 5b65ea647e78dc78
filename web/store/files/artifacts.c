/* SPDX-License-Identifier: Apache-2.0 */
/* artifacts.c: which paths clients may use; lists, reads and writes files below a folder (disk.h) or objects
 * (objects.h). */
#include "web/store/files/artifacts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

/* --- paths ---------------------------------------------------------------------------------------------------- */

#define DEPTH_MAX 64
#define PATH_BYTES 4000
#define ROUNDS_MAX 8 /* of percent-encoding within each other */

static bool segment_ok(const char *s, size_t n)
{
	size_t i;

	if (!n || n > 255 || (n <= 2 && !memcmp(s, "..", n)))
		return false;
	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f || s[i] == '\\')
			return false;
	return true;
}

static bool segments_ok(const char *path)
{
	size_t depth = 0, n;

	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (!segment_ok(path, n) || ++depth > DEPTH_MAX)
			return false;
		if (!path[n])
			return true;
	}
}

static int percent_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F'
		? c - 'A' + 10 : -1;
}

/* Decodes percent escapes in place; a percent sign without two hex digits stays. False: there was none. */
static bool decode_percent(char *text)
{
	char *to = text;
	bool any = false;

	for (; *text; text++) {
		int high = *text == '%' ? percent_digit(text[1]) : -1, low = high >= 0 ? percent_digit(text[2]) : -1;

		if (low < 0) {
			*to++ = *text;
			continue;
		}
		any = true;
		*to = (char)(high * 16 + low);
		if (!*to)
			*to = '\\'; /* rejected like a NUL, without ending the text */
		to++;
		text += 2;
	}
	*to = '\0';
	return any;
}

bool artifact_path_ok(const char *path)
{
	char copy[PATH_BYTES + 1];
	size_t n = strlen(path);
	int round = 0;

	if (!n || n > PATH_BYTES || !segments_ok(path) || !utf8_valid(path, n))
		return false;
	memcpy(copy, path, n + 1);
	while (decode_percent(copy))
		if (++round == ROUNDS_MAX || !segments_ok(copy))
			return false;
	return strncmp(path, FILES_UPLOADS, sizeof(FILES_UPLOADS) - 1) != 0 ||
	       (path[sizeof(FILES_UPLOADS) - 1] && path[sizeof(FILES_UPLOADS) - 1] != '/');
}

#define BYTES_MAX (UINT64_C(1) << 40)

struct artifacts {
	struct store *store;
	struct objects *objects; /* NULL: files are in disk */
	struct disk *disk;
	uint64_t max_bytes;
};

struct artifact_upload {
	struct artifacts *a;
	struct object_sending *object;
	struct disk_receiving *file;
	uint64_t bytes;
};

/* --- the folder of a store ------------------------------------------------------------------------------------- */

/* The place of a store in one spelling, without a password. */
static void name_store_place(char ret[PATH_MAX], const char *path)
{
	char whole[PATH_MAX];

	db_shown(ret, PATH_MAX, !db_is_address(path) && realpath(path, whole) ? whole : path);
}

int artifacts_record(char *ret, size_t room, const char *store_path, const char *folder, struct err *err)
{
	char place[PATH_MAX], here[PATH_MAX] = "";
	int n;

	name_store_place(place, store_path);
	if (*folder != '/' && !getcwd(here, sizeof(here)))
		return err_set_errno(err, errno, "cannot find the current folder");
	n = snprintf(ret, room, "%s\n%s%s%s", place, here, *here ? "/" : "", folder);
	return n < 0 || (size_t)n >= room ? err_set(err, ERR_USAGE, "the path of the files is too long") : 0;
}

int artifacts_recorded(struct db *d, const char *store_path, char ret[PATH_MAX], struct err *err)
{
	char place[PATH_MAX];
	struct db_rows *q;
	const char *text;
	size_t n;
	int rc = db_start(d, &q, DB_files_place, err, "");

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	name_store_place(place, store_path);
	text = db_str(q, COL_files_place_value);
	n = strlen(place);
	rc = !strncmp(text, place, n) && text[n] == '\n' && strlen(text) - n < PATH_MAX;
	if (rc)
		snprintf(ret, PATH_MAX, "%s", text + n + 1);
	db_stop(q);
	return rc && !access(ret, F_OK);
}

/* Chooses the folder: the named one, which is recorded, or the recorded one, or the default. */
static int choose_folder(struct store *s, const struct artifacts_opts *opts, char ret[PATH_MAX], struct err *err)
{
	char text[2 * PATH_MAX + 2];
	struct ingest_result res = { 0 };
	struct ingest_op op = { .kind = &artifact_change_folder, .name = text };
	struct db *d;
	int rc;

	snprintf(ret, PATH_MAX, "%s", opts->root);
	if (!opts->by_default) {
		rc = artifacts_record(text, sizeof(text), s->path, opts->root, err);
		return rc || !s->writer ? rc : ingest_submit(s, &op, NULL, &res, err);
	}
	rc = readers_take(s, &d, err);
	if (rc)
		return rc;
	rc = artifacts_recorded(d, s->path, ret, err);
	readers_give(s, d);
	return rc < 0 ? rc : 0;
}

int artifacts_new(struct artifacts **ret, struct store *s, const struct artifacts_opts *opts, struct err *err)
{
	struct artifacts *a = mem_zalloc(sizeof(*a));
	char folder[PATH_MAX];
	int rc;

	a->store = s;
	a->max_bytes = opts->max_bytes ? opts->max_bytes : BYTES_MAX;
	rc = objects_place(&a->objects, s, opts, err);
	if (!rc && !a->objects)
		rc = choose_folder(s, opts, folder, err);
	if (!rc && !a->objects)
		a->disk = disk_new(folder);
	if (rc)
		artifacts_free(a);
	else
		*ret = a;
	return rc;
}

int artifacts_connect(struct artifacts *a, struct err *err)
{
	int rc = a->objects ? objects_check(a->objects, err) : 0;

	if (rc != ERR_IO)
		return rc;
	log_warn("%s: files are refused until it answers", err->text);
	return 0;
}

const char *artifacts_folder(const struct artifacts *a)
{
	return a->disk ? disk_root(a->disk) : NULL;
}

struct objects *artifacts_objects(const struct artifacts *a)
{
	return a->objects;
}

void artifacts_free(struct artifacts *a)
{
	if (!a)
		return;
	objects_free(a->objects);
	disk_free(a->disk);
	free(a);
}

struct artifacts *store_artifacts(struct store *s)
{
	return s->files;
}

/* Whether the caller of a restricted store may read, or write, this path: 1 or 0, or a negative code. */
static int judge_path(struct store *s, const char *path, bool write, struct err *err)
{
	int64_t experiment = artifact_experiment(path);
	const struct restriction *r = s->restriction;
	struct db_rows *q;
	struct db *d;
	int rc;

	if (!r)
		return 1;
	rc = readers_take_permitted(s, &d, err);
	if (rc)
		return rc;
	rc = experiment >= 0 && permitted(d, experiment);
	if (rc > 0 && write && !(rc = db_start(d, &q, DB_experiment_name, err, "i", experiment)) &&
	    (rc = db_next(d, q, err)) > 0) {
		rc = r->most >= GRANT_WRITE && permitted_level(d, db_str(q, COL_experiment_name_name)) >= GRANT_WRITE;
		db_stop(q);
	}
	readers_give(s, d);
	return rc;
}

int artifact_may_write(struct store *s, const char *path, struct err *err)
{
	int rc = judge_path(s, path, true, err);

	return rc ? rc < 0 ? rc : 0 : err_set(err, ERR_DENIED, ARTIFACT_DENIED, path);
}

static int find_digest(struct store *s, const char *path, struct artifact_file *f, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifact_get, err, "t", path);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		if ((uint64_t)db_i64(q, COL_artifact_get_bytes) == f->bytes &&
		    db_i64(q, COL_artifact_get_time_ns) == f->time_ns)
			snprintf(f->sha256, sizeof(f->sha256), "%s", db_str(q, COL_artifact_get_sha256));
		db_stop(q);
		rc = 0;
	}
	readers_give(s, d);
	return rc;
}

int artifact_open(struct store *s, const char *path, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1 };
	int rc = judge_path(s, path, false, err);

	if (rc <= 0)
		return rc ? rc : err_set(err, ERR_NOENT, "No such artifact: '%.300s'", path);
	if (s->files->objects)
		return objects_find(s->files->objects, path, ret, err);
	rc = disk_find(s->files->disk, path, &f, err);
	if (rc)
		return rc;
	rc = find_digest(s, path, &f, err);
	if (rc)
		close(f.fd);
	else
		*ret = f;
	return rc;
}

/* Of the root a restricted caller sees the folders of experiments that it may read. */
static int keep_permitted_entries(struct store *s, struct entries *list, struct err *err)
{
	size_t i, n = 0;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	for (i = 0; i < list->n; i++)
		if (permitted(d, artifact_experiment(list->list[i].name)))
			list->list[n++] = list->list[i];
	list->n = n;
	readers_give(s, d);
	return 0;
}

int artifact_list(struct store *s, const char *path, struct arena *arena, struct artifact_entries *ret, struct err *err)
{
	struct entries list = { .arena = arena };
	struct artifacts *a = s->files;
	bool root = !path || !*path;
	int rc = root ? 1 : judge_path(s, path, false, err), may = rc;

	if (rc > 0)
		rc = a->objects ? objects_entries(a->objects, root ? "" : path, &list, err) : 0;
	if (rc < 0)
		return rc;
	if (may && !a->objects)
		disk_entries(a->disk, root ? "" : path, &list);
	rc = root && s->restriction ? keep_permitted_entries(s, &list, err) : 0;
	if (rc)
		return rc;
	entries_sort(&list);
	*ret = (struct artifact_entries){ list.list, list.n };
	return 0;
}

static int entry_digest(struct store *s, const char *path, struct artifact_entry *e, struct arena *a, struct err *err)
{
	struct artifact_file f = { .fd = -1 };
	int rc = artifact_open(s, path, &f, err);

	if (rc == ERR_NOENT || rc == ERR_USAGE)
		return 0; /* removed meanwhile */
	if (rc)
		return rc;
	if (f.fd >= 0)
		close(f.fd);
	e->sha256 = arena_strdup(a, f.sha256);
	return 0;
}

int artifact_digests(struct store *s, const char *folder, struct artifact_entries *io, struct arena *a, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < io->count && !rc; i++) {
		struct artifact_entry *e = &io->items[i];

		e->sha256 = "";
		if (!e->folder)
			rc = entry_digest(s, arena_printf(a, "%s/%s", folder, e->name), e, a, err);
	}
	return rc;
}

/* --- files that leave ---------------------------------------------------------------------------------------- */

static struct artifact_item read_item(struct arena *a, struct db_rows *q)
{
	return (struct artifact_item){ db_text(a, q, COL_artifact_items_path), db_i64(q, COL_artifact_items_bytes),
				       db_i64(q, COL_artifact_items_time_ns) };
}

/* Adds files that are objects: their rows. */
static int list_object_files(struct store *s, const char *path, struct arena *a, struct artifact_files *io,
			     struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(store_whole(s), &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifact_items, err, "t", path);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &io->items, &io->count, read_item(a, q));
	readers_give(store_whole(s), d);
	return rc;
}

int artifact_files(struct store *s, const char *path, struct arena *a, struct artifact_files *io, struct err *err)
{
	return s->files->objects ? list_object_files(s, path, a, io, err)
				 : disk_files(s->files->disk, path, a, io, err);
}

int artifact_remove(struct store *s, const char *path, bool dry, struct files_sum *io, struct err *err)
{
	return s->files->objects ? objects_sum(s->files->objects, path, io, err)
				 : disk_remove(s->files->disk, path, dry, io, err);
}

/* Files that leave, at or below path. */
struct leaving {
	struct store *s;
	const char *path, *after; /* after: the last one that was read */
	struct arena *arena;
	struct artifact_files some;
};

/* Reads the next ones. */
static int read_leaving(struct leaving *l, struct err *err)
{
	struct artifact_files list = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(l->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_leaving_next, err, "tt", l->path, l->after);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(l->arena, &list.items, &list.count, read_item(l->arena, q));
	readers_give(l->s, d);
	l->some = list;
	l->after = list.count ? list.items[list.count - 1].path : l->after;
	return rc;
}

int artifact_leave(struct store *s, const char *path, struct err *err)
{
	struct leaving l = { .s = store_whole(s), .path = path, .after = "", .arena = arena_new() };
	const struct ingest_op op = { .kind = &artifact_change_left, .more = &l.some };
	struct disk *disk = s->files->disk;
	int rc = disk ? read_leaving(&l, err) : 0;

	while (!rc && l.some.count) {
		rc = disk_leave(disk, &l.some, err);
		if (!rc)
			rc = ingest_submit(l.s, &op, NULL, NULL, err);
		if (!rc)
			rc = read_leaving(&l, err);
	}
	if (!rc && disk && *path)
		disk_remove_empty(disk, path);
	arena_free(l.arena);
	return rc;
}

/* --- uploads ------------------------------------------------------------------------------------------------ */

int artifact_begin(struct artifact_upload **ret, struct artifacts *a, const char *path,
		   const struct artifact_room *room, struct err *err)
{
	struct artifact_upload *u = mem_zalloc(sizeof(*u));
	int rc;

	u->a = a;
	rc = a->objects ? object_sending_begin(&u->object, a->objects, room, err)
			: disk_receiving_begin(&u->file, a->disk, path, err);
	if (rc)
		artifact_end(u);
	else
		*ret = u;
	return rc;
}

int artifact_fits(const struct artifacts *a, uint64_t bytes, struct err *err)
{
	return bytes <= a->max_bytes ? 0 : err_set(err, ERR_LIMIT, "an artifact may have at most %llu bytes here",
						   (unsigned long long)a->max_bytes);
}

int artifact_write(struct artifact_upload *u, const void *bytes, size_t n, struct err *err)
{
	int rc = artifact_fits(u->a, u->bytes + n, err);

	if (!rc)
		rc = u->object ? object_sending_write(u->object, bytes, n, err)
			       : disk_receiving_write(u->file, bytes, n, err);
	u->bytes += rc ? 0 : n;
	return rc;
}

int artifact_commit(struct artifact_upload *u, struct artifact_file *ret, struct err *err)
{
	return u->object ? object_sending_commit(u->object, ret, err)
			 : disk_receiving_commit(u->file, u->a->store, ret, err);
}

void artifact_end(struct artifact_upload *u)
{
	if (!u)
		return;
	object_sending_end(u->object);
	disk_receiving_end(u->file);
	free(u);
}
