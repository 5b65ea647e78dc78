/* byte_source.h: the input of a container reader: bytes with random access. */
#ifndef DPT_DATA_BYTE_SOURCE_H
#define DPT_DATA_BYTE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct byte_source {
	uint64_t bytes; /* size of the whole source */
	/* Reads exactly n bytes at offset `at`; the caller keeps the range within the source. */
	int (*read)(void *user, uint64_t at, void *to, size_t n, struct err *err);
	void *user;
	const char *name; /* for messages; borrowed */
};

#endif
