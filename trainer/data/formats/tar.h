/* tar.h: reads a tar archive from front to back, plain or gzip (POSIX ustar; GNU long names are skipped). The caller
 * sees an entry's size before it reads. */
#ifndef DPT_DATA_TAR_H
#define DPT_DATA_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct tar;

struct tar_entry {
	char name[257];
	uint64_t bytes;
};

/* Opens an archive at its start. ERR_USAGE: it cannot be opened. */
int tar_open(struct tar **ret, const char *path, struct err *err);
void tar_close(struct tar *t); /* NULL is fine */

/* Finds the next regular file. Returns 1: found; 0: the end; negative: damaged. */
int tar_next(struct tar *t, struct tar_entry *ret, struct err *err);

/* Reads the first n bytes of the entry. At most once after tar_next. */
int tar_read(struct tar *t, void *to, size_t n, struct err *err);

#endif
