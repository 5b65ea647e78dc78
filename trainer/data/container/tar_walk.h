/* tar_walk.h: iterates over the entries of a tar archive with random access, and returns where their bytes are. Long
 * names and sizes come from pax records or GNU's entries. After a damaged header it resumes at the next valid one
 * and reports the gap. Input is untrusted: sizes are checked against the archive, records have a maximum. One
 * thread. */
#ifndef DPT_DATA_TAR_WALK_H
#define DPT_DATA_TAR_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/data/container/byte_source.h"

#define TAR_WALK_NAME_MAX 4096

struct tar_walk;

struct tar_walk_entry {
	const char *name; /* until the next call; NULL: skipped bytes that are not an entry */
	uint64_t offset;  /* of its content, or of the skipped bytes */
	uint64_t bytes;
};

/* Creates a walk from the start of *s, which is copied. ERR_NOMEM. */
int tar_walk_new(struct tar_walk **ret, const struct byte_source *s, struct err *err);
void tar_walk_free(struct tar_walk *w); /* NULL is fine */

/* Returns 1 with the next file or gap, 0 at the end, negative if the archive cannot be read. */
int tar_walk_next(struct tar_walk *w, struct tar_walk_entry *ret, struct err *err);

/* Returns the n bytes (at most 65536) at a file offset, usually from the window. Valid until the next call. */
int tar_walk_bytes(struct tar_walk *w, uint64_t offset, size_t n, const char **ret, struct err *err);

#endif
