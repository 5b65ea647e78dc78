/* SPDX-License-Identifier: Apache-2.0 */
/* wire_formats.c: checks every length before it advances. */
#include "trainer/data/container/wire_formats.h"

#include "tracker/base/little.h"

bool proto_varint(struct proto_span *s, uint64_t *ret)
{
	return little_get_varint(&s->at, s->end, ret);
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

/* ---- Thrift's compact protocol ---- */

#define DEPTH_MAX 32
#define LONG_LIST 15

static uint64_t read_thrift_varint(struct thrift *t)
{
	uint64_t v;

	if (little_get_varint(&t->at, t->end, &v))
		return v;
	t->bad = true;
	return 0;
}

static int64_t read_thrift_zigzag(struct thrift *t)
{
	return little_unzigzag(read_thrift_varint(t));
}

static unsigned char read_thrift_byte(struct thrift *t)
{
	if (t->at < t->end)
		return *t->at++;
	t->bad = true;
	return 0;
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
	unsigned char head = t->bad ? 0 : read_thrift_byte(t);

	f->type = (enum thrift_type)(head & 15);
	if (f->type == THRIFT_STOP || f->type > THRIFT_STRUCT) {
		t->bad |= head != 0;
		return false;
	}
	f->id = head >> 4 ? f->id + (head >> 4) : (int)(int16_t)read_thrift_zigzag(t);
	return !t->bad;
}

int64_t thrift_number(struct thrift *t, enum thrift_type type)
{
	switch (type) {
	case THRIFT_TRUE:
		return 1;
	case THRIFT_FALSE:
		return 0;
	case THRIFT_BYTE:
		return (signed char)read_thrift_byte(t);
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		return read_thrift_zigzag(t);
	default:
		t->bad = true;
		return 0;
	}
}

const unsigned char *thrift_bytes(struct thrift *t, size_t *ret_n)
{
	uint64_t n = read_thrift_varint(t);
	const unsigned char *at = t->at;

	t->bad |= n > (uint64_t)(t->end - t->at);
	*ret_n = t->bad ? 0 : (size_t)n;
	t->at += *ret_n;
	return at;
}

size_t thrift_list(struct thrift *t, enum thrift_type *ret_type)
{
	unsigned char head = read_thrift_byte(t);
	uint64_t n = head >> 4 == LONG_LIST ? read_thrift_varint(t) : head >> 4;

	*ret_type = (enum thrift_type)(head & 15);
	t->bad |= n > (uint64_t)(t->end - t->at); /* each member has at least one byte */
	return t->bad ? 0 : (size_t)n;
}

static void skip_thrift_value(struct thrift *t, enum thrift_type type, int depth);

/* Booleans in lists and maps take one byte, in structs none. */
static void skip_thrift_member(struct thrift *t, enum thrift_type type, int depth)
{
	if (type == THRIFT_TRUE || type == THRIFT_FALSE)
		read_thrift_byte(t);
	else
		skip_thrift_value(t, type, depth);
}

static void skip_thrift_map(struct thrift *t, int depth)
{
	uint64_t n = read_thrift_varint(t);
	unsigned char types = n ? read_thrift_byte(t) : 0;

	t->bad |= n > (uint64_t)(t->end - t->at);
	for (; !t->bad && n; n--) {
		skip_thrift_member(t, (enum thrift_type)(types >> 4), depth);
		skip_thrift_member(t, (enum thrift_type)(types & 15), depth);
	}
}

/* Skips a value of any type. Sets t->bad beyond DEPTH_MAX nested values. */
static void skip_thrift_value(struct thrift *t, enum thrift_type type, int depth)
{
	struct thrift_field f = { 0, THRIFT_STOP };
	enum thrift_type member;
	size_t n;

	if (t->bad || depth == DEPTH_MAX) {
		t->bad = true;
		return;
	}
	switch (type) {
	case THRIFT_DOUBLE:
		for (int i = 0; i < 8; i++)
			read_thrift_byte(t);
		break;
	case THRIFT_BYTES:
		thrift_bytes(t, &n);
		break;
	case THRIFT_LIST:
	case THRIFT_SET:
		for (n = thrift_list(t, &member); !t->bad && n; n--)
			skip_thrift_member(t, member, depth + 1);
		break;
	case THRIFT_MAP:
		skip_thrift_map(t, depth + 1);
		break;
	case THRIFT_STRUCT:
		while (thrift_next(t, &f))
			skip_thrift_value(t, f.type, depth + 1);
		break;
	default:
		thrift_number(t, type);
	}
}

void thrift_skip(struct thrift *t, enum thrift_type type)
{
	skip_thrift_value(t, type, 0);
}

/* ---- FlatBuffers ---- */

/* Follows the offset at `at` to a table. Returns 0 if it leaves the buffer. */
static uint32_t follow_flat_offset(const struct flatbuffer *f, uint32_t at)
{
	uint32_t to;

	if (!at || f->n < 4 || at > f->n - 4)
		return 0;
	to = little_get_u32(f->bytes + at);
	return to && to <= f->n - at && f->n - at - to >= 4 ? at + to : 0;
}

uint32_t flatbuffer_root(const struct flatbuffer *f)
{
	uint32_t at = f->n < 8 ? 0 : little_get_u32(f->bytes);

	return at >= 4 && at <= f->n - 4 ? at : 0;
}

/* Position of a field's value or offset; 0: absent. A table begins with the distance back to its vtable, which lists
 * the fields' positions. */
static uint32_t locate_flat_field(const struct flatbuffer *f, uint32_t table, int field, uint32_t bytes)
{
	int64_t list;
	uint32_t size, place, slot = 4 + 2 * (uint32_t)field;

	if (!table || table > f->n - 4)
		return 0;
	list = (int64_t)table - (int32_t)little_get_u32(f->bytes + table);
	if (list < 0 || list + 4 > f->n)
		return 0;
	size = little_get_u16(f->bytes + list);
	if (slot + 2 > size || list + slot + 2 > f->n)
		return 0;
	place = little_get_u16(f->bytes + list + slot);
	return place && bytes <= f->n && place <= f->n - table && table + place <= f->n - bytes ? table + place : 0;
}

uint32_t flatbuffer_table(const struct flatbuffer *f, uint32_t table, int field)
{
	return follow_flat_offset(f, locate_flat_field(f, table, field, 4));
}

int64_t flatbuffer_number(const struct flatbuffer *f, uint32_t table, int field, int bytes, int64_t fallback)
{
	uint32_t at = locate_flat_field(f, table, field, (uint32_t)bytes);

	if (!at)
		return fallback;
	return bytes == 8   ? (int64_t)little_get_u64(f->bytes + at)
	       : bytes == 4 ? (int32_t)little_get_u32(f->bytes + at)
	       : bytes == 2 ? (int16_t)little_get_u16(f->bytes + at)
			    : f->bytes[at];
}

uint32_t flatbuffer_vector(const struct flatbuffer *f, uint32_t table, int field, uint32_t each, uint32_t *ret_n)
{
	uint32_t at = flatbuffer_table(f, table, field), n = at ? little_get_u32(f->bytes + at) : 0;

	*ret_n = at && n <= (f->n - at - 4) / each ? n : 0;
	return at + 4;
}

uint32_t flatbuffer_member(const struct flatbuffer *f, uint32_t vector, uint32_t i)
{
	return follow_flat_offset(f, vector + 4 * i);
}
