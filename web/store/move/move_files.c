/* SPDX-License-Identifier: Apache-2.0 */
/* move_files.c: copies files between folders and object stores. A file is complete once its row is in the target; a
 * killed process leaves only a temporary file, or an object that gc finds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/base/terminal.h"
#include "tracker/mem/mem.h"
#include "web/store/files/files.h"
#include "web/store/move/move_inside.h"

#define PART_BYTES ((size_t)8 << 20) /* bytes of an object per request */
#define PIECE_BYTES ((size_t)1 << 18)

/* --- list of files ---------------------------------------------------------------------------------------------- */

static struct move_file *add_move_file(struct move_files *f, const char *path)
{
	mem_push(&f->list, &f->n, &f->cap, (struct move_file){ .path = mem_strdup(path) });
	return &f->list[f->n - 1];
}

static int list_move_rows(struct move_files *f, struct move_end *e, struct err *err)
{
	struct move_file *one;
	struct db_rows *q;
	int rc = db_start(e->d, &q, DB_artifact_all, err, "");

	while (rc >= 0 && (rc = db_next(e->d, q, err)) > 0) {
		if (db_null(q, COL_artifact_all_object))
			continue;
		one = add_move_file(f, db_str(q, COL_artifact_all_path));
		one->bytes = (uint64_t)db_i64(q, COL_artifact_all_bytes);
		one->time_ns = db_i64(q, COL_artifact_all_time_ns);
		snprintf(one->sha256, sizeof(one->sha256), "%s", db_str(q, COL_artifact_all_sha256));
		snprintf(one->object, sizeof(one->object), "%s", db_str(q, COL_artifact_all_object));
	}
	return rc;
}

static int compare_move_paths(const void *x, const void *y)
{
	return strcmp(((const struct move_file *)x)->path, ((const struct move_file *)y)->path);
}

struct move_listing {
	struct move_files *files;
	struct files_sum left_out;
	char path[PATH_MAX]; /* of the entry */
	size_t skip;	     /* bytes of the path before the part that is listed */
};

static int list_move_below(struct move_listing *l, struct err *err);

static int list_move_entry(struct move_listing *l, struct err *err)
{
	const char *path = l->path + l->skip;
	struct move_file *one;
	struct stat st;

	if (lstat(l->path, &st))
		return err_set_errno(err, errno, "%s", l->path);
	if (S_ISDIR(st.st_mode))
		return strcmp(path, FILES_UPLOADS) ? list_move_below(l, err) : 0;
	if (!S_ISREG(st.st_mode)) {
		files_leave_out(&l->left_out, l->path);
		return 0;
	}
	one = add_move_file(l->files, path);
	one->bytes = (uint64_t)st.st_size;
	one->time_ns = file_changed_ns(&st);
	return 0;
}

static int list_move_below(struct move_listing *l, struct err *err)
{
	size_t length = strlen(l->path), room = sizeof(l->path) - length;
	DIR *d = opendir(l->path);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_set_errno(err, errno, "%s", l->path);
	while (!rc && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(l->path + length, room, "/%s", e->d_name) >= (int)room)
			rc = err_set_errno(err, ENAMETOOLONG, "%s", l->path);
		else
			rc = list_move_entry(l, err);
		l->path[length] = '\0';
	}
	closedir(d);
	return rc;
}

/* Lists the files below the folder, by path. */
static int list_move_folder(struct move_files *f, const struct move_end *e, struct err *err)
{
	struct move_listing l = { .files = f, .skip = strlen(e->files) + 1 };
	int rc;

	snprintf(l.path, sizeof(l.path), "%s", e->files);
	rc = access(e->files, F_OK) ? 0 : list_move_below(&l, err);
	if (f->n)
		qsort(f->list, f->n, sizeof(*f->list), compare_move_paths);
	return rc;
}

