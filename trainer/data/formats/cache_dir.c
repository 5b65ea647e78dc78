/* SPDX-License-Identifier: Apache-2.0 */
/* cache_dir.c: the two folders where the cache of a data set can be: in it, and in the user's cache. */
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tracker/base/file.h"

static bool make_writable_folder(const char *folder)
{
	return (mkdir(folder, 0777) == 0 || errno == EEXIST) && access(folder, W_OK | X_OK) == 0;
}

bool cache_dir_join(char ret[CACHE_DIR_PATH_BYTES], const char *folder, const char *name)
{
	return file_join(ret, CACHE_DIR_PATH_BYTES, folder, name);
}

bool cache_dir_beside(const char *path, char ret[CACHE_DIR_PATH_BYTES])
{
	const char *slash = strrchr(path, '/');
	char folder[CACHE_DIR_PATH_BYTES];
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode)) {
		snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
		path = folder;
	}
	return cache_dir_join(ret, path, DATA_ACCOUNT_CACHE) && make_writable_folder(ret);
}

bool cache_dir_in_cache(const char *path, char ret[CACHE_DIR_PATH_BYTES])
{
	char *real = realpath(path, NULL), hex[65], ours[CACHE_DIR_PATH_BYTES];

	sha256_hex(real ? real : path, strlen(real ? real : path), hex);
	free(real);
	hex[16] = '\0';
	return cache_home(ours, sizeof(ours)) && cache_dir_join(ret, ours, hex) && make_writable_folder(ret);
}

int cache_dir_lock(const char *folder)
{
	char path[CACHE_DIR_PATH_BYTES];
	int fd, rc;

	if (!cache_dir_join(path, folder, "lock"))
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	do
		rc = fd < 0 ? -1 : flock(fd, LOCK_EX);
	while (rc && fd >= 0 && errno == EINTR);
	if (rc && fd >= 0)
		close(fd);
	return rc ? -1 : fd;
}

/* Fills a folder below the parent unless it is complete. */
static int fill_below(const struct cache_filling *f, const char *parent, const char *folder, struct err *err)
{
	char mark[CACHE_DIR_PATH_BYTES];
	int fd, rc = 0;

	if (!cache_dir_join(mark, folder, f->mark))
		return err_set(err, ERR_USAGE, "%.300s…: the path is too long", parent);
	if (access(mark, F_OK) == 0)
		return 0;
	fd = cache_dir_lock(parent);
	if (fd < 0)
		rc = err_set_errno(err, errno, "cannot lock %.300s/lock", parent);
	if (!rc && access(mark, F_OK))
		rc = f->fill(f->user, folder, err);
	if (fd >= 0)
		close(fd);
	return rc;
}

int cache_dir_fill(const struct cache_filling *f, char ret[CACHE_DIR_PATH_BYTES], struct err *err)
{
	char parent[CACHE_DIR_PATH_BYTES] = "", mark[CACHE_DIR_PATH_BYTES];
	const bool writable = cache_dir_beside(f->path, parent);

	if (!cache_dir_join(ret, parent, f->key) || !cache_dir_join(mark, ret, f->mark))
		return err_set(err, ERR_USAGE, "%.300s…: the path is too long", f->path);
	if (!writable && access(mark, F_OK) &&
	    !(cache_dir_in_cache(f->path, parent) && cache_dir_join(ret, parent, f->key)))
		return err_set(err, ERR_USAGE,
			       "%.200s: neither this folder nor the user's cache is writable for its tokens: make one "
			       "writable, or run dptrain tokenize",
			       f->path);
	return fill_below(f, parent, ret, err);
}
