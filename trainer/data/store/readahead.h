/* SPDX-License-Identifier: Apache-2.0 */
/* readahead.h: tracks sequential streams of file reads, by one thread or by several close together. Each stream gets
 * its own descriptor, because the kernel keeps the read-ahead state per descriptor. Thread-safe. */
#ifndef DPT_DATA_READAHEAD_H
#define DPT_DATA_READAHEAD_H

#include "trainer/data/store/data_objects.h"

struct readahead;

struct readahead *readahead_new(void);
void readahead_free(struct readahead *s); /* NULL is fine */

/* The stream that a range continues; reserved until readahead_give. */
struct stream_place {
	int number; /* -1: none */
	int fd;	    /* of the file; -1: use the caller's */
};

/* path: the object's file, opened at the second range of a stream. */
void readahead_take(struct readahead *s, const struct objects_range *r, const char *path, struct stream_place *ret);
void readahead_give(struct readahead *s, const struct stream_place *p);

/* Returns true if the range continues an earlier one passed to this function. */
bool readahead_follow(struct readahead *s, const struct objects_range *r);

#endif