/* Reads the stored facts of a file: 1 if it has a row. */
static int find_move_row(struct move_end *e, const char *path, struct move_file *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(e->d, &q, DB_artifact_get, err, "t", path);

	if (rc || (rc = db_next(e->d, q, err)) <= 0)
		return rc;
	*ret = (struct move_file){ .bytes = (uint64_t)db_i64(q, COL_artifact_get_bytes),
				   .time_ns = db_i64(q, COL_artifact_get_time_ns) };
	snprintf(ret->sha256, sizeof(ret->sha256), "%s", db_str(q, COL_artifact_get_sha256));
	db_stop(q);
	return 1;
}

/* Fills the stored digests that are still valid (same size and time). */
static int fill_known_digests(struct move_files *f, struct move_end *e, struct err *err)
{
	struct move_file row;
	int rc = 0;

	for (size_t i = 0; i < f->n && rc >= 0; i++) {
		rc = find_move_row(e, f->list[i].path, &row, err);
		if (rc > 0 && row.bytes == f->list[i].bytes && row.time_ns == f->list[i].time_ns)
			memcpy(f->list[i].sha256, row.sha256, sizeof(row.sha256));
	}
	return rc < 0 ? rc : 0;
}

/* Every row of a file must have its bytes in the folder: a store whose files are elsewhere would lose them. */
static int check_listed_rows(const struct move_files *f, struct move_end *e, struct err *err)
{
	char first[PATH_MAX] = "";
	struct move_file row;
	uint64_t missing = 0;
	struct db_rows *q;
	int rc = db_start(e->d, &q, DB_artifact_all, err, "");

	while (!rc && (rc = db_next(e->d, q, err)) > 0) {
		rc = 0;
		row.path = (char *)(uintptr_t)db_str(q, COL_artifact_all_path);
		if (f->n && bsearch(&row, f->list, f->n, sizeof(*f->list), compare_move_paths))
			continue;
		if (!missing++)
			snprintf(first, sizeof(first), "%s", row.path);
	}
	if (rc || !missing)
		return rc;
	return err_set(err, ERR_NOENT, "%s: %llu files of the store are missing (%.200s%s): give their folder with "
		       "--from-artifacts", e->files, (unsigned long long)missing, first, missing > 1 ? ", …" : "");
}

int move_files_list(struct move_files *ret, struct move_end *e, struct err *err)
{
	int rc;

	if (e->objects)
		return list_move_rows(ret, e, err);
	rc = list_move_folder(ret, e, err);
	if (!rc)
		rc = check_listed_rows(ret, e, err);
	return rc ? rc : fill_known_digests(ret, e, err);
}

void move_files_done(struct move_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].path);
	free(f->list);
}

/* --- bytes of a file ------------------------------------------------------------------------------------------- */

struct moved_bytes {
	int (*take)(void *arg, const void *bytes, size_t n, struct err *err);
	void *arg;
	struct sha256 sha;
	uint64_t bytes;
	int rc;
	struct err *err;
};

static int take_moved_bytes(void *taking, const void *bytes, size_t n)
{
	struct moved_bytes *t = taking;

	sha256_add(&t->sha, bytes, n);
	t->bytes += n;
	if (t->take)
		t->rc = t->take(t->arg, bytes, n, t->err);
	return t->rc;
}

static int read_from_folder(const struct move_end *e, const char *path, struct moved_bytes *t)
{
	char whole[2 * PATH_MAX], *room = mem_alloc(PIECE_BYTES);
	int fd, rc = 0;
	ssize_t n;

	snprintf(whole, sizeof(whole), "%s/%s", e->files, path);
	fd = open(whole, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, room, PIECE_BYTES)) > 0 && !rc)
		rc = take_moved_bytes(t, room, (size_t)n);
	if (!rc && (fd < 0 || n < 0))
		rc = err_set_errno(t->err, errno, "%s", whole);
	if (fd >= 0)
		close(fd);
	free(room);
	return rc;
}

void move_key_of(const struct move_end *e, const char *object, char ret[OBJECT_KEY_MAX + 1])
{
	snprintf(ret, OBJECT_KEY_MAX + 1, "%s%s%s", e->prefix, *e->prefix ? "/" : "", object);
}

