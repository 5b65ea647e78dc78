/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c: copies the file page by page through the writer's connection, which also copies its new commits, so that
 * a backup under load ends; or the rows of a database from one snapshot. Then copies the artifacts. The copy gets its
 * name when all is synced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/base/background_job.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"
#include "web/store/maintenance/maintenance.h"
#include "web/store/write/committer.h"
#include "web/store/write/lease.h"

/* --- rows of a database --------------------------------------------------------------------------------------- */

struct store;

struct copying {
	struct store *s;
	struct db *to;
	struct lease lease;
};

static int copy_row(void *arg, const struct db_row *r, struct err *err)
{
	struct copying *c = arg;
	int rc = lease_need(&c->lease, err);

	if (background_job_canceled(c->s->work))
		return err_set(err, ERR_CANCELED, "the store is closing: there is no backup");
	return rc ? rc : tables_put(c->to, r, err);
}

/* Data of the place: files of the backup are next to it, or the same objects. */
static int copy_files(struct copying *c, struct db *from, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(from, &q, DB_artifacts_place, err, "");

	if (!rc && (rc = db_next(from, q, err)) > 0) {
		rc = db_run(c->to, DB_artifacts_place_put, err, "t", db_str(q, COL_artifacts_place_value));
		db_stop(q);
	}
	if (!rc)
		rc = db_start(from, &q, DB_artifact_all, err, "");
	while (!rc && (rc = db_next(from, q, err)) > 0)
		rc = db_run(c->to, DB_artifact_put, err, "tiitt", db_str(q, COL_artifact_all_path),
			    db_i64(q, COL_artifact_all_bytes), db_i64(q, COL_artifact_all_time_ns),
			    db_str(q, COL_artifact_all_sha256), db_str(q, COL_artifact_all_object));
	if (!rc)
		rc = db_start(from, &q, DB_archive_all, err, "");
	while (!rc && (rc = db_next(from, q, err)) > 0)
		rc = db_run(c->to, DB_archive_put, err, "itit", db_i64(q, COL_archive_all_run_id),
			    db_str(q, COL_archive_all_object), db_i64(q, COL_archive_all_bytes),
			    db_str(q, COL_archive_all_sha256));
	return rc;
}

/* In a transaction of the file. */
static int copy_all(struct copying *c, struct db *from, struct err *err)
{
	int rc = db_run(c->to, DB_meta_forget, err, "t", "store_id");

	if (!rc)
		rc = db_run(c->to, DB_store_id_put, err, "t", c->s->id);
	if (!rc)
		rc = db_run(c->to, DB_experiments_forget, err, "");
	if (!rc)
		rc = tables_walk(from, copy_row, c, err);
	return rc ? rc : copy_files(c, from, err);
}

/* Writes everything acknowledged before the call, from one snapshot, to the empty file at path as a store. Files
 * that are objects stay objects. */
static int backup_rows(struct store *s, const char *path, struct err *err)
{
	struct copying c = { .s = s };
	struct db *from;
	int rc;

	lease_init(&c.lease, s, "backup");
	rc = lease_need(&c.lease, err);
	if (!rc)
		rc = db_open_writer(&c.to, path, err);
	if (!rc)
		rc = readers_take(s, &from, err);
	if (!rc) {
		rc = db_run(c.to, DB_begin_long, err, "");
		if (!rc)
			rc = copy_all(&c, from, err);
		rc = db_end(c.to, rc, err);
		readers_give(s, from);
	}
	if (!rc)
		db_checkpoint(c.to, true);
	db_close(c.to);
	lease_give(&c.lease);
	return rc;
}

#define STEP_S 0.005 /* approximate time of a step, which commits wait for */

struct store_backup {
	struct store *s;
	char db[PATH_MAX], partial[PATH_MAX + 16], artifacts[PATH_MAX];
	bool made_folder;
	struct db *to;
	struct db_copy *copy;
	int pages; /* pages to copy in the next step */
	bool done;
	double last_step_s;
};

