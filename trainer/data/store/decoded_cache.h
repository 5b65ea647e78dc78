/* decoded_cache.h: bytes that were made of an object's (pictures, decoded), kept beside the objects' blocks in the folder of
 * --cache: named by the version of what they were made of and by how, checked at every read, the oldest dropped first.
 * It must not know what they are. Any thread. */
#ifndef DPT_DATA_DECODED_CACHE_H
#define DPT_DATA_DECODED_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

struct decoded_cache;

struct decoded_cache_opts {
	const char *cache;     /* as in struct objects_opts, as the next two */
	uint64_t cache_bytes;
	uint64_t memory_bytes;
	uint64_t keeps_bytes;  /* that will be kept there, objects' blocks included: memory must have room for them */
};

int decoded_cache_open(struct decoded_cache **ret, const struct decoded_cache_opts *o, struct err *err);
void decoded_cache_close(struct decoded_cache *d); /* NULL is fine */

struct decoded_cache_name {
	const char *of;	    /* the object and its version, as objects_stamp says it */
	uint64_t at, bytes; /* of what it was made of, in the object */
	const char *how;    /* everything else that it depends on */
};

/* All n bytes. False: they are not there, or not as they were written. */
bool decoded_cache_read(struct decoded_cache *d, const struct decoded_cache_name *name, void *to, size_t n);

/* What cannot be kept (a full disk; more than 16 MiB) is passed over; a full disk is said once. */
void decoded_cache_keep(struct decoded_cache *d, const struct decoded_cache_name *name, const void *bytes, size_t n);

/* Whether somebody who reads it will find it, as far as one can tell without reading. */
bool decoded_cache_holds(const struct decoded_cache *d, const struct decoded_cache_name *name);

uint64_t decoded_cache_bytes(const struct decoded_cache *d); /* that were read so far */

/* Takes the line that somebody should see; false: none. */
bool decoded_cache_notice(struct decoded_cache *d, char *ret, size_t bytes);

#endif
