/* SPDX-License-Identifier: Apache-2.0 */
/* tar_walk.h: the headers of tar archives, and a walk over the entries of one with random access, which returns where
 * their bytes are. Long names and sizes come from pax records or GNU's entries. After a damaged header the walk resumes
 * at the next valid one and reports the gap. Input is untrusted: sizes are checked against the archive, records have
 * a maximum. One thread. */
#ifndef DPT_DATA_TAR_WALK_H
#define DPT_DATA_TAR_WALK_H

#include "trainer/data/store/data_objects.h"

/* ---- a 512-byte header: POSIX.1-1988 ustar, the older v7 form and GNU's
 * (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, "ustar Interchange Format"; GNU tar's
 * manual, "Basic Tar Format") ---- */

#define TAR_BLOCK 512

/* Builds the header of a world-readable file without owner and date, so that equal input gives equal bytes. name: at
 * most 99 bytes. */
void tar_block_make(void *block, const char *name, uint64_t bytes);

static inline uint64_t tar_block_padded(uint64_t bytes)
{
	return (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* ---- the entries of an archive ---- */

#define TAR_WALK_NAME_MAX 4096

struct tar_walk;

struct tar_walk_entry {
	const char *name; /* valid until the next call; NULL: skipped bytes that are not an entry */
	uint64_t offset;  /* offset of its content, or of the skipped bytes */
	uint64_t bytes;
};

/* Creates a walk from the start of *s, which is copied. */
struct tar_walk *tar_walk_new(const struct byte_source *s);
void tar_walk_free(struct tar_walk *w); /* NULL is fine */

/* Returns 1 with the next file or gap, 0 at the end, negative if the archive cannot be read. */
int tar_walk_next(struct tar_walk *w, struct tar_walk_entry *ret, struct err *err);

/* Returns the n bytes (at most 65536) at a file offset, usually from the window. Valid until the next call. */
int tar_walk_bytes(struct tar_walk *w, uint64_t offset, size_t n, const char **ret, struct err *err);

#endif
