/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c: artifacts as files. Symbolic links are never followed (beneath.h). */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/base/beneath.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct disk {
	char *root;
	pthread_mutex_t lock; /* guards root_fd while it is opened */
	int root_fd;	      /* -1: not opened yet */
};

struct disk_receiving {
	struct disk *disk;
	char *path;
	char temporary[48]; /* below the root; "" after the rename */
	int fd;
	uint64_t bytes;
	struct sha256 sha;
};

struct disk *disk_new(const char *root)
{
	struct disk *k = mem_zalloc(sizeof(*k));

	k->root = mem_strdup(root);
	k->root_fd = -1;
	pthread_mutex_init(&k->lock, NULL);
	return k;
}

void disk_free(struct disk *k)
{
	if (!k)
		return;
	if (k->root_fd >= 0)
		close(k->root_fd);
	pthread_mutex_destroy(&k->lock);
	free(k->root);
	free(k);
}

const char *disk_root(const struct disk *k)
{
	return k->root;
}

/* A running upload holds a lock on its temporary file (flock, which ends with the process), so another process of
 * the store may sweep at any time. */
static void sweep_upload(int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(folder, name, 0);
	close(fd);
}

/* Removes temporary files of killed uploads. */
static void sweep_uploads(int root)
{
	int fd = openat(root, FILES_UPLOADS, FOLDER_FLAGS);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		sweep_upload(fd, e->d_name);
	if (dir)
		closedir(dir);
}

static int open_disk_root(struct disk *k, bool make)
{
	int fd;

	pthread_mutex_lock(&k->lock);
	if (k->root_fd < 0 && make && file_make_folders(k->root, 0700, NULL)) {
		pthread_mutex_unlock(&k->lock);
		return -1;
	}
	if (k->root_fd < 0) {
		k->root_fd = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (k->root_fd >= 0)
			sweep_uploads(k->root_fd);
	}
	fd = k->root_fd;
	pthread_mutex_unlock(&k->lock);
	return fd;
}

int disk_find(struct disk *k, const char *path, struct artifact_file *ret, struct err *err)
{
	int root = open_disk_root(k, false), fd = -1, rc = 0;
	struct stat st;

	if (root >= 0)
		fd = beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && (root < 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV ||
		       errno == ENAMETOOLONG))
		return err_set(err, ERR_NOENT, "No such artifact: '%.300s'", path);
	if (fd < 0 || fstat(fd, &st))
		rc = err_set_errno(err, errno, "%.200s", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(err, ERR_USAGE, "Artifact path refers to a directory, not a file: '%.300s'", path);
	else
		*ret = (struct artifact_file){ .fd = fd,
					       .bytes = (uint64_t)st.st_size,
					       .time_ns = file_changed_ns(&st) };
	if (rc && fd >= 0)
		close(fd);
	return rc;
}

static void add_disk_entry(DIR *dir, const struct dirent *e, struct entries *list)
{
	struct stat st;

	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, FILES_UPLOADS) ||
	    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return;
	entries_add(list, (struct artifact_entry){ arena_strdup(list->arena, e->d_name), S_ISDIR(st.st_mode),
						   (uint64_t)st.st_size, NULL });
}

void disk_entries(struct disk *k, const char *path, struct entries *list)
{
	int root = open_disk_root(k, false);
	int fd = root < 0 ? -1 : beneath_open(root, *path ? path : ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir)))
		add_disk_entry(dir, e, list);
	closedir(dir);
}

int disk_files(struct disk *k, const char *path, struct arena *a, struct artifact_files *io, struct err *err)
{
	int root = open_disk_root(k, false), rc = root < 0 ? 0 : files_list(root, path, a, io);

	return rc ? err_set_errno(err, rc, "cannot list the files of %.200s", path) : 0;
}

/* Locks the place against other threads and processes: files move to their paths with a shared lock, and leave with
 * one that is not. Returns a descriptor to close, or -1. */
