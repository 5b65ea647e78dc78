/* proto.h: fields of a message of protocol buffers, one after the other
 * (https://protobuf.dev/programming-guides/encoding/). Nothing is believed: every length ends within what holds it. */
#ifndef DPT_DATA_PROTO_H
#define DPT_DATA_PROTO_H

#include <stdbool.h>
#include <stdint.h>

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_span {
	const unsigned char *at, *end;
};

struct proto_field {
	uint64_t number;
	enum proto_wire wire;
	uint64_t value;		 /* of a varint; the length of PROTO_BYTES */
	struct proto_span bytes; /* of all but varints */
};

bool proto_varint(struct proto_span *s, uint64_t *ret);

/* Tag, and value or length; the bytes themselves are not looked at. False: there is none that is whole. */
bool proto_head(struct proto_span *s, struct proto_field *ret);

/* The next field; false at the end, and (s->at NULL) where there is none. */
bool proto_next(struct proto_span *s, struct proto_field *ret);

#endif
