/* chunk.h: up to 2048 points of one series as bytes. Points lie in groups of 64, each packed by itself (differences
 * from the group's smallest, as many bits as the largest needs) and described in a table in front, so that a reader
 * can skip or decode single groups. Points keep their order and every bit, NaN payloads included.
 *
 * Bytes, little-endian: u8 format (1), u8 flags (1: steps never go back, 2: every time is a number), u16 points, u32
 * crc32c of the table; the
 * table: an entry a group (struct chunk_group in the order of its members; offsets count from the chunk's start); the
 * groups; 8 zero bytes. Each group has a checksum of its own, so that a part can be read and trusted alone. */
#ifndef DPT_STORE_CHUNK_H
#define DPT_STORE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "web/store/points/series_summary.h"

#define CHUNK_POINTS 2048
#define CHUNK_GROUP 64

struct chunk_group {
	uint32_t offset;
	uint8_t points;
	uint8_t nonfinite;
	uint8_t min_at, max_at; /* position of the smallest and largest finite value; 255: none */
	int64_t min_step, max_step;
	double min_time, max_time; /* NaN times left out; NaN when all are */
	double min, max, sum;      /* over finite values; NaN, NaN, 0 without any */
	uint32_t crc;              /* crc32c of the group's bytes */
};

struct chunk {
	const unsigned char *bytes;
	size_t len;
	unsigned points, groups;
	bool ordered;
};

/* Where a group lies in its chunk, and how it is known to be whole. */
struct chunk_span {
	uint32_t offset, len, crc;
	uint8_t points;
};

#define CHUNK_PAD 8 /* bytes that decoding may load behind a group's */

/* Appends the encoding of n (1 .. CHUNK_POINTS) points to b. */
void chunk_encode(struct buf *b, const struct sum_point *points, unsigned n);

/* Checks head and table; bytes must outlive *ret. 0 or ERR_CORRUPT. Groups are checked when they are decoded. */
int chunk_open(struct chunk *ret, const void *bytes, size_t len);

void chunk_group_get(const struct chunk *c, unsigned group, struct chunk_group *ret);

/* Decodes one group (at most CHUNK_GROUP points). 0 or ERR_CORRUPT. */
int chunk_group_points(const struct chunk *c, unsigned group, struct sum_point *ret);

/* The same from the group's bytes alone, with CHUNK_PAD more behind them. The span is to be trusted. */
void chunk_group_span(const struct chunk *c, unsigned group, struct chunk_span *ret);
int chunk_span_points(const struct chunk_span *at, const void *bytes, struct sum_point *ret);

/* All points; ret has room for c->points. */
int chunk_points(const struct chunk *c, struct sum_point *ret);

#endif
