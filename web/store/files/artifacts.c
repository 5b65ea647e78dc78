/* artifacts.c: paths from clients to files, segment by segment beneath one root. openat2 resolves a whole path where
 * the kernel has it; else every folder is opened by itself, symbolic links never followed. Where files are objects, the
 * door leads to objects.h. */
#include "web/store/files/artifacts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "web/store/base/parts.h"
#include "web/store/db/readers.h"
#include "web/store/files/files.h"
#include "web/store/files/objects.h"

#define DEPTH_MAX 64
#define PATH_BYTES 4000
#define BYTES_MAX (UINT64_C(1) << 40)
#define UPLOADS ".uploads" /* beside the experiments; no client can name it */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct artifacts {
	struct objects *objects; /* NULL: files lie in root */
	char *root;
	uint64_t max_bytes;
	pthread_mutex_t lock; /* root_fd, while it is opened */
	int root_fd;          /* -1: not there yet */
};

struct artifact_upload {
	struct artifacts *a;
	struct object_sending *object; /* NULL: a temporary file */
	char *path;
	char temporary[48]; /* below the root; "" when it is gone */
	int fd;
	uint64_t bytes;
	struct sha256 sha;
};

int artifacts_new(struct artifacts **ret, struct store *s, const struct artifacts_opts *opts, struct err *err)
{
	struct artifacts *a = calloc(1, sizeof *a);
	int rc;

	if (a)
		a->root = strdup(opts->root);
	if (!a || !a->root) {
		free(a);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	a->max_bytes = opts->max_bytes ? opts->max_bytes : BYTES_MAX;
	a->root_fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	rc = objects_place(&a->objects, s, opts, err);
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
	log_warn("%s; files are refused until it answers", err->text);
	return 0;
}

const char *artifacts_folder(const struct artifacts *a)
{
	return a->objects ? NULL : a->root;
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
	if (a->root_fd >= 0)
		close(a->root_fd);
	pthread_mutex_destroy(&a->lock);
	free(a->root);
	free(a);
}

struct artifacts *store_artifacts(struct store *s)
{
	return s->files;
}

/* --- paths -------------------------------------------------------------------------------------------------- */

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

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F'
		? c - 'A' + 10 : -1;
}

/* Undoes percent signs in place; a percent sign without two hex digits is one. False when there was nothing to undo. */
static bool decode(char *text)
{
	char *to = text;
	bool any = false;

	for (; *text; text++) {
		int high = *text == '%' ? hex(text[1]) : -1, low = high >= 0 ? hex(text[2]) : -1;

		if (low < 0) {
			*to++ = *text;
			continue;
		}
		any = true;
		*to = (char)(high * 16 + low);
		if (!*to)
			*to = '\\'; /* as bad as a NUL, but the text goes on */
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

	if (!n || n > PATH_BYTES || !segments_ok(path) || !utf8_valid(path, n))
		return false;
	memcpy(copy, path, n + 1);
	while (decode(copy))
		if (!segments_ok(copy))
			return false;
	return strncmp(path, UPLOADS, sizeof UPLOADS - 1) != 0 ||
		(path[sizeof UPLOADS - 1] && path[sizeof UPLOADS - 1] != '/');
}

/* Who uploads holds a lock on the temporary file (flock, which ends with the process): another process of the same
 * store may start meanwhile. */
static void sweep_upload(int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(folder, name, 0);
	close(fd);
}

/* What an upload left when its process was killed. */
static void sweep_uploads(int root)
{
	int fd = openat(root, UPLOADS, FOLDER_FLAGS);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		sweep_upload(fd, e->d_name);
	if (dir)
		closedir(dir);
}

static int open_root(struct artifacts *a, bool make)
{
	int fd;

	pthread_mutex_lock(&a->lock);
	if (a->root_fd < 0 && make && mkdir(a->root, 0700) && errno != EEXIST) {
		pthread_mutex_unlock(&a->lock);
		return -1;
	}
	if (a->root_fd < 0) {
		a->root_fd = open(a->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (a->root_fd >= 0)
			sweep_uploads(a->root_fd);
	}
	fd = a->root_fd;
	pthread_mutex_unlock(&a->lock);
	return fd;
}

/* A missing folder is made and, so that it is there after a power cut, its parent synced. */
static int step_into(int at, const char *name, bool make)
{
	int fd = openat(at, name, FOLDER_FLAGS);

	if (fd >= 0 || errno != ENOENT || !make)
		return fd;
	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -1;
	fsync(at);
	return openat(at, name, FOLDER_FLAGS);
}

/* Opens the folder that holds the path's last name; *ret_name points to that name. */
static int walk(int root, char *path, bool make, const char **ret_name)
{
	int at = dup(root), next;
	char *slash;

	for (; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		*slash = '\0';
		next = step_into(at, path, make);
		*slash = '/';
		close(at);
		at = next;
	}
	*ret_name = path;
	return at;
}

/* Reads only: one call of the kernel where it can be. */
static int open_beneath(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how), folder;
	const char *name;
	char *copy;

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
		return fd;
	copy = strdup(path);
	folder = copy ? walk(root, copy, false, &name) : -1;
	fd = folder >= 0 ? openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (folder >= 0)
		close(folder);
	free(copy);
	return fd;
}

/* --- reads -------------------------------------------------------------------------------------------------- */

static int64_t time_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int not_found(struct err *err, const char *path)
{
	return err_set(err, ERR_NOENT, "there is no file %.200s", path);
}

static int find_digest(struct store *s, const char *path, struct artifact_file *f, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifact_get, err, "t", path);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		if ((uint64_t)db_i64(q, COL_artifact_get_bytes) == f->bytes &&
		    db_i64(q, COL_artifact_get_time_ns) == f->time_ns)
			snprintf(f->sha256, sizeof f->sha256, "%s", db_str(q, COL_artifact_get_sha256));
		db_stop(q);
		rc = 0;
	}
	readers_give(s, d);
	return rc;
}