static int lock_disk(int root, int how)
{
	int fd = openat(root, ".", FOLDER_FLAGS);

	while (fd >= 0 && flock(fd, how) && errno == EINTR)
		;
	return fd;
}

/* Removes the folder of a path and those above it, as far as they are empty. */
static void remove_empty_above(int root, const char *file)
{
	char path[PATH_MAX];
	const char *name;
	int folder, rc = 0;

	snprintf(path, sizeof(path), "%s", file);
	for (char *slash = strrchr(path, '/'); slash && !rc; slash = strrchr(path, '/')) {
		*slash = '\0';
		folder = beneath_parent(root, path, false, &name);
		rc = folder < 0 ? -1 : unlinkat(folder, name, AT_REMOVEDIR);
		if (folder >= 0)
			close(folder);
	}
}

/* Removes the file. last: of those in its folder, which is then synced, or removed if it is empty. Returns 0 or an
 * errno. */
static int remove_leaving(int root, const struct artifact_item *file, bool last)
{
	const char *name;
	int folder = beneath_parent(root, file->path, false, &name), rc = 0;
	struct stat st;

	if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		rc = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
	else if (st.st_size == file->bytes && file_changed_ns(&st) == file->time_ns && unlinkat(folder, name, 0))
		rc = errno;
	if (folder < 0)
		return rc;
	if (last) {
		fsync(folder);
		remove_empty_above(root, file->path);
	}
	close(folder);
	return rc;
}

static bool same_folder(const char *a, const char *b)
{
	size_t n = (size_t)(strrchr(a, '/') - a) + 1;

	return !strncmp(a, b, n) && !strchr(b + n, '/');
}

int disk_leave(struct disk *k, const struct artifact_files *files, struct err *err)
{
	int root = open_disk_root(k, false), lock = root < 0 ? -1 : lock_disk(root, LOCK_EX), rc = 0;

	if (lock < 0)
		return root < 0 ? 0 : err_set_errno(err, errno, "cannot remove files below %s", k->root);
	for (size_t i = 0; i < files->count && !rc; i++) {
		const struct artifact_item *f = &files->items[i];

		rc = remove_leaving(root, f, i + 1 == files->count || !same_folder(f->path, f[1].path));
		if (rc)
			rc = err_set_errno(err, rc, "cannot remove %.200s", f->path);
	}
	close(lock);
	return rc;
}

void disk_remove_empty(struct disk *k, const char *path)
{
	int root = open_disk_root(k, false), lock = root < 0 ? -1 : lock_disk(root, LOCK_EX);
	const char *name;
	int folder = lock < 0 ? -1 : beneath_parent(root, path, false, &name);

	if (folder >= 0) {
		files_remove_empty(folder, name);
		close(folder);
	}
	if (lock >= 0)
		close(lock);
}

int disk_remove(struct disk *k, const char *path, bool dry, struct files_sum *io, struct err *err)
{
	int root = open_disk_root(k, false), folder, rc, lock;
	const char *name;

	if (root < 0)
		return 0;
	if (!dry)
		close(lock_disk(
			root, LOCK_EX)); /* uploads that saw the owner are in place now, and later ones do not see it */
	folder = beneath_parent(root, path, false, &name);
	rc = folder < 0 ? 0 : files_remove(folder, name, dry, io);
	if (folder >= 0)
		close(folder);
	lock = dry ? -1 : lock_disk(root, LOCK_EX);
	if (lock >= 0) {
		remove_empty_above(root, path);
		close(lock);
	}
	return rc ? err_set_errno(err, rc, "cannot remove the files of %.200s", path) : 0;
}

/* --- uploads ------------------------------------------------------------------------------------------------ */

