/* file_write.h: writes bytes to a file, with as many calls as needed. */
#ifndef DPT_BASE_FILE_WRITE_H
#define DPT_BASE_FILE_WRITE_H

#include <stddef.h>

/* Writes n bytes at the current offset. Returns 0, or -1 with errno; then only some of them may be written. */
int file_write(int fd, const void *bytes, size_t n);

#endif
