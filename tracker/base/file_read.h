/* file_read.h: reads bytes at an offset of a file, with as many calls as needed. */
#ifndef DPT_BASE_FILE_READ_H
#define DPT_BASE_FILE_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the number of bytes read: fewer than n only at the end of the file. -1 with errno: failed. */
ssize_t file_read(int fd, uint64_t at, void *to, size_t n);

#endif
