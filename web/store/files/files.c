/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: opening, removing and copying; the experiment of a path. */
#include "web/store/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/base/beneath.h"
#include "web/store/base/map.h"
#include "web/store/db/db.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MAX_DEPTH 64
#define LINKS_SHOWN 20

int64_t artifact_experiment(const char *path)
{
	size_t n = strspn(path, "0123456789");

	return n && n <= 18 && (path[n] == '/' || !path[n]) && (n == 1 || *path != '0') ? strtoll(path, NULL, 10) : -1;
}

int artifact_owner_gone(struct db *d, const char *path, struct err *err)
{
	const char *id = strchr(path, '/');
	char uuid[64];
	int64_t one;

	id = id ? id + 1 : path;
	id += strncmp(id, "models/", 7) ? 0 : 7;
	snprintf(uuid, sizeof(uuid), "%.*s", (int)strcspn(id, "/"), id);
	return db_int(d, &one, DB_artifact_owner_gone, err, "t", uuid);
}

enum remove_what { REMOVE_ALL, REMOVE_NOTHING, REMOVE_FOLDERS };

static int remove_entry(int at_fd, const char *name, enum remove_what what, struct files_sum *sum, int depth);

/* Refuses mount points (EXDEV) where the kernel can detect them (5.6). */
static int open_own_folder(int at_fd, const char *name)
{
	struct open_how how = { .flags = FOLDER_FLAGS, .resolve = RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, at_fd, name, &how, sizeof(how));

	return fd >= 0 || (errno != ENOSYS && errno != EPERM) ? fd : openat(at_fd, name, FOLDER_FLAGS);
}

/* Opens a folder to read its entries; *ret NULL: another thread has removed it. Returns 0 or an errno. */
static int open_entries(int at_fd, const char *name, int depth, DIR **ret)
{
	int fd = depth < MAX_DEPTH ? open_own_folder(at_fd, name) : (errno = ELOOP, -1), rc;

	*ret = fd < 0 ? NULL : fdopendir(fd);
	rc = *ret || errno == ENOENT ? 0 : errno;
	if (!*ret && fd >= 0)
		close(fd);
	return rc;
}