/* 1: another process swept the file between its creation and its lock. */
static int make_temporary(struct disk_receiving *u, int root, struct err *err)
{
	struct stat st;

	snprintf(u->temporary, sizeof(u->temporary), FILES_UPLOADS "/");
	if (text_random_hex(u->temporary + sizeof(FILES_UPLOADS), 8))
		return err_set_errno(err, errno, "cannot get random bytes");
	if (mkdirat(root, FILES_UPLOADS, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "%s/" FILES_UPLOADS, u->disk->root);
	u->fd = openat(root, u->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->fd < 0 || flock(u->fd, LOCK_EX) || fstat(u->fd, &st))
		return err_set_errno(err, errno, "%s/%s", u->disk->root, u->temporary);
	if (st.st_nlink)
		return 0;
	close(u->fd);
	u->fd = -1;
	return 1;
}

static int open_temporary(struct disk_receiving *u, int root, struct err *err)
{
	int rc;

	do
		rc = make_temporary(u, root, err);
	while (rc > 0);
	return rc;
}

int disk_receiving_begin(struct disk_receiving **ret, struct disk *k, const char *path, struct err *err)
{
	struct disk_receiving *u = mem_zalloc(sizeof(*u));
	int root = open_disk_root(k, true), rc;

	u->path = mem_strdup(path);
	u->disk = k;
	u->fd = -1;
	sha256_init(&u->sha);
	rc = root < 0 ? err_set_errno(err, errno, "cannot open the folder of artifacts %s", k->root)
		      : open_temporary(u, root, err);
	if (rc)
		disk_receiving_end(u);
	else
		*ret = u;
	return rc;
}

int disk_receiving_write(struct disk_receiving *u, const void *bytes, size_t n, struct err *err)
{
	if (file_write(u->fd, bytes, n))
		return err_set_errno(err, errno, "cannot write the artifact %.200s", u->path);
	sha256_add(&u->sha, bytes, n);
	u->bytes += n;
	return 0;
}

static int check_owner(struct store *s, const char *path, struct err *err)
{
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = artifact_owner_gone(d, path, err);
	readers_give(s, d);
	return rc > 0 ? err_set(err, ERR_GONE, ARTIFACT_GONE, path) : rc;
}

/* Moves the file to its path, under the lock. */
static int put_in_place(struct disk_receiving *u, struct store *s, struct err *err)
{
	const char *name = "";
	int root = open_disk_root(u->disk, true), lock = root < 0 ? -1 : lock_disk(root, LOCK_SH);
	int rc = lock < 0 ? 0 : check_owner(s, u->path, err);
	int folder = lock < 0 || rc ? -1 : beneath_parent(root, u->path, true, &name);

	if (rc)
		; /* the owner is gone */
	else if (folder < 0 && lock >= 0 && (errno == ENOTDIR || errno == ELOOP))
		rc = err_set(err, ERR_EXISTS, "%.200s: a part of the path is already a file", u->path);
	else if (folder < 0)
		rc = err_set_errno(err, errno, "%.200s", u->path);
	else if (!renameat(root, u->temporary, folder, name)) {
		u->temporary[0] = '\0';
		close(lock);
		lock = -1;
		rc = fsync(folder) ? err_set_errno(err, errno, "%.200s", u->path) : 0;
	} else if (errno == EISDIR || errno == EEXIST || errno == ENOTEMPTY) {
		rc = err_set(err, ERR_EXISTS, "%.200s is already a folder", u->path);
	} else {
		rc = err_set_errno(err, errno, "%.200s", u->path);
	}
	if (folder >= 0)
		close(folder);
	if (lock >= 0)
		close(lock);
	return rc;
}

int disk_receiving_commit(struct disk_receiving *u, struct store *s, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1, .bytes = u->bytes };
	struct stat st;
	int rc;

	if (fsync(u->fd) || fstat(u->fd, &st))
		return err_set_errno(err, errno, "cannot write the artifact %.200s", u->path);
	f.time_ns = file_changed_ns(&st);
	sha256_end(&u->sha, f.sha256);
	rc = put_in_place(u, s, err);
	if (!rc)
		*ret = f;
	return rc;
}

void disk_receiving_end(struct disk_receiving *u)
{
	if (!u)
		return;
	if (u->temporary[0] && u->fd >= 0)
		unlinkat(u->disk->root_fd, u->temporary, 0);
	if (u->fd >= 0)
		close(u->fd);
	free(u->path);
	free(u);
}
