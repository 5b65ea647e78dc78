/* SPDX-License-Identifier: Apache-2.0 */
/* outline.h: summaries of chunks for charts: ends and extremes by step and by time, of each group of 64 points and
 * of the whole chunk. Outlines of full chunks (which never change) are cached, so that a chart of a long series
 * decodes only groups that straddle a bucket edge. On a remote database the bytes of these chunks are cached too,
 * which saves a round trip each. Memory is bounded; any thread. Private to web/store. */
#ifndef DPT_STORE_OUTLINE_H
#define DPT_STORE_OUTLINE_H

#include "web/store/points/chunk.h"

/* Points along one axis. Among equal positions the first point counts at the low end and the last at the high end;
 * among equal extremes the lowest position. low is NaN if a position is. */
struct outline_axis {
	double low, high;   /* positions of the ends */
	double first, last; /* values at the ends */
	double min_at, max_at;
};

struct outline_part {
	struct outline_axis by_step, by_time;
	int64_t min_step, max_step;
	double min, max, sum;	    /* over finite values */
	unsigned points, nonfinite; /* if nonfinite > 0 the values above are undefined */
};

struct outline {
	double min_time, max_time; /* without NaN times */
	struct outline_part all;
	unsigned groups;
	struct outline_part part[CHUNK_POINTS / CHUNK_GROUP];
	struct chunk_span span[CHUNK_POINTS / CHUNK_GROUP];
};

/* points: all points of the chunk, as decoded by chunk_points. */
void outline_describe(struct outline *ret, const struct chunk *c, const struct sum_point *points);

struct outlines;

/* chunk_bytes: size of the cache of chunk bytes; 0: none. */
struct outlines *outlines_new(uint64_t chunk_bytes);
void outlines_free(struct outlines *o); /* NULL is fine */

/* Series ids may be reused after a removal, or by a database that was restored. rev is the newest removal in the
 * caller's snapshot; rows_of identifies the database (query outlines_of). Returns the generation for outline_key (0:
 * a newer snapshot is known), and drops what a newer one invalidates. */
uint64_t outlines_generation(struct outlines *o, int64_t rev, const char *rows_of);

/* Outlines of another generation are neither returned nor stored. */
struct outline_key {
	uint64_t generation;
	int64_t chunk;
};

/* An outline, and the bytes of its chunk if cached. */
struct outline_known {
	const struct outline *outline;
	const unsigned char *bytes; /* NULL: not cached */
	size_t len;
};

/* Returns true if found; *ret is then borrowed until outlines_release. Call that only after true. */
bool outlines_get(struct outlines *o, const struct outline_key *k, struct outline_known *ret);
void outlines_release(struct outlines *o);

bool outlines_want_bytes(const struct outlines *o); /* true if chunk bytes are cached */

/* Memory in use: at most 10,000 outlines (chunks of 20 million points), and chunk_bytes. */
uint64_t outlines_bytes(struct outlines *o);

/* Takes ownership of outline (from malloc). */
void outlines_put(struct outlines *o, const struct outline_key *k, struct outline *outline);

/* Copies the bytes of a chunk whose outline is cached; evicts others. */
void outlines_put_bytes(struct outlines *o, const struct outline_key *k, const void *bytes, size_t len);

#endif