static int remove_tree(int at_fd, const char *name, enum remove_what what, struct files_sum *sum, int depth)
{
	struct dirent *e;
	DIR *d;
	int rc = open_entries(at_fd, name, depth, &d);

	if (!d)
		return rc;
	while (!rc && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = remove_entry(dirfd(d), e->d_name, what, sum, depth + 1);
	closedir(d);
	if (rc || what == REMOVE_NOTHING || !unlinkat(at_fd, name, AT_REMOVEDIR) || what == REMOVE_FOLDERS)
		return rc;
	return errno == ENOENT ? 0 : errno;
}

static int remove_entry(int at_fd, const char *name, enum remove_what what, struct files_sum *sum, int depth)
{
	struct stat sb;

	if (fstatat(at_fd, name, &sb, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : errno;
	if (S_ISDIR(sb.st_mode))
		return remove_tree(at_fd, name, what, sum, depth);
	if (what == REMOVE_ALL && unlinkat(at_fd, name, 0) && errno != ENOENT)
		return errno;
	sum->files++;
	sum->bytes += (uint64_t)sb.st_size;
	return 0;
}

int files_remove(int at_fd, const char *name, int dry, struct files_sum *sum)
{
	return remove_entry(at_fd, name, dry ? REMOVE_NOTHING : REMOVE_ALL, sum, 0);
}

void files_remove_empty(int at_fd, const char *name)
{
	remove_entry(at_fd, name, REMOVE_FOLDERS, &(struct files_sum){ 0 }, 0);
}

struct files_listing {
	struct arena *arena;
	struct artifact_files *to;
};

/* Adds a file, or what is in a folder, to the list; path: below the root, its last name below at_fd. */
static int list_entry(const struct files_listing *l, int at_fd, const char *path, int depth)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct dirent *e;
	struct stat sb;
	DIR *d;
	int rc;

	if (fstatat(at_fd, name, &sb, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : errno;
	if (!S_ISDIR(sb.st_mode)) {
		list_push(l->arena, &l->to->items, &l->to->count,
			  (struct artifact_item){ path, sb.st_size, file_changed_ns(&sb) });
		return 0;
	}
	rc = open_entries(at_fd, name, depth, &d);
	if (!d)
		return rc;
	while (!rc && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = list_entry(l, dirfd(d), arena_printf(l->arena, "%s/%s", path, e->d_name), depth + 1);
	closedir(d);
	return rc;
}

int files_list(int root_fd, const char *path, struct arena *a, struct artifact_files *io)
{
	const char *name;
	int folder = beneath_parent(root_fd, path, false, &name), rc;

	if (folder < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
	rc = list_entry(&(struct files_listing){ a, io }, folder, arena_strdup(a, path), 0);
	close(folder);
	return rc;
}

struct files_copying {
	struct files_sum *sum;
	const struct files_stop *stop; /* NULL: never */
	struct err *err;
};

static int copy_entry(const struct files_copying *c, const char *from, const char *to, int depth);

static int copy_file_bytes(const struct files_copying *c, int in, int out, const char *to)
{
	size_t room = (size_t)1 << 20;
	char *bytes = mem_alloc(room);
	ssize_t n = 1;
	int rc = 0;

	while (!rc && (n = read(in, bytes, room)) > 0) {
		if (file_write(out, bytes, (size_t)n))
			rc = err_set_errno(c->err, errno, "%s", to);
		c->sum->bytes += (uint64_t)n;
		if (c->stop && c->stop->fn(c->stop->arg))
			rc = err_set(c->err, ERR_CANCELED, "copying was canceled");
	}
	if (!rc && n < 0)
		rc = err_set_errno(c->err, errno, "cannot read the source of %s", to);
	if (!rc && fsync(out))
		rc = err_set_errno(c->err, errno, "%s", to);
	free(bytes);
	return rc;
}

static int copy_one_file(const struct files_copying *c, const char *from, const char *to, const struct stat *sb)
{
	struct timespec times[2] = { sb->st_atim, sb->st_mtim };
	int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), out = -1, rc = 0;

	if (in < 0)
		return errno == ENOENT ? 0 : err_set_errno(c->err, errno, "%s", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, sb->st_mode & 0777);
	rc = out < 0 ? err_set_errno(c->err, errno, "%s", to) : copy_file_bytes(c, in, out, to);
	if (out >= 0) {
		futimens(out, times);
		close(out);
	}
	close(in);
	c->sum->files += !rc;
	return rc;
}

/* Copies a folder with everything in it, up to MAX_DEPTH levels. */
static int copy_folder(const struct files_copying *c, const char *from, const char *to, int depth)
{
	char below[PATH_MAX], there[PATH_MAX];
	DIR *d = depth < MAX_DEPTH ? opendir(from) : NULL;
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_set_errno(c->err, errno, "%s", from);
	if (mkdir(to, 0700))
		rc = err_set_errno(c->err, errno, "%s", to);
	while (!rc && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", from, e->d_name) >= (int)sizeof(below) ||
		    snprintf(there, sizeof(there), "%s/%s", to, e->d_name) >= (int)sizeof(there))
			rc = err_set(c->err, ERR_USAGE, "%.200s: the path is too long", below);
		else
			rc = copy_entry(c, below, there, depth + 1);
	}
	closedir(d);
	return rc;
}

void files_leave_out(struct files_sum *sum, const char *path)
{
	if (sum->links++ < LINKS_SHOWN)
		log_warn("%s: not copied: it is a link or a special file%s", path,
			 sum->links == LINKS_SHOWN ? "; others are not named" : "");
}

static int copy_entry(const struct files_copying *c, const char *from, const char *to, int depth)
{
	struct stat sb;

	if (c->stop && c->stop->fn(c->stop->arg))
		return err_set(c->err, ERR_CANCELED, "copying was canceled");
	if (lstat(from, &sb))
		return errno == ENOENT ? 0 : err_set_errno(c->err, errno, "%s", from);
	if (S_ISDIR(sb.st_mode))
		return copy_folder(c, from, to, depth);
	if (S_ISREG(sb.st_mode))
		return copy_one_file(c, from, to, &sb);
	files_leave_out(c->sum, from);
	return 0;
}

int files_copy(const char *from, const char *to, struct files_sum *sum, const struct files_stop *stop, struct err *err)
{
	return copy_entry(&(struct files_copying){ sum, stop, err }, from, to, 0);
}

int files_draw_name(char ret[33], struct err *err)
{
	return text_random_hex(ret, 16) ? err_set(err, ERR_IO, "cannot get random bytes") : 0;
}

int files_sync_parent(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd, rc = 0;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		rc = err_set_errno(err, errno, "%s", folder);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* --- entries of a folder -------------------------------------------------------------------------------------- */

void entries_add(struct entries *e, struct artifact_entry entry)
{
	list_push(e->arena, &e->list, &e->n, entry);
}

static int compare_entry_names(const void *x, const void *y)
{
	return strcmp(((const struct artifact_entry *)x)->name, ((const struct artifact_entry *)y)->name);
}

void entries_sort(struct entries *e)
{
	if (e->n)
		qsort(e->list, e->n, sizeof(*e->list), compare_entry_names);
}
