/* archive.h: the chunks of an ended run as one object, and what is kept in memory of such objects. The bytes,
 * little-endian: the chunks one behind the other, by their ids; the index, an entry a chunk (struct archive_entry in
 * the order of its members, 56 bytes); a tail: u64 where the index begins, u32 crc32c of the index, u32 version (1),
 * "DPTRARCH". Knows of no store of objects but a function that reads parts of one. Private to web/store. */
#ifndef DPT_STORE_ARCHIVE_H
#define DPT_STORE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "web/store/db/db.h"

struct archive_entry {
	int64_t id; /* of the chunk, as its row had it */
	uint32_t points, bytes;
	uint64_t offset; /* of its bytes in the object */
	int64_t min_step, max_step;
	double min_time, max_time; /* NaN: unknown */
};

/* Chunks of one archive, by id. */
struct archive_list {
	const struct archive_entry *entry;
	size_t n;
};

#define ARCHIVE_NAME_BYTES 33
#define ARCHIVE_CHUNKS_MAX ((size_t)1 << 20) /* of one archive: an index of 56 MiB */

/* Index and tail, which stand behind chunks of that many bytes. */
void archive_add_index(struct buf *to, const struct archive_list *l, uint64_t chunk_bytes);

/* --- in memory ---------------------------------------------------------------------------------------------- */

/* Indexes and pieces of objects that were read lately: 64 MiB of pieces, and as much of indexes that nobody looks at.
 * Any thread. */
struct archives;

/* Where objects lie. */
struct archives_source {
	/* Reads n bytes of one; waits for some seconds at most. ERR_BUSY: it cannot be had now. ERR_DAMAGED: it is
	 * lost. */
	int (*fetch)(void *arg, const char *object, uint64_t from, size_t n, void *to, struct err *err);
	void (*key)(void *arg, const char *object, char *ret, size_t room); /* its name in the object store */
	void *arg;
};

struct archives *archives_new(const struct archives_source *from); /* copied; NULL when out of memory */
void archives_free(struct archives *s);				   /* NULL is fine */

/* ERR_DAMAGED: err, and once in a row the log, name the object's key; what is kept of it is read anew next time. */
int archives_damaged(struct archives *s, const char *object, struct err *err);

/* The run's archive, or the part of a series; with its index held until archived_done. */
struct archived {
	struct archives *of;
	struct archive_list list;
	struct archives_index *index;
};

/* d has archives attached (db_attach). 1 in an archive, 0 not, by d's snapshot. */
int archived_series(struct archived *ret, struct db *d, int64_t series, struct err *err);
int archived_object(struct archived *ret, struct archives *s, const char *object, uint64_t bytes, struct err *err);
void archived_done(struct archived *a); /* one that is all zeros is fine */

/* How reading it ended: what is ERR_DAMAGED is archives_damaged. Of all zeros is fine. */
void archived_outcome(const struct archived *a, int rc, struct err *err);

/* The position of the first chunk whose id is not below. */
size_t archived_find(const struct archived *a, int64_t id);

/* A part of a chunk. */
int archived_read(const struct archived *a, const struct archive_entry *e, size_t from, size_t n, void *to,
		  struct err *err);

#endif
