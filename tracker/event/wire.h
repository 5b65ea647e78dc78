/* wire.h: protobuf's wire format, both ways. Reading never goes beyond the span that it was given and allocates
 * nothing; unknown fields and groups are stepped over. Knows no message. */
#ifndef DPT_EVENT_WIRE_H
#define DPT_EVENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_END = 4, WIRE_FIXED32 = 5 };

struct wire_field {
	unsigned number;
	enum wire_type type;
	uint64_t value;          /* varint, fixed64, fixed32: raw bits */
	struct event_span bytes; /* WIRE_BYTES */
};

/* Takes the next field off s: 1, 0 at the end, or ERR_CORRUPT. */
int wire_next(struct event_span *s, struct wire_field *ret);

static inline struct event_text wire_text(const struct wire_field *f)
{
	return (struct event_text){ (const char *)f->bytes.at, (size_t)(f->bytes.end - f->bytes.at) };
}

static inline int64_t wire_zigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
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

/* Writing: fields in the caller's order; a message is begun, filled and ended. */
unsigned wire_put_varint(unsigned char *to, uint64_t v); /* at most 10 bytes; returns how many */
void wire_add_varint(struct buf *b, unsigned number, uint64_t v);
void wire_add_sint(struct buf *b, unsigned number, int64_t v); /* zigzag */
void wire_add_double(struct buf *b, unsigned number, double v);
void wire_add_text(struct buf *b, unsigned number, struct event_text t);
void wire_add_string(struct buf *b, unsigned number, const char *s);
size_t wire_begin(struct buf *b, unsigned number);
void wire_end(struct buf *b, size_t begin);

#endif
