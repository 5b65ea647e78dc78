/* thrift.c: decodes the compact protocol. */
#include "trainer/data/container/thrift.h"

#define DEPTH_MAX 32
#define VARINT_BYTES 10
#define LONG_LIST 15

static uint64_t read_thrift_varint(struct thrift *t)
{
	uint64_t v = 0;

	for (int i = 0; i < VARINT_BYTES && t->at < t->end; i++) {
		unsigned char byte = *t->at++;

		v |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return v;
	}
	t->bad = true;
	return 0;
}

static int64_t read_thrift_zigzag(struct thrift *t)
{
	uint64_t v = read_thrift_varint(t);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
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
