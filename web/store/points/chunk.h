/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.h: up to 2048 points of one series as bytes. Groups of 64 points are packed separately: differences from the
 * smallest value of the group, with as many bits as the largest needs. A table at the start describes each group, so
 * a reader can skip or decode single groups. Points keep their order and every bit, including NaN payloads.
 * Format, little-endian: u8 format (1), u8 flags (1: steps never decrease, 2: no time is NaN), u16 points, u32
 * crc32c of the table; the table, one entry per group (the members of struct chunk_group in order; offsets from the
 * start of the chunk); the groups; 8 zero bytes. Each group has its own checksum, so that a part can be verified
 * alone. */
#ifndef DPT_STORE_CHUNK_H
#define DPT_STORE_CHUNK_H

#include "web/store/points/series_summary.h"

#define CHUNK_POINTS 2048
#define CHUNK_GROUP 64

struct chunk_group {
	uint32_t offset;
	uint8_t points;
	uint8_t nonfinite;
	uint8_t min_at, max_at; /* position of the smallest and largest finite value; 255: none */
	int64_t min_step, max_step;
	double min_time, max_time; /* without NaN times; NaN if all are */
	double min, max, sum;	   /* over finite values; without any NaN, NaN and 0 */
	uint32_t crc;		   /* crc32c of the group's bytes */
};

struct chunk {
	const unsigned char *bytes;
	size_t len;
	unsigned points, groups;
	bool ordered;
};

/* Where a group is stored in its chunk, and its checksum. */
struct chunk_span {
	uint32_t offset, len, crc;
	uint8_t points;
};

#define CHUNK_PAD 8 /* bytes after a group that decoding may load */

/* Appends the encoding of n (1 .. CHUNK_POINTS) points to b. */
void chunk_encode(struct buf *b, const struct sum_point *points, unsigned n);

/* Checks head and table, not the groups; bytes must outlive *ret. 0 or ERR_CORRUPT. */
int chunk_open(struct chunk *ret, const void *bytes, size_t len);

void chunk_group_get(const struct chunk *c, unsigned group, struct chunk_group *ret);

/* Verifies and decodes one group (at most CHUNK_GROUP points). 0 or ERR_CORRUPT. */
int chunk_group_points(const struct chunk *c, unsigned group, struct sum_point *ret);

/* The same from the bytes of the group alone, followed by CHUNK_PAD bytes. The span must be valid. */
void chunk_group_span(const struct chunk *c, unsigned group, struct chunk_span *ret);
int chunk_span_points(const struct chunk_span *at, const void *bytes, struct sum_point *ret);

/* Decodes all points; ret has room for c->points. */
int chunk_points(const struct chunk *c, struct sum_point *ret);

/* One row of the ingest log: the points of one batch for one run, grouped by series, with a checksum.
 * Format: u8 format (1), 3 zero bytes, u32le crc32c of the rest; per series: varint series id, varint points, then
 * per point: zigzag varint of step minus previous step (0 at first), f64 wall time, f64 value. */
void pack_begin(struct buf *b); /* b must be empty */
void pack_series(struct buf *b, int64_t series_id, const struct sum_point *points, size_t n);
void pack_end(struct buf *b);

/* Reads a row. Caller's storage; the bytes must outlive it. */
struct pack_reader {
	const unsigned char *at, *end;
	uint64_t left; /* unread points of the current series */
	int64_t step;
};

int pack_open(struct pack_reader *ret, const void *bytes, size_t len); /* 0 or ERR_CORRUPT */

/* Moves to the next series (skips the rest of the current one): 1, 0 at the end, or ERR_CORRUPT. */
int pack_next_series(struct pack_reader *r, int64_t *ret_series_id, uint64_t *ret_points);

/* Reads the next point of the series: 1, 0 at its end, or ERR_CORRUPT. */
int pack_next_point(struct pack_reader *r, struct sum_point *ret);

void chunk_add_varint(struct buf *b, uint64_t v);

#endif
