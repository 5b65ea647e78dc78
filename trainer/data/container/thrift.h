/* thrift.h: reads values of Thrift's compact protocol in order
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). Input is untrusted: lengths
 * are checked against the buffer, lists against the bytes left, nesting has a maximum. After an error `bad` is set,
 * and every read returns 0 or the end. */
#ifndef DPT_DATA_THRIFT_H
#define DPT_DATA_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
