/* wire.c: protobuf's wire format. */
#include "tracker/event/wire.h"

#include "tracker/base/err.h"

#define VARINT_BYTES_MAX 10u
#define GROUP_DEPTH_MAX 64

static bool take_varint(struct event_span *s, uint64_t *ret)
{
	const unsigned char *p = s->at;
	uint64_t v = 0;

	for (unsigned shift = 0; p < s->end && shift < 70; shift += 7) {
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (*p++ < 0x80) {
			s->at = p;
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool take_fixed(struct event_span *s, unsigned n, uint64_t *ret)
{
	uint64_t v = 0;

	if ((size_t)(s->end - s->at) < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)s->at[i] << 8 * i;
	s->at += n;
	*ret = v;
	return true;
}

static bool take_value(struct event_span *s, struct wire_field *f)
{
	uint64_t n;

	switch (f->type) {
	case WIRE_VARINT:
		return take_varint(s, &f->value);
	case WIRE_FIXED64:
		return take_fixed(s, 8, &f->value);
	case WIRE_FIXED32:
		return take_fixed(s, 4, &f->value);
	case WIRE_BYTES:
		if (!take_varint(s, &n) || n > (size_t)(s->end - s->at))
			return false;
		f->bytes = (struct event_span){ s->at, s->at + n };
		s->at += n;
		return true;
	default:
		return false;
	}
}

static bool take_tag(struct event_span *s, struct wire_field *f)
{
	uint64_t tag;

	if (!take_varint(s, &tag) || tag >> 3 == 0 || tag >> 32 || (tag & 7) > 5)
		return false;
	f->number = (unsigned)(tag >> 3);
	f->type = (enum wire_type)(tag & 7);
	return true;
}

/* Steps over a group whose start has been read; groups occur only as unknown fields. */
static bool skip_group(struct event_span *s)
{
	struct wire_field f;
	int depth = 1;

	while (depth) {
		if (!take_tag(s, &f))
			return false;
		if (f.type == WIRE_GROUP && ++depth > GROUP_DEPTH_MAX)
			return false;
		if (f.type == WIRE_END)
			depth--;
		else if (f.type != WIRE_GROUP && !take_value(s, &f))
			return false;
	}
	return true;
}

int wire_next(struct event_span *s, struct wire_field *ret)
{
	while (s->at < s->end) {
		if (!take_tag(s, ret))
			return ERR_CORRUPT;
		if (ret->type == WIRE_GROUP) {
			if (!skip_group(s))
				return ERR_CORRUPT;
			continue;
		}
		return take_value(s, ret) ? 1 : ERR_CORRUPT;
	}
	return 0;
}

unsigned wire_put_varint(unsigned char *to, uint64_t v)
{
	unsigned n = 0;

	while (v >= 0x80) {
		to[n++] = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (unsigned char)v;
	return n;
}

static void add_tag(struct buf *b, unsigned number, enum wire_type type)
{
	unsigned char bytes[VARINT_BYTES_MAX];

	buf_add(b, bytes, wire_put_varint(bytes, (uint64_t)number << 3 | type));
}

void wire_add_varint(struct buf *b, unsigned number, uint64_t v)
{
	unsigned char bytes[VARINT_BYTES_MAX];

	add_tag(b, number, WIRE_VARINT);
	buf_add(b, bytes, wire_put_varint(bytes, v));
}

void wire_add_sint(struct buf *b, unsigned number, int64_t v)
{
	wire_add_varint(b, number, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void wire_add_double(struct buf *b, unsigned number, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	add_tag(b, number, WIRE_FIXED64);
	buf_add_u64le(b, bits);
}

void wire_add_text(struct buf *b, unsigned number, struct event_text t)
{
	unsigned char bytes[VARINT_BYTES_MAX];

	add_tag(b, number, WIRE_BYTES);
	buf_add(b, bytes, wire_put_varint(bytes, t.len));
	buf_add(b, t.at, t.len);
}

void wire_add_string(struct buf *b, unsigned number, const char *s)
{
	wire_add_text(b, number, (struct event_text){ s, strlen(s) });
}

size_t wire_begin(struct buf *b, unsigned number)
{
	add_tag(b, number, WIRE_BYTES);
	return b->len;
}

/* The length is put in front of what has been written since: its own size depends on it. */
void wire_end(struct buf *b, size_t begin)
{
	unsigned char bytes[VARINT_BYTES_MAX];
	size_t n = b->len - begin;
	unsigned len = wire_put_varint(bytes, n);

	if (buf_failed(b))
		return;
	buf_add(b, bytes, len);
	if (buf_failed(b))
		return;
	memmove(b->data + begin + len, b->data + begin, n);
	memcpy(b->data + begin, bytes, len);
}
