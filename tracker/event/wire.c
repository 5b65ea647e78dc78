/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: reads and writes protobuf's wire format. */
#include "tracker/event/wire.h"

#define GROUP_DEPTH_MAX 64

bool wire_long_varint(struct event_span *s, uint64_t *ret)
{
	return little_get_varint(&s->at, s->end, ret);
}

/* Groups occur only as unknown fields. */
bool wire_skip_group(struct event_span *s)
{
	struct wire_field f;
	int depth = 1;

	while (depth) {
		if (!wire_take_tag(s, &f))
			return false;
		if (f.type == WIRE_GROUP && ++depth > GROUP_DEPTH_MAX)
			return false;
		if (f.type == WIRE_END)
			depth--;
		else if (f.type != WIRE_GROUP && !wire_take_value(s, &f))
			return false;
	}
	return true;
}

static void append_varint(struct buf *b, uint64_t v)
{
	unsigned char bytes[LITTLE_VARINT_BYTES];

	buf_add(b, bytes, (size_t)(little_put_varint(bytes, v) - bytes));
}

static void append_tag(struct buf *b, unsigned number, enum wire_type type)
{
	append_varint(b, (uint64_t)number << 3 | type);
}

void wire_add_varint(struct buf *b, unsigned number, uint64_t v)
{
	append_tag(b, number, WIRE_VARINT);
	append_varint(b, v);
}

void wire_add_sint(struct buf *b, unsigned number, int64_t v)
{
	wire_add_varint(b, number, little_zigzag(v));
}

void wire_add_double(struct buf *b, unsigned number, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	append_tag(b, number, WIRE_FIXED64);
	buf_add_u64le(b, bits);
}

void wire_add_text(struct buf *b, unsigned number, struct event_text t)
{
	append_tag(b, number, WIRE_BYTES);
	append_varint(b, t.len);
	buf_add(b, t.at, t.len);
}

void wire_add_string(struct buf *b, unsigned number, const char *s)
{
	wire_add_text(b, number, (struct event_text){ s, strlen(s) });
}

size_t wire_begin(struct buf *b, unsigned number)
{
	append_tag(b, number, WIRE_BYTES);
	return b->len;
}

/* Inserts the length in front of the bytes written since begin: its own size depends on it. */
void wire_end(struct buf *b, size_t begin)
{
	unsigned char bytes[LITTLE_VARINT_BYTES];
	size_t n = b->len - begin;
	size_t len = (size_t)(little_put_varint(bytes, n) - bytes);

	if (buf_failed(b))
		return;
	buf_add(b, bytes, len);
	if (buf_failed(b))
		return;
	memmove(b->data + begin + len, b->data + begin, n);
	memcpy(b->data + begin, bytes, len);
}