static int has_suffix(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

/* Returns true if path is inside the artifacts folder: the copy would contain itself. */
static bool among_artifacts(const struct store *s, const char *path)
{
	char folder[PATH_MAX], at[PATH_MAX], artifacts[PATH_MAX];
	size_t n;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
	if (!realpath(folder, at) || !realpath(s->artifacts, artifacts))
		return false;
	n = strlen(artifacts);
	return !strncmp(at, artifacts, n) && (!at[n] || at[n] == '/');
}

/* Derives the paths of the backup and creates its folder. */
static int name_files(struct store_backup *b, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	bool file = has_suffix(path, ".db");
	char folder[PATH_MAX];
	int n;

	if (*path != '/' || strlen(path) > PATH_MAX - 64) {
		err_set(err, ERR_USAGE, "path: expected an absolute path (the owner), or a name below --backup-dir%s",
			b->s->live ? "" : ", or one next to the store that begins with dptrack.db.");
		return err_field(err, "path");
	}
	if (among_artifacts(b->s, path))
		return err_set(err, ERR_USAGE, "%s is among the artifacts to be copied: choose another path", path);
	if (!file && mkdir(path, 0700))
		return errno == EEXIST ? err_set(err, ERR_EXISTS, "%s already exists: choose a new path", path)
				       : err_set_errno(err, errno, "cannot create the folder %s", path);
	b->made_folder = !file;
	n = snprintf(folder, sizeof(folder), "%.*s", file ? (int)(slash - path) : (int)strlen(path), path);
	if (n < 0 || n >= PATH_MAX - 64)
		return err_set(err, ERR_USAGE, "the path is too long");
	snprintf(b->db, sizeof(b->db), "%.4000s%s", path, file ? "" : "/dptrack.db");
	snprintf(b->partial, sizeof(b->partial), "%s.partial", b->db);
	snprintf(b->artifacts, sizeof(b->artifacts), "%.*s/dptrack.artifacts", PATH_MAX - 32, folder);
	if (!access(b->db, F_OK) || !access(b->artifacts, F_OK))
		return err_set(err, ERR_EXISTS, "%s already exists: choose a new path",
			       access(b->db, F_OK) ? b->artifacts : b->db);
	return 0;
}

static int check_room(const struct store_backup *b, struct err *err)
{
	struct stat sb;
	struct statvfs fs;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", b->db);
	*strrchr(folder, '/') = '\0';
	if (b->s->live) /* the size of rows in a file is unknown */
		return 0;
	if (stat(b->s->path, &sb) || statvfs(*folder ? folder : "/", &fs))
		return err_set_errno(err, errno, "%s", b->db);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < (uint64_t)sb.st_size)
		return err_set(err, ERR_NOSPC, "%s: the store takes %.1f MB, %.1f MB are free there", b->db,
			       (double)sb.st_size * 1e-6, (double)fs.f_bavail * (double)fs.f_frsize * 1e-6);
	return 0;
}

static int begin_snapshot(void *arg, struct db *d, struct err *err)
{
	struct store_backup *b = arg;

	return copy_new(&b->copy, b->to, d, err);
}

static int copy_pages_step(void *arg, struct db *d, struct err *err)
{
	struct store_backup *b = arg;
	double began = clock_mono_s();
	int rc = copy_step(b->copy, b->pages, &b->done, err);

	(void)d;
	b->last_step_s = clock_mono_s() - began;
	return rc ? err_prefix(err, "%s", b->partial) : 0;
}

static int end_snapshot(void *arg, struct db *d, struct err *err)
{
	struct store_backup *b = arg;

	(void)d;
	(void)err;
	copy_free(b->copy);
	b->copy = NULL;
	return 0;
}

static int copy_pages(struct store_backup *b, struct err *err)
{
	struct err late = ERR_INIT;
	int rc = committer_step(b->s->writer, begin_snapshot, b, err);

	if (rc)
		return rc;
	for (b->pages = 64; !rc && !b->done;) {
		if (background_job_canceled(b->s->work))
			rc = err_set(err, ERR_CANCELED, "the store is closing: there is no backup");
		else
			rc = committer_step(b->s->writer, copy_pages_step, b, err);
		if (b->last_step_s < STEP_S / 2 && b->pages < 4096)
			b->pages *= 2;
		else if (b->last_step_s > STEP_S && b->pages > 16)
			b->pages /= 2;
	}
	if (committer_step(b->s->writer, end_snapshot, b, &late) && b->copy)
		copy_free(b->copy);
	return rc;
}

