/* outline.h: what a chart needs to know of a chunk without its points: of each group of 64, and of all of them, the
 * ends and extremes, by step and by time. Outlines of full chunks (which never change) are kept in memory, so that a
 * chart of a long series decodes only the groups that the edge of a bucket cuts. Where a store is an address, the bytes
 * of those chunks are kept, too, which spares a round trip each. Bounded; any thread. Private to web/store. */
#ifndef DPT_STORE_OUTLINE_H
#define DPT_STORE_OUTLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/points/chunk.h"
#include "web/store/points/series_summary.h"

/* Points along one axis. Of equal places the first point counts at the low end, the last one at the high end, and the
 * lowest place of equal extremes. low is NaN when a place is. */
struct outline_axis {
	double low, high;   /* where the ends lie */
	double first, last; /* the values there */
	double min_at, max_at;
};

struct outline_part {
	struct outline_axis by_step, by_time;
	int64_t min_step, max_step;
	double min, max, sum;     /* over finite values */
	unsigned points, nonfinite; /* with nonfinite ones the values above say nothing */
};

struct outline {
	double min_time, max_time; /* NaN times left out */
	struct outline_part all;
	unsigned groups;
	struct outline_part part[CHUNK_POINTS / CHUNK_GROUP];
	struct chunk_span span[CHUNK_POINTS / CHUNK_GROUP];
};

/* points: those of the whole chunk, as chunk_points gives them. */
void outline_describe(struct outline *ret, const struct chunk *c, const struct sum_point *points);

struct outlines;

/* chunk_bytes: of chunks kept beside their outlines; 0: none are. NULL when out of memory. */
struct outlines *outlines_new(uint64_t chunk_bytes);
void outlines_free(struct outlines *o); /* NULL is fine */

/* Ids of series may be given anew after a removal, or by a database that went back to an earlier state: rev is that of
 * the newest removal in the caller's snapshot, rows_of says whose rows these are (the query outlines_of). Returns what
 * its keys begin with (0: a newer snapshot is known); what a newer one makes invalid is forgotten. */
uint64_t outlines_generation(struct outlines *o, int64_t rev, const char *rows_of);

/* Outlines of another generation are not given, and not kept. */
struct outline_key {
	uint64_t generation;
	int64_t chunk;
};

/* An outline, and the chunk's bytes if those are kept. */
struct outline_known {
	const struct outline *outline;
	const unsigned char *bytes; /* NULL: not kept */
	size_t len;
};

/* *ret is borrowed until outlines_release, which is only called after true; false: not known. */
bool outlines_get(struct outlines *o, const struct outline_key *k, struct outline_known *ret);
void outlines_release(struct outlines *o);

bool outlines_want_bytes(const struct outlines *o); /* whether it keeps chunks, too */

/* Of memory: at most 10,000 outlines (the chunks of 20 million points), and chunk_bytes. */
uint64_t outlines_bytes(struct outlines *o);

/* Takes outline (from malloc) over. */
void outlines_put(struct outlines *o, const struct outline_key *k, struct outline *outline);

/* Copies the bytes of a chunk whose outline is there; others make room. */
void outlines_put_bytes(struct outlines *o, const struct outline_key *k, const void *bytes, size_t len);

#endif
