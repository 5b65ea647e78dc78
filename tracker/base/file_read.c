/* file_read.c: repeats pread until all bytes are read. */
#include "tracker/base/file_read.h"

#include <errno.h>
#include <unistd.h>

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
