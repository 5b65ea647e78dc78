/* thrift.h: values of Thrift's compact protocol, one after the other
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). Nothing is believed: lengths end
 * within the bytes, lists have no more members than bytes are left, structs lie in each other to a depth only. Once
 * something is wrong `bad` is set and everything reads as 0 and as the end. */
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
	int id; /* 0 before the first one */
	enum thrift_type type;
};

/* The head of the next field of a struct; false behind its last one. The value is the caller's to read or skip. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

int64_t thrift_number(struct thrift *t, enum thrift_type type); /* of an integer type, or a truth */
const unsigned char *thrift_bytes(struct thrift *t, size_t *ret_n);
size_t thrift_list(struct thrift *t, enum thrift_type *ret_type); /* members that follow */
void thrift_skip(struct thrift *t, enum thrift_type type);

#endif
