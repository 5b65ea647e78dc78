/* record.c: TFRecord framing. */
#include "tracker/event/record.h"

#include <string.h>

#include "tracker/base/crc32c.h"

static uint64_t get_u64le(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static uint32_t get_u32le(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

enum record_state record_next(const void *bytes, size_t n, size_t *at, struct record *ret)
{
	const unsigned char *p = (const unsigned char *)bytes + *at;
	size_t left = n - *at;
	uint64_t payload_bytes;

	*ret = (struct record){ NULL, 0, 0 };
	if (left < RECORD_HEAD_BYTES)
		return RECORD_MORE;
	payload_bytes = get_u64le(p);
	if (crc32c_mask(crc32c(0, p, 8)) != get_u32le(p + 8) || payload_bytes > UINT64_MAX / 2)
		return RECORD_BAD_LENGTH;
	ret->frame_bytes = payload_bytes + RECORD_FRAME_BYTES;
	if (left < ret->frame_bytes)
		return RECORD_MORE;
	ret->payload = p + RECORD_HEAD_BYTES;
	ret->payload_bytes = (size_t)payload_bytes;
	if (crc32c_mask(crc32c(0, ret->payload, ret->payload_bytes)) != get_u32le(ret->payload + payload_bytes))
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

void record_end(struct buf *b, size_t begin)
{
	unsigned char head[RECORD_HEAD_BYTES];
	uint64_t payload_bytes;
	uint32_t crc;

	if (buf_failed(b))
		return;
	payload_bytes = b->len - begin - RECORD_HEAD_BYTES;
	for (int i = 0; i < 8; i++)
		head[i] = (unsigned char)(payload_bytes >> 8 * i);
	crc = crc32c_mask(crc32c(0, head, 8));
	for (int i = 0; i < 4; i++)
		head[8 + i] = (unsigned char)(crc >> 8 * i);
	memcpy(b->data + begin, head, sizeof(head));
	buf_add_u32le(b, crc32c_mask(crc32c(0, b->data + begin + RECORD_HEAD_BYTES, payload_bytes)));
}
