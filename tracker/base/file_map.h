/* file_map.h: the bytes of a regular file as a read-only mapping. */
#ifndef DPT_BASE_FILE_MAP_H
#define DPT_BASE_FILE_MAP_H

#include <stddef.h>

#include "tracker/base/err.h"

struct file_map {
	const unsigned char *bytes; /* NULL: empty, or not open */
	size_t n;
};

/* ERR_USAGE, naming path, for a file that cannot be read or is not regular; does not block on a pipe. */
int file_map_open(struct file_map *ret, const char *path, struct err *err);
void file_map_close(struct file_map *m); /* a zeroed one is fine */

#endif
