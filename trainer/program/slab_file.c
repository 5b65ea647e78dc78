/* slab_file.c: see slab_file.h. */
#include "trainer/program/slab_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"

static void warn_of_memory(int fd, const char *dir)
{
	struct statfs s;

	if (fstatfs(fd, &s) == 0 && (s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC))
		log_warn("--offload-dir %s: is in memory itself (tmpfs), so no memory is saved", dir);
}

int slab_file_open(void **ret, const char *dir, size_t bytes, struct err *err)
{
	int fd = file_nameless(dir), rc;
	void *at;

	if (fd < 0)
		return err_set(err, ERR_USAGE, "--offload-dir %s: cannot create a file there: %s", dir,
			       strerror(errno));
	warn_of_memory(fd, dir);
	rc = posix_fallocate(fd, 0, (off_t)bytes);
	if (rc) {
		close(fd);
		return err_set(err, ERR_USAGE, "--offload-dir %s: no room for %.0f MiB there: %s", dir,
			       (double)bytes / 1048576.0, strerror(rc));
	}
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = errno;
	close(fd);
	if (at == MAP_FAILED)
		return err_set_errno(err, rc, "--offload-dir %s: mapping %.0f MiB", dir, (double)bytes / 1048576.0);
	*ret = at;
	return 0;
}

void slab_file_close(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}
