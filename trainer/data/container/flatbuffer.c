/* flatbuffer.c: bounds-checked access to FlatBuffers tables. */
#include "trainer/data/container/flatbuffer.h"

#include "tracker/base/little.h"

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
