/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: reads and writes complete files, maps them, derives their names and makes their folders. An unnamed file is
 * O_TMPFILE where the file system has it; a whole one is linked through /proc then, or else renamed. */
#include "tracker/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_write(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno != EINTR)
			return -1;
		at += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

ssize_t file_read(int fd, uint64_t at, void *to, size_t n)
{
	char *into = to;
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, into + done, n - done, (off_t)(at + done));

		if (got < 0 && errno != EINTR)
			return -1;
		if (!got)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)done;
}

/* Reads to the end of the file, in one piece when its size is known. Returns 0, or -1 with errno. */
static int append_file(struct buf *to, int fd)
{
	struct stat st;
	size_t piece = 65536;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		piece = (size_t)st.st_size + 1; /* the read after it finds the end */
	for (;;) {
		const size_t left = to->max - to->len, n = piece < left ? piece : left;
		char *at = buf_reserve(to, n), more;
		ssize_t got;

		if (!at) {
			errno = ENOMEM;
			return -1;
		}
		*at = '\0';
		got = read(fd, n ? at : &more, n ? n : 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0 && !n)
			errno = EFBIG;
		if (got <= 0 || !n)
			return got ? -1 : 0;
		to->len += (size_t)got;
		to->data[to->len] = '\0';
		piece = 65536;
	}
}

int file_load(struct buf *to, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), why;

	if (fd >= 0 && !append_file(to, fd)) {
		close(fd);
		return 0;
	}
	why = errno;
	if (fd >= 0)
		close(fd);
	if (why == EFBIG)
		err_set(err, ERR_USAGE, "%.300s: is larger than the maximum of %zu bytes", path, to->max);
	else
		err_set(err, why == ENOMEM ? ERR_NOMEM : ERR_USAGE, "%.300s: %s", path, strerror(why));
	errno = why;
	return why == ENOMEM ? ERR_NOMEM : ERR_USAGE;
}

int file_refuse_pointer(const char *name, const void *bytes, size_t n, struct err *err)
{
	static const char begin[] = "version https://git-lfs";

	if (n < sizeof(begin) - 1 || memcmp(bytes, begin, sizeof(begin) - 1))
		return 0;
	return err_set(err, ERR_USAGE, "%.300s: is a Git LFS pointer: its content is not here: run git lfs pull", name);
}

enum { NAME_BYTES_MAX = 100 };

static bool is_file_name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

void file_name_of(char ret[FILE_NAME_BYTES], const char *text)
{
	size_t n = 0;

	for (; text[n] && n < NAME_BYTES_MAX; n++)
		ret[n] = is_file_name_char(text[n]) ? text[n] : '_';
	if (!n)
		ret[n++] = '_';
	ret[n] = '\0';
	if (ret[0] == '.' || ret[0] == '-')
		ret[0] = '_';
	if (!strncmp(ret, "dptrack.", 8))
		ret[7] = '_';
}

void file_name_folder(const char *path, char *ret, size_t n)
{
	char *slash;

	snprintf(ret, n, "%s", path);
	slash = strrchr(ret, '/');
	if (slash)
		slash[slash == ret] = '\0';
	else
		snprintf(ret, n, ".");
}

int file_check_target(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	struct stat st;

	file_name_folder(path, folder, sizeof(folder));
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%.300s: is not a regular file", path);
	if (access(folder, W_OK | X_OK))
		return err_set(err, ERR_USAGE, "%.300s: cannot create a file there: %s", path, strerror(errno));
	return 0;
}

bool file_join(char *ret, size_t n, const char *folder, const char *name)
{
	const size_t len = strlen(folder);
	const char *slash = len && folder[len - 1] == '/' ? "" : "/";

	return (size_t)snprintf(ret, n, "%s%s%s", folder, slash, name) < n;
}

static int make_one_folder(const char *path, mode_t mode, struct err *err)
{
	struct stat st;
	int why;

	if (!mkdir(path, mode))
		return 0;
	why = errno;
	if (!stat(path, &st)) /* an existing folder on a read-only disk may fail with EROFS or EACCES */
		why = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	return why ? err_set_errno(err, why, "cannot create the folder %.300s", path) : 0;
}