int artifact_open(struct store *s, const char *path, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1 };
	int root, rc = 0;
	struct stat st;

	if (s->files->objects)
		return objects_find(s->files->objects, path, ret, err);
	root = open_root(s->files, false);
	if (root >= 0)
		f.fd = open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (f.fd < 0 &&
	    (root < 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV ||
	     errno == ENAMETOOLONG))
		return not_found(err, path);
	if (f.fd < 0 || fstat(f.fd, &st))
		rc = err_set_errno(err, errno, "%.200s", path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(err, ERR_USAGE, "%.200s is a folder", path);
	if (rc) {
		if (f.fd >= 0)
			close(f.fd);
		return rc;
	}
	f.bytes = (uint64_t)st.st_size;
	f.time_ns = time_ns(&st);
	rc = find_digest(s, path, &f, err);
	if (rc)
		close(f.fd);
	else
		*ret = f;
	return rc;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct artifact_entry *)x)->name, ((const struct artifact_entry *)y)->name);
}

static int add_entry(DIR *dir, const struct dirent *e, struct arena *arena, struct artifact_entry **list, size_t *n)
{
	struct artifact_entry *grown;
	struct stat st;

	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, UPLOADS) ||
	    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return 0;
	if (!(*n & (*n - 1))) {
		grown = arena_array(arena, *n ? *n * 2 : 1, sizeof *grown);
		if (!grown)
			return ERR_NOMEM;
		if (*n)
			memcpy(grown, *list, *n * sizeof *grown);
		*list = grown;
	}
	(*list)[*n] = (struct artifact_entry){ arena_strdup(arena, e->d_name), S_ISDIR(st.st_mode),
					       (uint64_t)st.st_size };
	return (*list)[(*n)++].name ? 0 : ERR_NOMEM;
}

int artifact_list(struct artifacts *a, const char *path, struct arena *arena, struct artifact_entry **ret,
		  size_t *ret_count, struct err *err)
{
	struct artifact_entry *list = NULL;
	int root, fd, rc = 0;
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	if (a->objects)
		return objects_entries(a->objects, path, arena, ret, ret_count, err);
	root = open_root(a, false);
	fd = root < 0 ? -1 : open_beneath(root, path && *path ? path : ".", O_RDONLY | O_DIRECTORY);
	*ret = NULL;
	*ret_count = 0;
	if (fd < 0)
		return 0;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	while (!rc && (e = readdir(dir)))
		rc = add_entry(dir, e, arena, &list, &n);
	closedir(dir);
	if (rc)
		return err_set(err, rc, "out of memory");
	if (n)
		qsort(list, n, sizeof *list, by_name);
	*ret = list;
	*ret_count = n;
	return 0;
}

/* --- removal ------------------------------------------------------------------------------------------------ */

int artifact_remove(struct artifacts *a, const char *path, struct err *err)
{
	int root = a->objects ? -1 : open_root(a, false), folder, rc;
	struct files_sum sum = { 0 };
	const char *name;
	char *copy;

	if (root < 0)
		return 0;
	copy = strdup(path);
	if (!copy)
		return err_set(err, ERR_NOMEM, "out of memory");
	folder = walk(root, copy, false, &name);
	rc = folder < 0 ? errno : files_remove(folder, name, 0, &sum);
	if (rc)
		rc = rc == ENOENT || rc == ENOTDIR || rc == ELOOP ? 0 : err_set_errno(err, rc, "removing %.200s", path);
	if (folder >= 0) {
		fsync(folder);
		close(folder);
	}
	free(copy);
	return rc;
}

