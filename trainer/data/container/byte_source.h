/* byte_source.h: what a container is read from: bytes that can be read at any place. */
#ifndef DPT_DATA_BYTE_SOURCE_H
#define DPT_DATA_BYTE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct byte_source {
	uint64_t bytes; /* of the whole */
	/* All n bytes from `at` on, which lie within it. */
	int (*read)(void *user, uint64_t at, void *to, size_t n, struct err *err);
	void *user;
	const char *name; /* for messages; borrowed */
};

#endif
