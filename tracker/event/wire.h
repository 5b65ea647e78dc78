/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h: protobuf's wire format, both directions. Reading never goes beyond the given span and allocates nothing;
 * unknown fields and groups are skipped. */
#ifndef DPT_EVENT_WIRE_H
#define DPT_EVENT_WIRE_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/base/little.h"
#include "tracker/event/event.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_END = 4, WIRE_FIXED32 = 5 };

struct wire_field {
	unsigned number;
	enum wire_type type;
	uint64_t value;		 /* varint, fixed64, fixed32: raw bits; else 0 */
	struct event_span bytes; /* WIRE_BYTES */
};

/* The rare cases of wire_next. */
bool wire_long_varint(struct event_span *s, uint64_t *ret);
bool wire_skip_group(struct event_span *s); /* after its start tag */

static inline bool wire_take_varint(struct event_span *s, uint64_t *ret)
{
	if (s->at < s->end && *s->at < 0x80) {
		*ret = *s->at++;
		return true;
	}
	return wire_long_varint(s, ret);
}

static inline bool wire_take_tag(struct event_span *s, struct wire_field *f)
{
	uint64_t tag;

	if (!wire_take_varint(s, &tag) || tag >> 3 == 0 || tag >> 32 || (tag & 7) > 5)
		return false;
	f->number = (unsigned)(tag >> 3);
	f->type = (enum wire_type)(tag & 7);
	return true;
}

static inline bool wire_take_fixed(struct event_span *s, unsigned n, uint64_t *ret)
{
	uint64_t bits = 0;

	if ((size_t)(s->end - s->at) < n)
		return false;
	memcpy(&bits, s->at, n);
	*ret = le64toh(bits);
	s->at += n;
	return true;
}

static inline bool wire_take_value(struct event_span *s, struct wire_field *f)
{
	uint64_t n;

	switch (f->type) {
	case WIRE_VARINT:
		return wire_take_varint(s, &f->value);
	case WIRE_FIXED64:
		return wire_take_fixed(s, 8, &f->value);
	case WIRE_FIXED32:
		return wire_take_fixed(s, 4, &f->value);
	case WIRE_BYTES:
		if (!wire_take_varint(s, &n) || n > (size_t)(s->end - s->at))
			return false;
		f->value = 0;
		f->bytes = (struct event_span){ s->at, s->at + n };
		s->at += n;
		return true;
	default:
		return false;
	}
}

/* Reads the next field of s: 1, 0 at the end, or ERR_CORRUPT. Inline: imports spend their time here. */
static inline int wire_next(struct event_span *s, struct wire_field *ret)
{
	while (s->at < s->end) {
		if (!wire_take_tag(s, ret))
			return ERR_CORRUPT;
		if (ret->type != WIRE_GROUP)
			return wire_take_value(s, ret) ? 1 : ERR_CORRUPT;
		if (!wire_skip_group(s))
			return ERR_CORRUPT;
	}
	return 0;
}

static inline struct event_text wire_text(const struct wire_field *f)
{
	return (struct event_text){ (const char *)f->bytes.at, (size_t)(f->bytes.end - f->bytes.at) };
}

/* Empty if the field has another type. */
static inline struct event_span wire_span(const struct wire_field *f)
{
	return f->type == WIRE_BYTES ? f->bytes : (struct event_span){ NULL, NULL };
}

static inline double wire_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline float wire_float(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

/* Conversions between the bits of a float and a double that keep every bit of a NaN: the processor's own conversions
 * make signalling NaNs quiet. A NaN whose upper bits are all zero becomes a quiet one when it is narrowed. */
static inline double wire_widen(uint64_t bits)
{
	float v = wire_float(bits);

	if (v == v)
		return v;
	return wire_double((bits & 0x80000000u) << 32 | UINT64_C(0x7ff) << 52 | (bits & 0x7fffff) << 29);
}

static inline uint32_t wire_narrow(double v)
{
	float narrow = (float)v;
	uint64_t bits;
	uint32_t low;

	memcpy(&low, &narrow, sizeof(low));
	if (v == v)
		return low;
	memcpy(&bits, &v, sizeof(bits));
	low = (uint32_t)(bits >> 29) & 0x7fffff;
	return (uint32_t)(bits >> 32 & 0x80000000u) | 0x7f800000u | (low ? low : 0x400000u);
}

/* Writes n bytes of v into memory that is known to suffice; returns the address after them. */
static inline unsigned char *wire_put_fixed(unsigned char *to, uint64_t v, unsigned n)
{
	v = htole64(v);
	memcpy(to, &v, n);
	return to + n;
}

/* Writing into a buffer: fields in the caller's order; begin a message, add its fields, end it. */
void wire_add_varint(struct buf *b, unsigned number, uint64_t v);
void wire_add_sint(struct buf *b, unsigned number, int64_t v); /* zigzag */
void wire_add_double(struct buf *b, unsigned number, double v);
void wire_add_text(struct buf *b, unsigned number, struct event_text t);
void wire_add_string(struct buf *b, unsigned number, const char *s);
size_t wire_begin(struct buf *b, unsigned number);
void wire_end(struct buf *b, size_t begin);

#endif