static int read_moved_object(const struct move_end *e, const char *object, struct moved_bytes *t)
{
	char key[OBJECT_KEY_MAX + 1];
	struct object_facts facts;
	const struct object_get get = { .key = key, .piece = take_moved_bytes, .user = t };
	int rc;

	move_key_of(e, object, key);
	rc = object_get(e->objects, &get, &facts, t->err);
	return t->rc ? t->rc : rc;
}

/* Passes all bytes to t, and verifies the digest, or fills it if unknown. */
static int read_moved_file(struct move_file *f, const struct move_end *e, struct moved_bytes *t)
{
	char found[65];
	int rc;

	sha256_init(&t->sha);
	rc = e->objects ? read_moved_object(e, f->object, t) : read_from_folder(e, f->path, t);
	if (rc)
		return rc;
	sha256_end(&t->sha, found);
	if (t->bytes != f->bytes || (*f->sha256 && strcmp(found, f->sha256)))
		return err_set(t->err, ERR_CORRUPT, "the file %.300s is damaged: %llu bytes with SHA-256 %.12s…, %llu "
			       "bytes with %.12s… were stored", f->path, (unsigned long long)t->bytes, found,
			       (unsigned long long)f->bytes, *f->sha256 ? f->sha256 : found);
	memcpy(f->sha256, found, sizeof(found));
	return 0;
}

int move_files_read(struct move_files *f, struct move_end *e, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < f->n && !rc; i++)
		rc = read_moved_file(&f->list[i], e, &(struct moved_bytes){ .err = err });
	return rc;
}

/* --- into a folder --------------------------------------------------------------------------------------------- */

static int write_moved_bytes(void *arg, const void *bytes, size_t n, struct err *err)
{
	return file_write(*(int *)arg, bytes, n) ? err_set_errno(err, errno, "cannot write a file") : 0;
}

/* Copies a file to a temporary one, syncs it and renames it. */
static int copy_into_folder(struct move_file *f, const struct move_end *from, const struct move_end *to,
			    struct err *err)
{
	char temporary[PATH_MAX + 32], whole[2 * PATH_MAX];
	const struct timespec time = { .tv_sec = f->time_ns / 1000000000, .tv_nsec = f->time_ns % 1000000000 };
	struct stat st;
	int fd, rc;

	snprintf(temporary, sizeof(temporary), "%s/" FILES_UPLOADS "/moving", to->files);
	snprintf(whole, sizeof(whole), "%s/%s", to->files, f->path);
	rc = file_make_parents(temporary, 0700, err);
	if (!rc)
		rc = file_make_parents(whole, 0700, err);
	if (rc)
		return rc;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", temporary);
	rc = read_moved_file(f, from, &(struct moved_bytes){ .take = write_moved_bytes, .arg = &fd, .err = err });
	if (!rc && (futimens(fd, (const struct timespec[]){ time, time }) || fsync(fd) || fstat(fd, &st)))
		rc = err_set_errno(err, errno, "%s", temporary);
	close(fd);
	if (!rc && rename(temporary, whole))
		rc = err_set_errno(err, errno, "%s", whole);
	if (!rc)
		f->time_ns = file_changed_ns(&st);
	return rc ? rc : files_sync_parent(whole, err);
}

/* --- into an object store ---------------------------------------------------------------------------------------- */

struct sending {
	const struct move_end *to;
	char key[OBJECT_KEY_MAX + 1];
	struct object_upload *parts; /* NULL: no full part yet */
	char *bytes;
	size_t n;
};

static int send_moved_part(struct sending *s, struct err *err)
{
	int rc = s->parts ? 0 : object_upload_begin(&s->parts, s->to->objects, s->key, NULL, err);

	if (!rc)
		rc = object_upload_part(s->parts, s->bytes, s->n, err);
	s->n = 0;
	return rc;
}

static int gather_moved_bytes(void *arg, const void *bytes, size_t n, struct err *err)
{
	struct sending *s = arg;
	const char *at = bytes;
	size_t part;
	int rc = 0;

	for (; n && !rc; at += part, n -= part) {
		if (s->n == PART_BYTES)
			rc = send_moved_part(s, err);
		part = n < PART_BYTES - s->n ? n : PART_BYTES - s->n;
		if (!rc)
			memcpy(s->bytes + s->n, at, part);
		s->n += part;
	}
	return rc;
}

