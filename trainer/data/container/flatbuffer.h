/* flatbuffer.h: tables of FlatBuffers (https://flatbuffers.dev/internals), as Arrow's messages are made of. Nothing is
 * believed: what leaves the bytes is not there. Places are counted from the beginning of the bytes; 0 is none. */
#ifndef DPT_DATA_FLATBUFFER_H
#define DPT_DATA_FLATBUFFER_H

#include <stddef.h>
#include <stdint.h>

struct flatbuffer {
	const unsigned char *bytes;
	uint32_t n; /* at most 2^31 */
};

uint32_t flatbuffer_root(const struct flatbuffer *f);
uint32_t flatbuffer_table(const struct flatbuffer *f, uint32_t table, int field); /* of a field that is a table or a union's */
int64_t flatbuffer_number(const struct flatbuffer *f, uint32_t table, int field, int bytes, int64_t fallback);

/* The members of a field that is a vector of elements of so many bytes; *ret_n 0: there are none. */
uint32_t flatbuffer_vector(const struct flatbuffer *f, uint32_t table, int field, uint32_t each, uint32_t *ret_n);
uint32_t flatbuffer_member(const struct flatbuffer *f, uint32_t vector, uint32_t i); /* a table of a vector of them (4 each) */

#endif
