/* record.c: TFRecord framing. */
#include "tracker/event/record.h"

#include <endian.h>
#include <string.h>

#include "tracker/base/crc32c.h"

#define RECORD_TAIL_BYTES (RECORD_FRAME_BYTES - RECORD_HEAD_BYTES)

static uint64_t get_u64le(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint32_t get_u32le(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static void put_u64le(unsigned char *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static void put_u32le(unsigned char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
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

void record_seal(unsigned char *frame, size_t payload_bytes)
{
	unsigned char *payload = frame + RECORD_HEAD_BYTES;

	put_u64le(frame, payload_bytes);
	put_u32le(frame + 8, crc32c_mask(crc32c(0, frame, 8)));
	put_u32le(payload + payload_bytes, crc32c_mask(crc32c(0, payload, payload_bytes)));
}

void record_end(struct buf *b, size_t begin)
{
	if (!buf_reserve(b, RECORD_TAIL_BYTES))
		return;
	record_seal((unsigned char *)b->data + begin, b->len - begin - RECORD_HEAD_BYTES);
	b->len += RECORD_TAIL_BYTES;
}
