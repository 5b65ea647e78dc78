/* file_write.c: repeats write until all bytes are written. */
#include "tracker/base/file_write.h"

#include <errno.h>
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
