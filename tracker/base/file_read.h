/* file_read.h: bytes from a place of a file on, however many calls they take. */
#ifndef DPT_BASE_FILE_READ_H
#define DPT_BASE_FILE_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How many of the n bytes there are: fewer where the file ends before. -1 with errno: they cannot be read. */
ssize_t file_read(int fd, uint64_t at, void *to, size_t n);

#endif
