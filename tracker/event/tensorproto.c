/* tensorproto.c: a TensorProto holds its elements as raw content or in a list of their type, packed or not. Writers
 * differ, so every form is read. */
#include "tracker/event/tensorproto.h"

#include <string.h>

#include "tracker/event/tensorboard.h"
#include "tracker/event/wire.h"

int tensorproto_next_dim(struct event_span *shape, uint64_t *size)
{
	struct wire_field f, d;
	struct event_span dim;
	int rc;

	do {
		rc = wire_next(shape, &f);
		if (rc <= 0)
			return rc;
	} while (f.number != TB_SHAPE_DIM);
	*size = 0;
	dim = wire_span(&f);
	while ((rc = wire_next(&dim, &d)) > 0)
		if (d.number == TB_DIM_SIZE && d.type == WIRE_VARINT)
			*size = d.value;
	return rc ? rc : 1;
}

static int count_elements(struct event_span shape, uint64_t *elements)
{
	uint64_t size;
	int rc;

	while ((rc = tensorproto_next_dim(&shape, &size)) > 0)
		if (__builtin_mul_overflow(*elements, size, elements))
			*elements = UINT64_MAX;
	return rc;
}

/* Reads the first number of a list, packed or not; type is the list's unpacked wire type. */
static void read_first_number(struct tensorproto *t, const struct wire_field *f, enum wire_type type)
{
	unsigned char padded[11] = { 0 };
	struct wire_field one = *f;

	if (t->has_number)
		return;
	if (f->type == WIRE_BYTES) {
		size_t n = (size_t)(f->bytes.end - f->bytes.at);
		struct event_span s;

		if (!n)
			return;
		padded[0] = (unsigned char)(1 << 3 | type);
		memcpy(padded + 1, f->bytes.at, n < 10 ? n : 10);
		s = (struct event_span){ padded, padded + 1 + (n < 10 ? n : 10) };
		if (wire_next(&s, &one) != 1)
			return;
	} else if (f->type != type) {
		return;
	}
	t->has_number = true;
	if (type == WIRE_FIXED32)
		t->number = wire_float(one.value);
	else if (type == WIRE_FIXED64)
		t->number = wire_double(one.value);
	else
		t->number = (double)(int64_t)one.value;
}

int tensorproto_parse(struct event_span s, struct tensorproto *ret)
{
	struct wire_field f;
	int rc, shape_rc = 0;

	*ret = (struct tensorproto){ .elements = 1 };
	while (!shape_rc && (rc = wire_next(&s, &f)) > 0) {
		switch (f.number) {
		case TB_TENSOR_DTYPE:
			ret->dtype = (unsigned)f.value;
			break;
		case TB_TENSOR_SHAPE:
			shape_rc = count_elements(wire_span(&f), &ret->elements);
			break;
		case TB_TENSOR_CONTENT:
			ret->content = wire_span(&f);
			break;
		case TB_TENSOR_FLOAT:
			read_first_number(ret, &f, WIRE_FIXED32);
			break;
		case TB_TENSOR_DOUBLE:
			read_first_number(ret, &f, WIRE_FIXED64);
			break;
		case TB_TENSOR_INT:
		case TB_TENSOR_INT64:
			read_first_number(ret, &f, WIRE_VARINT);
			break;
		case TB_TENSOR_STRING:
			if (!ret->has_text && f.type == WIRE_BYTES)
				ret->text = wire_text(&f);
			ret->has_text = true;
			break;
		}
	}
	return shape_rc ? shape_rc : rc;
}

/* Content is little-endian, as every writer stores it. */
bool tensorproto_number(const struct tensorproto *t, double *ret)
{
	size_t n = (size_t)(t->content.end - t->content.at);
	uint64_t bits = 0;

	if (t->elements != 1 || t->dtype == TB_DT_STRING)
		return false;
	if (t->has_number) {
		*ret = t->number;
		return true;
	}
	for (size_t i = 0; i < n && i < 8; i++)
		bits |= (uint64_t)t->content.at[i] << 8 * i;
	if (t->dtype == TB_DT_FLOAT && n == 4)
		*ret = wire_float(bits);
	else if (t->dtype == TB_DT_DOUBLE && n == 8)
		*ret = wire_double(bits);
	else if (t->dtype == TB_DT_INT32 && n == 4)
		*ret = (double)(int32_t)bits;
	else if (t->dtype == TB_DT_INT64 && n == 8)
		*ret = (double)(int64_t)bits;
	else
		return false;
	return true;
}
