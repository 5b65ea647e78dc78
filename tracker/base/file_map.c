/* file_map.c: maps complete files into memory. */
#include "tracker/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

int file_map_open(struct file_map *ret, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc;
	struct file_map m = { 0 };

	if (fd < 0)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	rc = map_regular_file(&m, fd, path, err);
	close(fd);
	if (!rc)
		*ret = m;
	return rc;
}

void file_map_close(struct file_map *m)
{
	if (m->bytes)
		munmap((void *)m->bytes, m->n);
	*m = (struct file_map){ 0 };
}