/* An unreadable backup is worthless. */
static int verify_backup(struct store_backup *b, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(b->to, &q, DB_quick_check, err, "");

	if (!rc && (rc = db_next(b->to, q, err)) > 0) {
		rc = 0;
		if (strcmp(db_str(q, COL_quick_check_quick_check), "ok"))
			rc = err_set(err, ERR_DAMAGED, "the store is damaged (%.200s): run dptrack doctor",
				     db_str(q, COL_quick_check_quick_check));
		db_stop(q);
	}
	return rc;
}

static int copy_db(struct store_backup *b, struct err *err)
{
	int fd = open(b->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return err_set_errno(err, errno, "%s", b->partial);
	rc = b->s->live ? backup_rows(b->s, b->partial, err) : 0;
	if (!rc)
		rc = db_open_backup(&b->to, b->partial, err);
	if (!rc && !b->s->live)
		rc = copy_pages(b, err);
	if (!rc)
		rc = verify_backup(b, err);
	db_close(b->to);
	if (!rc && fsync(fd))
		rc = err_set_errno(err, errno, "%s", b->partial);
	close(fd);
	return rc;
}

static int name_db(const struct store_backup *b, struct err *err)
{
	if (rename(b->partial, b->db))
		return err_set_errno(err, errno, "%s", b->db);
	return files_sync_parent(b->db, err);
}

static int backup_is_stopped(void *arg)
{
	return background_job_canceled(arg);
}

static int copy_artifacts(struct store_backup *b, struct store_backup_result *ret, struct err *err)
{
	struct files_sum sum = { 0 };
	char root[PATH_MAX]; /* may be reached through a link; nothing in it is */
	int rc;

	if (!*b->s->artifacts || !realpath(b->s->artifacts, root))
		return 0;
	rc = files_copy(root, b->artifacts, &sum, &(struct files_stop){ backup_is_stopped, b->s }, err);
	ret->artifacts = sum.files;
	ret->artifact_bytes = sum.bytes;
	return rc;
}

static void remove_partial_backup(const struct store_backup *b)
{
	struct files_sum sum = { 0 };
	char folder[PATH_MAX];

	unlink(b->partial);
	unlink(b->db);
	files_remove(AT_FDCWD, b->artifacts, 0, &sum);
	snprintf(folder, sizeof(folder), "%s", b->db);
	*strrchr(folder, '/') = '\0';
	if (b->made_folder)
		rmdir(folder);
}

/* Next to the store, in names that the follower ignores. */
static const char *backup_is_beside_store(const struct store *s, const char *path, char room[PATH_MAX])
{
	const char *slash = strrchr(s->path, '/');

	if (s->live || strncmp(path, "dptrack.db.", 11) || strchr(path, '/') || !slash ||
	    strlen(s->path) + strlen(path) > PATH_MAX - 64)
		return path;
	snprintf(room, PATH_MAX, "%.*s/%s", (int)(slash - s->path), s->path, path);
	return room;
}

int store_backup(struct store *s, const char *name, struct store_backup_result *ret, struct err *err)
{
	char room[PATH_MAX];
	const char *path = backup_is_beside_store(s, name, room);
	struct store_backup b = { .s = s };
	struct store_backup_result res = { 0 };
	double began = clock_mono_s();
	struct stat sb;
	int rc = name_files(&b, path, err);

	if (rc) {
		if (b.made_folder)
			rmdir(path);
		return rc;
	}
	rc = check_room(&b, err);
	if (!rc)
		rc = copy_db(&b, err);
	if (!rc)
		rc = copy_artifacts(&b, &res, err);
	if (!rc)
		rc = name_db(&b, err);
	if (rc) {
		remove_partial_backup(&b);
		return rc;
	}
	res.bytes = stat(b.db, &sb) ? 0 : (uint64_t)sb.st_size;
	res.seconds = clock_mono_s() - began;
	*ret = res;
	return 0;
}

/* --- restore -------------------------------------------------------------------------------------------------- */

static int find_backup(const char *path, char db[PATH_MAX], char artifacts[PATH_MAX], struct err *err)
{
	const char *slash = strrchr(path, '/');
	bool file = has_suffix(path, ".db");

	if (strlen(path) > PATH_MAX - 64)
		return err_set(err, ERR_USAGE, "the path is too long");
	snprintf(db, PATH_MAX, "%s%s", path, file ? "" : "/dptrack.db");
	if (file)
		snprintf(artifacts, PATH_MAX, "%.*s/dptrack.artifacts", slash ? (int)(slash - path) : 1,
			 slash ? path : ".");
	else
		snprintf(artifacts, PATH_MAX, "%s/dptrack.artifacts", path);
	if (!access(db, R_OK))
		return 0;
	if (errno != ENOENT && errno != ENOTDIR)
		return err_set_errno(err, errno, "%s", db);
	return err_set(err, ERR_USAGE, "%.1000s is not a backup: expected the folder made by dptrack backup, or its "
		       "file *.db", path);
}

static int rename_aside(const char *path, const char *suffix, int64_t now_ms, struct err *err)
{
	char from[PATH_MAX + 16], to[PATH_MAX + 64];

	snprintf(from, sizeof(from), "%s%s", path, suffix);
	snprintf(to, sizeof(to), "%s.before-restore-%lld%s", path, (long long)now_ms, suffix);
	if (rename(from, to) && errno != ENOENT)
		return err_set_errno(err, errno, "%s", from);
	return 0;
}

/* Verifies the copy (not the backup, since SQLite may create files next to it). Draws a new identity for its rows,
 * so that pages and scripts do not mix them with others of the same rev. */
static int ready_copy(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc = fd < 0 ? err_set_errno(err, errno, "%s", path) : 0;
	struct store_backup b = { 0 };

	if (!rc)
		rc = db_open_backup(&b.to, path, err);
	if (!rc)
		rc = verify_backup(&b, err);
	if (!rc)
		rc = db_run(b.to, DB_rows_of_draw, err, "");
	db_close(b.to);
	if (!rc && fsync(fd))
		rc = err_set_errno(err, errno, "%s", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Copies and verifies the backup, renames the old files, then the copy into place. */
static int rename_into_place(const char *db, const char *artifacts, const struct store_paths *to, struct err *err)
{
	struct files_sum sum = { 0 };
	int64_t now_ms = clock_wall_ms();
	char partial[PATH_MAX + 16];
	int rc;

	snprintf(partial, sizeof(partial), "%s.partial", to->db);
	unlink(partial);
	rc = files_copy(db, partial, &sum, NULL, err);
	if (!rc && (rc = ready_copy(partial, err)))
		err_prefix(err, "%.300s", db);
	if (rc) {
		unlink(partial);
		return rc;
	}
	rc = rename_aside(to->db, "", now_ms, err);
	if (!rc)
		rc = rename_aside(to->db, "-wal", now_ms, err);
	if (!rc)
		rc = rename_aside(to->artifacts, "", now_ms, err);
	if (!rc && rename(partial, to->db))
		rc = err_set_errno(err, errno, "%s", to->db);
	if (!rc && !access(artifacts, F_OK))
		rc = files_copy(artifacts, to->artifacts, &sum, NULL, err);
	return rc ? rc : files_sync_parent(to->db, err);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

int store_restore(const char *backup, const struct store_paths *to, struct err *err)
{
	char db[PATH_MAX], artifacts[PATH_MAX];
	struct store *lock;
	int rc = find_backup(backup, db, artifacts, err);

	if (!rc && is_same_file(db, to->db))
		rc = err_set(err, ERR_USAGE, "%s is the store itself: expected a backup of it", db);
	if (!rc)
		rc = store_lock(&lock, to->db, err);
	if (rc)
		return rc;
	rc = rename_into_place(db, artifacts, to, err);
	store_close(lock);
	return rc;
}
