/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: reads and writes TFRecord framing. */
#include "tracker/event/record.h"

#include "tracker/base/crc32c.h"
#include "tracker/base/little.h"

#define RECORD_TAIL_BYTES (RECORD_FRAME_BYTES - RECORD_HEAD_BYTES)

enum record_state record_next(const void *bytes, size_t n, size_t *at, struct record *ret)
{
	const unsigned char *p = (const unsigned char *)bytes + *at;
	size_t left = n - *at;
	uint64_t payload_bytes;

	*ret = (struct record){ NULL, 0, 0 };
	if (left < RECORD_HEAD_BYTES)
		return RECORD_MORE;
	payload_bytes = little_get_u64(p);
	if (crc32c_mask(crc32c(0, p, 8)) != little_get_u32(p + 8) || payload_bytes > UINT64_MAX / 2)
		return RECORD_BAD_LENGTH;
	ret->frame_bytes = payload_bytes + RECORD_FRAME_BYTES;
	if (left < ret->frame_bytes)
		return RECORD_MORE;
	ret->payload = p + RECORD_HEAD_BYTES;
	ret->payload_bytes = (size_t)payload_bytes;
	if (crc32c_mask(crc32c(0, ret->payload, ret->payload_bytes)) != little_get_u32(ret->payload + payload_bytes))
		return RECORD_BAD_PAYLOAD;
	*at += (size_t)ret->frame_bytes;
	return RECORD_OK;
}

size_t record_whole(const void *bytes, size_t n)
{
	struct record rec;
	size_t at = 0;

	while (record_next(bytes, n, &at, &rec) == RECORD_OK)
		;
	return at;
}

size_t record_begin(struct buf *b)
{
	size_t begin = b->len;

	buf_add(b, "\0\0\0\0\0\0\0\0\0\0\0", RECORD_HEAD_BYTES);
	return begin;
}

void record_seal(unsigned char *frame, size_t payload_bytes)
{
	unsigned char *payload = frame + RECORD_HEAD_BYTES;

	little_put_u64(frame, payload_bytes);
	little_put_u32(frame + 8, crc32c_mask(crc32c(0, frame, 8)));
	little_put_u32(payload + payload_bytes, crc32c_mask(crc32c(0, payload, payload_bytes)));
}

void record_end(struct buf *b, size_t begin)
{
	if (!buf_reserve(b, RECORD_TAIL_BYTES))
		return;
	record_seal((unsigned char *)b->data + begin, b->len - begin - RECORD_HEAD_BYTES);
	b->len += RECORD_TAIL_BYTES;
}
