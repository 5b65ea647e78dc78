/* SPDX-License-Identifier: Apache-2.0 */
/* record.h: TFRecord framing: u64le length, u32le masked crc32c of the length, payload, u32le masked crc32c of the
 * payload. Pure functions over bytes in memory: no I/O, no allocation when reading.
 *
 * Reading a growing file: keep a buffer that starts at a record's first byte and loop
 *
 *	while ((state = record_next(bytes, n, &at, &rec)) == RECORD_OK)
 *		... rec.payload, rec.payload_bytes ...
 *
 * On RECORD_MORE drop bytes[0..at), append more bytes and try again: at the end of a file it is an incomplete record,
 * which is normal. RECORD_BAD_LENGTH (also for zero bytes at the end): no later record can be found.
 * RECORD_BAD_PAYLOAD: this record is damaged; at += rec.frame_bytes continues with the next one. */
#ifndef DPT_EVENT_RECORD_H
#define DPT_EVENT_RECORD_H

#include "tracker/base/buf.h"

#define RECORD_HEAD_BYTES 12u
#define RECORD_FRAME_BYTES 16u /* what framing adds to a payload */

enum record_state {
	RECORD_OK,
	RECORD_MORE,	    /* the bytes end inside the record; rec.frame_bytes is its size, 0 if unknown */
	RECORD_BAD_LENGTH,  /* the length's checksum is wrong */
	RECORD_BAD_PAYLOAD, /* the payload's checksum is wrong; rec is filled */
};

struct record {
	const unsigned char *payload; /* inside the caller's bytes */
	size_t payload_bytes;
	uint64_t frame_bytes; /* payload and framing */
};

/* Reads the record at bytes[*at..n). Only RECORD_OK advances *at, to the next record. */
enum record_state record_next(const void *bytes, size_t n, size_t *at, struct record *ret);

/* Returns how many of the first n bytes are whole, undamaged records. */
size_t record_whole(const void *bytes, size_t n);

/* Completes a frame whose payload is at frame + RECORD_HEAD_BYTES: writes its head and its tail. */
void record_seal(unsigned char *frame, size_t payload_bytes);

/* Begins a record at the end of b; returns the offset to pass to record_end after its payload is appended. */
size_t record_begin(struct buf *b);
void record_end(struct buf *b, size_t begin);

#endif
