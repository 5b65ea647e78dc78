/* flatbuffer.h: FlatBuffers tables (https://flatbuffers.dev/internals), the encoding of Arrow's messages. Input is
 * untrusted: whatever exceeds the buffer counts as absent. Positions are byte offsets from the start of the buffer;
 * 0 means absent. */
#ifndef DPT_DATA_FLATBUFFER_H
#define DPT_DATA_FLATBUFFER_H

#include <stddef.h>
#include <stdint.h>

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
