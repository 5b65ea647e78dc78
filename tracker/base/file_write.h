/* file_write.h: bytes into a file, however many calls they take. */
#ifndef DPT_BASE_FILE_WRITE_H
#define DPT_BASE_FILE_WRITE_H

#include <stddef.h>

/* All n bytes, where the descriptor stands. 0, or -1 with errno: only some of them may be there. */
int file_write(int fd, const void *bytes, size_t n);

#endif