int file_make_parents(const char *path, mode_t mode, struct err *err)
{
	char part[PATH_MAX];
	int rc = 0;

	if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part))
		return err_set(err, ERR_USAGE, "%.100s…: path is too long", path);
	for (char *slash = strchr(part, '/'); slash && !rc; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		rc = *part && slash[-1] != '/' ? make_one_folder(part, mode, err) : 0;
		*slash = '/';
	}
	return rc;
}

int file_make_folders(const char *path, mode_t mode, struct err *err)
{
	int rc = file_make_parents(path, mode, err);

	return rc ? rc : make_one_folder(path, mode, err);
}

static int map_regular_file(struct file_map *m, int fd, const char *path, struct err *err)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st))
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%.300s: is not a regular file", path);
	if (!st.st_size)
		return 0;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	*m = (struct file_map){ at, (size_t)st.st_size };
	return 0;
}

int file_map_fd(struct file_map *ret, int fd, const char *path, struct err *err)
{
	struct file_map m = { 0 };
	int rc;

	if (fd < 0)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	rc = map_regular_file(&m, fd, path, err);
	close(fd);
	if (!rc)
		*ret = m;
	return rc;
}

int file_map_open(struct file_map *ret, const char *path, struct err *err)
{
	return file_map_fd(ret, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), path, err);
}

void file_map_close(struct file_map *m)
{
	if (m->bytes)
		munmap((void *)m->bytes, m->n);
	*m = (struct file_map){ 0 };
}

int file_nameless(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[PATH_MAX];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/.dptrain-XXXXXX", folder) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

#define SELF "/proc/self/fd"

static int open_unnamed_part(const char *part)
{
	char folder[FILE_WHOLE_PART];

	file_name_folder(part, folder, sizeof(folder));
	return access(SELF, X_OK) ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

int file_whole_open(struct file_whole *ret, const char *part)
{
	ret->fd = -1;
	if ((size_t)snprintf(ret->part, sizeof(ret->part), "%s", part) >= sizeof(ret->part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	unlink(part);
	ret->fd = open_unnamed_part(part);
	ret->named = ret->fd < 0;
	if (ret->named)
		ret->fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return ret->fd < 0 ? -1 : 0;
}

static int link_part_name(struct file_whole *f)
{
	char self[64];

	if (f->named)
		return 0;
	snprintf(self, sizeof(self), SELF "/%d", f->fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, f->part, AT_SYMLINK_FOLLOW))
		return -1;
	f->named = true;
	return 0;
}

int file_whole_keep(struct file_whole *f, const char *path)
{
	int rc = link_part_name(f), why;

	if (close(f->fd) && !rc)
		rc = -1;
	f->fd = -1;
	if (!rc && !rename(f->part, path))
		return 0;
	why = errno;
	if (f->named)
		unlink(f->part);
	errno = why;
	return -1;
}

void file_whole_drop(struct file_whole *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	if (f->named)
		unlink(f->part);
}

int file_replace(const char *path, const void *bytes, size_t n, struct err *err)
{
	struct file_whole f;
	char part[FILE_WHOLE_PART];
	int rc = file_make_parents(path, 0777, err);

	if (rc)
		return rc;
	errno = ENAMETOOLONG;
	if (snprintf(part, sizeof(part), "%s.%ld.part", path, (long)getpid()) >= (int)sizeof(part) ||
	    file_whole_open(&f, part))
		return err_set_errno(err, errno, "cannot write %.300s", path);
	if (file_write(f.fd, bytes, n) || fsync(f.fd) || file_whole_keep(&f, path)) {
		rc = err_set_errno(err, errno, "cannot write %.300s", path);
		file_whole_drop(&f);
	}
	return rc;
}

#define CACHE_ROOM 42 /* room for the folder's name and the caller's suffix */

bool cache_home(char *path, size_t n)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len = 0;

	if (xdg && xdg[0] == '/')
		len = snprintf(path, n, "%s", xdg);
	else if (home && home[0] == '/')
		len = snprintf(path, n, "%s/.cache", home);
	if (len <= 0 || (size_t)len + CACHE_ROOM > n)
		return false;
	snprintf(path + len, n - (size_t)len, "/dptrain");
	file_make_folders(path, 0755, NULL);
	return true;
}
