/* record.h: TFRecord framing: u64le length, u32le masked crc32c of the length, payload, u32le masked crc32c of the
 * payload. Pure functions over bytes in memory: no I/O, no allocation when reading, no knowledge of what a payload
 * means.
 *
 * Reading a growing file: keep a buffer that starts at a record's first byte and loop
 *
 *	while ((state = record_next(bytes, n, &at, &rec)) == RECORD_OK)
 *		... rec.payload, rec.payload_bytes ...
 *
 * On RECORD_MORE drop bytes[0..at), read on behind the rest and try again: at the end of a file it is a torn tail,
 * which is normal. RECORD_BAD_LENGTH (a zero-filled tail too): nothing behind it can be framed any more.
 * RECORD_BAD_PAYLOAD: this record is damaged; at += rec.frame_bytes goes on behind it. */
#ifndef DPT_EVENT_RECORD_H
#define DPT_EVENT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"

#define RECORD_HEAD_BYTES 12u
#define RECORD_FRAME_BYTES 16u /* what framing adds to a payload */

enum record_state {
	RECORD_OK,
	RECORD_MORE,        /* the bytes end inside the record; rec.frame_bytes is its size, 0 while unknown */
	RECORD_BAD_LENGTH,  /* the length's checksum is wrong */
	RECORD_BAD_PAYLOAD, /* the payload's checksum is wrong; rec is filled */
};

struct record {
	const unsigned char *payload; /* inside the caller's bytes */
	size_t payload_bytes;
	uint64_t frame_bytes; /* payload and framing */
};

/* Looks at bytes[*at..n). Only RECORD_OK moves *at, behind the record. */
enum record_state record_next(const void *bytes, size_t n, size_t *at, struct record *ret);

/* How many of the first n bytes are whole, undamaged records. */
size_t record_whole(const void *bytes, size_t n);

/* Completes a frame whose payload is already at frame + RECORD_HEAD_BYTES: writes its head and its tail. */
void record_seal(unsigned char *frame, size_t payload_bytes);

/* Begins a record at the end of b; returns the offset to hand to record_end once its payload has been appended. */
size_t record_begin(struct buf *b);
void record_end(struct buf *b, size_t begin);

#endif
