/* proto.c: parses the wire format. */
#include "trainer/data/container/proto.h"

#include <stddef.h>

#define VARINT_BYTES 10

bool proto_varint(struct proto_span *s, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < VARINT_BYTES && s->at < s->end; i++) {
		unsigned char byte = *s->at++;

		*ret |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return true;
	}
	return false;
}

bool proto_head(struct proto_span *s, struct proto_field *ret)
{
	uint64_t tag;

	if (!proto_varint(s, &tag))
		return false;
	*ret = (struct proto_field){ .number = tag >> 3, .wire = (enum proto_wire)(tag & 7) };
	switch (tag & 7) {
	case PROTO_VARINT:
	case PROTO_BYTES:
		return proto_varint(s, &ret->value);
	case PROTO_FIXED64:
		ret->value = 8;
		return true;
	case PROTO_FIXED32:
		ret->value = 4;
		return true;
	default:
		return false;
	}
}

bool proto_next(struct proto_span *s, struct proto_field *ret)
{
	uint64_t n;

	if (!s->at || s->at == s->end)
		return false;
	if (!proto_head(s, ret)) {
		s->at = NULL;
		return false;
	}
	n = ret->wire == PROTO_VARINT ? 0 : ret->value;
	if (n > (uint64_t)(s->end - s->at)) {
		s->at = NULL;
		return false;
	}
	ret->bytes = (struct proto_span){ s->at, s->at + n };
	s->at += n;
	return true;
}
