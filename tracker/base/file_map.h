/* file_map.h: the bytes of a regular file, read through a mapping. */
#ifndef DPT_BASE_FILE_MAP_H
#define DPT_BASE_FILE_MAP_H

#include <stddef.h>

#include "tracker/base/err.h"

struct file_map {
	const unsigned char *bytes; /* NULL: empty, or not open */
	size_t n;
};

/* ERR_USAGE, naming path, for what cannot be read or is no regular file; a pipe is not waited for. */
int file_map_open(struct file_map *ret, const char *path, struct err *err);
void file_map_close(struct file_map *m); /* a zeroed one is fine */

#endif
