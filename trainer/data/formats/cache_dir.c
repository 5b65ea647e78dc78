/* SPDX-License-Identifier: Apache-2.0 */
/* cache_dir.c: the two folders where the cache of a data set can be: in it, and in the user's cache. */
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <fcntl.h>
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
