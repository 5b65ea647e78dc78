/* proto.h: iterates over the fields of a protocol buffers message
 * (https://protobuf.dev/programming-guides/encoding/). Input is untrusted: every length is checked against its
 * container. */
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
	uint64_t value;		 /* a varint's value; the length of PROTO_BYTES */
	struct proto_span bytes; /* empty for varints */
};

/* Reads a varint and advances s->at. False: damaged. */
bool proto_varint(struct proto_span *s, uint64_t *ret);

/* Parses the tag and the value or length, without the payload. False: incomplete or invalid. */
bool proto_head(struct proto_span *s, struct proto_field *ret);

/* Parses the next field. False at the end, and on damage, which also sets s->at to NULL. */
bool proto_next(struct proto_span *s, struct proto_field *ret);

#endif
