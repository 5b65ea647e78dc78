/* SPDX-License-Identifier: Apache-2.0 */
/* wire_formats.h: decoders of three encodings of messages: protocol buffers (TFRecord, LMDB), Thrift's compact protocol
 * (Parquet) and FlatBuffers (Arrow). Input is untrusted: every length is checked against its container. */
#ifndef DPT_DATA_WIRE_FORMATS_H
#define DPT_DATA_WIRE_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- protocol buffers (https://protobuf.dev/programming-guides/encoding/) ---- */

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

/* ---- Thrift's compact protocol
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md) ----
 * Reads values in order. Lists are checked against the bytes left, nesting has a maximum. After an error `bad` is set,
 * and every read returns 0 or the end. */

enum thrift_type {
	THRIFT_STOP = 0,
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_BYTE = 3,
	THRIFT_I16 = 4,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_DOUBLE = 7,
	THRIFT_BYTES = 8,
	THRIFT_LIST = 9,
	THRIFT_SET = 10,
	THRIFT_MAP = 11,
	THRIFT_STRUCT = 12,
};

struct thrift {
	const unsigned char *at, *end;
	bool bad;
};

struct thrift_field {
	int id; /* 0 before the first field */
	enum thrift_type type;
};

/* Reads the header of the next field of a struct. False after the last one. The caller reads or skips the value. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

int64_t thrift_number(struct thrift *t, enum thrift_type type); /* an integer or boolean type */
const unsigned char *thrift_bytes(struct thrift *t, size_t *ret_n);
size_t thrift_list(struct thrift *t, enum thrift_type *ret_type); /* returns the number of members, which follow */
void thrift_skip(struct thrift *t, enum thrift_type type);

/* ---- FlatBuffers tables (https://flatbuffers.dev/internals) ----
 * What exceeds the buffer counts as absent. Positions are byte offsets from the start of the buffer; 0 means absent. */

struct flatbuffer {
	const unsigned char *bytes;
	uint32_t n; /* at most 2^31 */
};

/* Returns the root table. */
uint32_t flatbuffer_root(const struct flatbuffer *f);
uint32_t flatbuffer_table(const struct flatbuffer *f, uint32_t table,
			  int field); /* field: a table or a union's table */
int64_t flatbuffer_number(const struct flatbuffer *f, uint32_t table, int field, int bytes, int64_t fallback);

/* Returns the first element of a vector field with elements of `each` bytes. *ret_n 0: empty or absent. */
uint32_t flatbuffer_vector(const struct flatbuffer *f, uint32_t table, int field, uint32_t each, uint32_t *ret_n);
uint32_t flatbuffer_member(const struct flatbuffer *f, uint32_t vector,
			   uint32_t i); /* element i of a vector of tables (each 4) */

#endif
