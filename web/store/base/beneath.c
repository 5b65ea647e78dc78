/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c: opens what is below a folder. openat2 resolves a whole path where the kernel has it; else folders are
 * opened one by one. */
#include "web/store/base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens a folder; a missing one is created and its parent synced, so that it survives a power failure. */
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

int beneath_parent(int root_fd, const char *path, bool make, const char **ret_name)
{
	char segment[NAME_MAX + 1];
	int fd = openat(root_fd, ".", FOLDER_FLAGS), next;
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		size_t n = (size_t)(slash - path);

		if (n == 0 || n > NAME_MAX || (path[0] == '.' && (n == 1 || (n == 2 && path[1] == '.')))) {
			close(fd);
			errno = EINVAL;
			return -1;
		}
		memcpy(segment, path, n);
		segment[n] = '\0';
		next = step_into(fd, segment, make);
		close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return fd;
}

int beneath_open(int root_fd, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how)), folder;
	const char *name;

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
		return fd;
	folder = beneath_parent(root_fd, path, false, &name);
	fd = folder >= 0 ? openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (folder >= 0)
		close(folder);
	return fd;
}

int beneath_open_real(const char *folder, const char *path, int flags)
{
	char top[PATH_MAX], real[PATH_MAX];
	int root_fd, fd, why;
	const char *rest;
	size_t n;

	if (!realpath(folder, top) || !realpath(path, real))
		return -1;
	n = strcmp(top, "/") ? strlen(top) : 0;
	if (strncmp(real, top, n) || (real[n] && real[n] != '/')) {
		errno = EXDEV;
		return -1;
	}
	rest = real + n + (real[n] == '/');
	root_fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root_fd < 0 ? -1 : beneath_open(root_fd, *rest ? rest : ".", flags);
	why = errno;
	if (root_fd >= 0)
		close(root_fd);
	errno = why;
	return fd;
}
