/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.h: iterates over the folded chunks of a series, from rows of the table or from the archive of an ended run.
 * One iteration of each kind at a time on a connection, inside one snapshot. Private to web/store. */
#ifndef DPT_STORE_CHUNKS_H
#define DPT_STORE_CHUNKS_H

#include "web/store/points/archive.h"

enum chunks_what {
	CHUNKS_HEADS, /* all but data */
	CHUNKS_DATA,  /* id and data */
};

struct chunks {
	int64_t id;
	int64_t points, min_step, max_step;
	double min_time, max_time; /* NaN: unknown */
	const void *data;	   /* valid until the next call */
	size_t bytes;
	/* private */
	struct db *d;
	struct db_rows *rows; /* NULL: read from the archive */
	struct db_rows *body; /* for chunks_load: the row that owns the bytes */
	enum chunks_what what;
	int64_t series, first, last;
	bool any; /* a row was found */
	size_t at;
	struct archived archived;
	unsigned char *room;
};

/* The chunks of the series whose numbers are in [first, last]. */
struct chunks_range {
	enum chunks_what what;
	int64_t series, first, last;
};

/* 0, or negative: then chunks_stop is not needed. */
int chunks_start(struct chunks *c, struct db *d, const struct chunks_range *r, struct err *err);

/* Starts, with data, at the first chunk whose highest step is at least step. The series has n folded chunks, by
 * ascending steps. */
struct chunks_step {
	int64_t series, n, step;
};
int chunks_start_step(struct chunks *c, struct db *d, const struct chunks_step *from, struct err *err);

int chunks_next(struct chunks *c, struct err *err); /* 1: a chunk, 0: the end, negative: failed */
int chunks_load(struct chunks *c, struct err *err); /* reads the data of the current chunk of a CHUNKS_HEADS
						     * iteration */

/* Always call it, also after the end. rc, err: the result so far; for damage in an archive err names the object
 * (archived_outcome). */
void chunks_stop(struct chunks *c, int rc, struct err *err);

#define CHUNKS_LAST (((int64_t)1 << 20) - 1)

#endif
