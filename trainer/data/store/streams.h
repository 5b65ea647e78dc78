/* streams.h: places of files that are read one range after the other, by one thread or by several near each other.
 * Each gets a descriptor of its own, so that the system, which keeps with it how far it has read ahead, sees each
 * stream as one. Any thread. */
#ifndef DPT_DATA_STREAMS_H
#define DPT_DATA_STREAMS_H

#include <stdbool.h>

#include "trainer/data/store/objects.h"

struct streams;

struct streams *streams_new(void); /* NULL: out of memory */
void streams_free(struct streams *s); /* NULL is fine */

/* The stream that a range goes on with; it stays one until streams_give. */
struct stream_place {
	int number; /* -1: none */
	int fd;	    /* of the file; -1: the caller's own is to be used */
};

/* `path`: the object's file, which is opened for the second range of a stream. */
void streams_take(struct streams *s, const struct objects_range *r, const char *path, struct stream_place *ret);
void streams_give(struct streams *s, const struct stream_place *p);

/* Whether the range follows another one that was told here. */
bool streams_follow(struct streams *s, const struct objects_range *r);

#endif
