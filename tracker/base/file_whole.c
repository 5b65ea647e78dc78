/* file_whole.c: uses O_TMPFILE and links the file through /proc, or renames a temporary file. */
#include "tracker/base/file_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tracker/base/file_name.h"

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
