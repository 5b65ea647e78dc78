/* log_row.c: writes and reads rows of the ingest log. */
#include "web/store/points/log_row.h"

#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/err.h"

#define FORMAT 1
#define HEAD_BYTES 8
#define POINT_BYTES_MAX 26

static unsigned char *put_pack_varint(unsigned char *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	*p++ = (unsigned char)v;
	return p;
}

static int get_pack_varint(struct pack_reader *r, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		v |= (uint64_t)(*r->at & 0x7f) << shift;
		if (!(*r->at++ & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return ERR_CORRUPT;
}

void pack_begin(struct buf *b)
{
	buf_add_u64le(b, FORMAT);
}

void pack_series(struct buf *b, int64_t series_id, const struct sum_point *points, size_t n)
{
	uint64_t before = 0, diff;
	unsigned char *start, *p;
	size_t i;

	start = (unsigned char *)buf_reserve(b, n * POINT_BYTES_MAX + 20);
	if (!start)
		return;
	p = put_pack_varint(start, (uint64_t)series_id);
	p = put_pack_varint(p, n);
	for (i = 0; i < n; i++) {
		diff = (uint64_t)points[i].step - before;
		before = (uint64_t)points[i].step;
		p = put_pack_varint(p, (diff << 1) ^ (uint64_t)((int64_t)diff >> 63));
		memcpy(p, &points[i].time, 8);
		memcpy(p + 8, &points[i].value, 8);
		p += 16;
	}
	b->len += (size_t)(p - start);
}

void pack_end(struct buf *b)
{
	uint32_t crc;

	if (buf_failed(b))
		return;
	crc = crc32c(0, b->data + HEAD_BYTES, b->len - HEAD_BYTES);
	memcpy(b->data + 4, &crc, 4);
}

int pack_open(struct pack_reader *ret, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t crc;

	if (len < HEAD_BYTES || p[0] != FORMAT)
		return ERR_CORRUPT;
	memcpy(&crc, p + 4, 4);
	if (crc32c(0, p + HEAD_BYTES, len - HEAD_BYTES) != crc)
		return ERR_CORRUPT;
	*ret = (struct pack_reader){ .at = p + HEAD_BYTES, .end = p + len };
	return 0;
}

int pack_next_series(struct pack_reader *r, int64_t *ret_series_id, uint64_t *ret_points)
{
	struct sum_point skipped;
	uint64_t id;
	int rc;

	while ((rc = pack_next_point(r, &skipped)) > 0)
		;
	if (rc < 0)
		return rc;
	if (r->at == r->end)
		return 0;
	if (get_pack_varint(r, &id) || get_pack_varint(r, &r->left))
		return ERR_CORRUPT;
	r->step = 0;
	*ret_series_id = (int64_t)id;
	*ret_points = r->left;
	return 1;
}

int pack_next_point(struct pack_reader *r, struct sum_point *ret)
{
	uint64_t u;

	if (!r->left)
		return 0;
	if (get_pack_varint(r, &u) || r->end - r->at < 16)
		return ERR_CORRUPT;
	r->step = (int64_t)((uint64_t)r->step + ((u >> 1) ^ (uint64_t)(-(int64_t)(u & 1))));
	ret->step = r->step;
	memcpy(&ret->time, r->at, 8);
	memcpy(&ret->value, r->at + 8, 8);
	r->at += 16;
	r->left--;
	return 1;
}
