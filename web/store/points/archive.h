/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h: the chunks of an ended run as one object, and a cache of such objects. Reads objects only through a
 * function of the caller. Private to web/store.
 * Format, little-endian: the chunks, by id; the index, one entry per chunk (the members of struct archive_entry in
 * order, 56 bytes); a tail: u64 offset of the index, u32 crc32c of the index, u32 version (1), "DPTRARCH". */
#ifndef DPT_STORE_ARCHIVE_H
#define DPT_STORE_ARCHIVE_H

#include "web/store/db/db.h"

struct archive_entry {
	int64_t id; /* id of the chunk, as in its row */
	uint32_t points, bytes;
	uint64_t offset; /* offset of its bytes in the object */
	int64_t min_step, max_step;
	double min_time, max_time; /* NaN: unknown */
};

/* Chunks of one archive, by id. */
struct archive_list {
	const struct archive_entry *entry;
	size_t n;
};

#define ARCHIVE_NAME_BYTES 33
#define ARCHIVE_CHUNKS_MAX ((size_t)1 << 20) /* chunks of one archive: an index of 56 MiB */

/* Appends index and tail to chunks of chunk_bytes bytes in total. */
void archive_add_index(struct buf *to, const struct archive_list *l, uint64_t chunk_bytes);

/* --- in memory ---------------------------------------------------------------------------------------------- */

/* A cache of indexes and pieces of recently read objects: 64 MiB of pieces, and 64 MiB of unused indexes. Any
 * thread. */
struct archives;

struct archive_range {
	const char *object;
	uint64_t from;
	size_t n;
};

/* Access to the objects. */
struct archives_source {
	/* Reads n bytes of an object; waits at most some seconds. ERR_BUSY: not available now. ERR_DAMAGED: it is
	 * lost. */
	int (*fetch)(void *arg, const struct archive_range *r, void *to, struct err *err);
	void (*key)(void *arg, const char *object, char *ret, size_t room); /* its key in the object store */
	void *arg;
};

struct archives *archives_new(const struct archives_source *from); /* copies from */
void archives_free(struct archives *s);				   /* NULL is fine */

/* Returns ERR_DAMAGED; err names the object's key, and so does the log unless the last report was of the same
 * object. Drops the cached pieces of the object. */
int archives_damaged(struct archives *s, const char *object, struct err *err);

/* The archive of a run, or the part of a series, with its index in use until archived_done. */
struct archived {
	struct archives *of;
	struct archive_list list;
	struct archives_index *index;
};

/* d has an archive cache attached (db_attach). 1: archived, 0: not, in d's snapshot; negative: failed. */
int archived_series(struct archived *ret, struct db *d, int64_t series, struct err *err);
int archived_object(struct archived *ret, struct archives *s, const char *object, uint64_t bytes, struct err *err);
void archived_done(struct archived *a); /* all zeros is fine */

/* Reports the result of reading: ERR_DAMAGED calls archives_damaged. All zeros is fine. */
void archived_outcome(const struct archived *a, int rc, struct err *err);

/* The position of the first chunk whose id is at least id. */
size_t archived_find(const struct archived *a, int64_t id);

/* Reads a part of a chunk: n bytes starting at `from`. */
struct archive_part {
	const struct archive_entry *chunk;
	size_t from, n;
};
int archived_read(const struct archived *a, const struct archive_part *part, void *to, struct err *err);

#endif