static int send_moved_rest(struct sending *s, struct err *err)
{
	int rc;

	if (!s->parts)
		return object_put(s->to->objects, &(struct object_put){ .key = s->key, .bytes = s->bytes, .n = s->n },
				  err);
	rc = s->n ? send_moved_part(s, err) : 0;
	return rc ? rc : object_upload_end(s->parts, err);
}

/* First a row records that the object begins, so that gc finds it. ret: its name. */
static int copy_into_objects(struct move_file *f, const struct move_end *from, const struct move_end *to, char ret[33],
			     struct err *err)
{
	struct sending s = { .to = to, .bytes = mem_alloc(PART_BYTES) };
	int rc = files_draw_name(ret, err);

	if (!rc)
		rc = db_run(to->d, DB_object_begin, err, "ti", ret, clock_wall_ms());
	if (!rc) {
		move_key_of(to, ret, s.key);
		rc = read_moved_file(f, from,
				     &(struct moved_bytes){ .take = gather_moved_bytes, .arg = &s, .err = err });
	}
	if (!rc)
		rc = send_moved_rest(&s, err);
	object_upload_free(s.parts);
	free(s.bytes);
	return rc;
}

/* --- one file after another ------------------------------------------------------------------------------------- */

/* Records the file: it is now in the target. */
static int put_moved_row(const struct move_file *f, const struct move_end *to, const char *object, struct err *err)
{
	int64_t one;
	int rc = db_run(to->d, DB_begin, err, "");

	if (!rc && object && (rc = db_int(to->d, &one, DB_object_named, err, "t", object)) == 0)
		rc = err_set(err, ERR_CORRUPT, "%s: another process removed an object of this copy", to->shown);
	if (rc >= 0)
		rc = db_run(to->d, DB_artifact_put, err, "tiitt", f->path, (int64_t)f->bytes, f->time_ns, f->sha256,
			    object);
	return db_end(to->d, rc, err);
}

/* 1: an earlier try copied it. */
static int is_already_moved(struct move_file *f, struct move_end *from, struct move_end *to, struct err *err)
{
	struct move_file row;
	int rc = to->begun ? find_move_row(to, f->path, &row, err) : 0;

	if (rc > 0 && !*f->sha256)
		rc = read_moved_file(f, from, &(struct moved_bytes){ .err = err }) ? ERR_IO : 1;
	return rc <= 0 ? rc : row.bytes == f->bytes && !strcmp(row.sha256, f->sha256);
}

static int copy_move_file(struct move_file *f, struct move_end *from, struct move_end *to, struct err *err)
{
	char object[33];
	int rc;

	if (to->objects)
		rc = copy_into_objects(f, from, to, object, err);
	else if (!strcmp(from->files, to->files))
		rc = *f->sha256 ? 0 : read_moved_file(f, from, &(struct moved_bytes){ .err = err });
	else
		rc = copy_into_folder(f, from, to, err);
	return rc ? rc : put_moved_row(f, to, to->objects ? object : NULL, err);
}

static uint64_t count_listed_bytes(const struct move_files *f)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->n; i++)
		bytes += f->list[i].bytes;
	return bytes;
}

int move_files_copy(struct move_files *f, struct move_end *from, struct move_end *to, struct move_result *ret,
		    struct err *err)
{
	struct terminal_progress progress;
	int rc = 0;

	terminal_progress_begin(&progress, "MB of files copied", count_listed_bytes(f) / 1000000);
	for (size_t i = 0; i < f->n && rc >= 0; i++) {
		rc = is_already_moved(&f->list[i], from, to, err);
		ret->kept += rc > 0;
		if (!rc)
			rc = copy_move_file(&f->list[i], from, to, err);
		ret->files++;
		ret->bytes += f->list[i].bytes;
		terminal_progress_show(&progress, ret->bytes / 1000000);
	}
	terminal_progress_clear(&progress);
	return rc < 0 ? rc : 0;
}
