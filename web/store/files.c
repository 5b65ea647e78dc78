/* files.c: removing below an open folder. */
#include "web/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MAX_DEPTH 64

int files_parent(int root_fd, const char *path, const char **ret_name)
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
		next = openat(fd, segment, FOLDER_FLAGS);
		close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return fd;
}

static int remove_any(int at_fd, const char *name, int dry, struct files_sum *sum, int depth);

static int remove_folder(int at_fd, const char *name, int dry, struct files_sum *sum, int depth)
{
	int fd = depth < MAX_DEPTH ? openat(at_fd, name, FOLDER_FLAGS) : (errno = ELOOP, -1), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		rc = errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = remove_any(fd, e->d_name, dry, sum, depth + 1);
	closedir(d);
	return rc || dry || !unlinkat(at_fd, name, AT_REMOVEDIR) ? rc : errno;
}

static int remove_any(int at_fd, const char *name, int dry, struct files_sum *sum, int depth)
{
	struct stat sb;

	if (fstatat(at_fd, name, &sb, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : errno;
	if (S_ISDIR(sb.st_mode))
		return remove_folder(at_fd, name, dry, sum, depth);
	if (!dry && unlinkat(at_fd, name, 0) && errno != ENOENT)
		return errno;
	sum->files++;
	sum->bytes += (uint64_t)sb.st_size;
	return 0;
}

int files_remove(int at_fd, const char *name, int dry, struct files_sum *sum)
{
	return remove_any(at_fd, name, dry, sum, 0);
}