/* --- uploads ------------------------------------------------------------------------------------------------ */

/* 1: another process that swept took the file between its making and its lock. */
static int make_temporary(struct artifact_upload *u, int root, struct err *err)
{
	unsigned char raw[8];
	struct stat st;
	int i;

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		return err_set_errno(err, errno, "cannot draw random bytes");
	snprintf(u->temporary, sizeof u->temporary, UPLOADS "/");
	for (i = 0; i < 8; i++)
		snprintf(u->temporary + sizeof UPLOADS + 2 * i, 3, "%02x", raw[i]);
	if (mkdirat(root, UPLOADS, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "%s/" UPLOADS, u->a->root);
	u->fd = openat(root, u->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->fd < 0 || flock(u->fd, LOCK_EX) || fstat(u->fd, &st))
		return err_set_errno(err, errno, "%s/%s", u->a->root, u->temporary);
	if (st.st_nlink)
		return 0;
	close(u->fd);
	u->fd = -1;
	return 1;
}

static int open_temporary(struct artifact_upload *u, int root, struct err *err)
{
	int rc;

	do
		rc = make_temporary(u, root, err);
	while (rc > 0);
	return rc;
}

int artifact_begin(struct artifact_upload **ret, struct artifacts *a, const char *path,
		   const struct artifact_room *room, struct err *err)
{
	struct artifact_upload *u = calloc(1, sizeof *u);
	int root = a->objects ? -1 : open_root(a, true), rc;

	if (u)
		u->path = strdup(path);
	if (!u || !u->path) {
		free(u);
		return err_set(err, ERR_NOMEM, "out of memory");
	}
	u->a = a;
	u->fd = -1;
	sha256_init(&u->sha);
	if (a->objects)
		rc = object_sending_begin(&u->object, a->objects, room, err);
	else
		rc = root < 0 ? err_set_errno(err, errno, "the folder of artifacts %s", a->root) :
				open_temporary(u, root, err);
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
	const char *at = bytes;
	size_t left = n;
	ssize_t done;
	int rc = artifact_fits(u->a, u->bytes + n, err);

	if (rc)
		return rc;
	if (u->object) {
		rc = object_sending_write(u->object, bytes, n, err);
		u->bytes += rc ? 0 : n;
		return rc;
	}
	for (; left; at += done, left -= (size_t)done) {
		done = write(u->fd, at, left);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return err_set_errno(err, errno, "writing the artifact %.200s", u->path);
	}
	sha256_add(&u->sha, bytes, n);
	u->bytes += n;
	return 0;
}

static int put_in_place(struct artifact_upload *u, struct err *err)
{
	const char *name = "";
	int root = open_root(u->a, true), folder = root < 0 ? -1 : walk(root, u->path, true, &name), rc = 0;

	if (folder < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ERR_EXISTS, "%.200s: a part of the path is a file already", u->path);
	if (folder < 0)
		return err_set_errno(err, errno, "%.200s", u->path);
	if (!renameat(root, u->temporary, folder, name)) {
		u->temporary[0] = '\0';
		rc = fsync(folder) ? err_set_errno(err, errno, "%.200s", u->path) : 0;
	} else if (errno == EISDIR || errno == EEXIST || errno == ENOTEMPTY) {
		rc = err_set(err, ERR_EXISTS, "%.200s is a folder already", u->path);
	} else {
		rc = err_set_errno(err, errno, "%.200s", u->path);
	}
	close(folder);
	return rc;
}

int artifact_commit(struct artifact_upload *u, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1, .bytes = u->bytes };
	struct stat st;
	int rc;

	if (u->object)
		return object_sending_commit(u->object, ret, err);
	if (fsync(u->fd) || fstat(u->fd, &st))
		return err_set_errno(err, errno, "writing the artifact %.200s", u->path);
	f.time_ns = time_ns(&st);
	sha256_end(&u->sha, f.sha256);
	rc = put_in_place(u, err);
	if (!rc)
		*ret = f;
	return rc;
}

void artifact_end(struct artifact_upload *u)
{
	if (!u)
		return;
	if (u->temporary[0] && u->fd >= 0)
		unlinkat(u->a->root_fd, u->temporary, 0);
	if (u->fd >= 0)
		close(u->fd);
	object_sending_end(u->object);
	free(u->path);
	free(u);
}
