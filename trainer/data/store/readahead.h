/* readahead.h: places of files that are read one range after the other, by one thread or by several near each other.
 * Each gets a descriptor of its own, so that the system, which keeps with it how far it has read ahead, sees each
 * stream as one. Any thread. */
#ifndef DPT_DATA_READAHEAD_H
#define DPT_DATA_READAHEAD_H

#include <stdbool.h>

#include "trainer/data/store/data_objects.h"

struct readahead;

struct readahead *readahead_new(void); /* NULL: out of memory */
void readahead_free(struct readahead *s); /* NULL is fine */

/* The stream that a range goes on with; it stays one until readahead_give. */
struct stream_place {
	int number; /* -1: none */
	int fd;	    /* of the file; -1: the caller's own is to be used */
};

/* `path`: the object's file, which is opened for the second range of a stream. */
void readahead_take(struct readahead *s, const struct objects_range *r, const char *path, struct stream_place *ret);
void readahead_give(struct readahead *s, const struct stream_place *p);

/* Whether the range follows another one that was told here. */
bool readahead_follow(struct readahead *s, const struct objects_range *r);

#endif
