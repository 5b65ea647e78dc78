/* SPDX-License-Identifier: Apache-2.0 */
/* decoded_cache.h: caches bytes derived from those of an object (decoded pictures) as blocks of a cache's folder.
 * Entries are named by the version of the source and by how they were made. Does not know what the bytes are.
 * Thread-safe. */
#ifndef DPT_DATA_DECODED_CACHE_H
#define DPT_DATA_DECODED_CACHE_H

#include "tracker/base/err.h"

struct decoded_cache;

struct decoded_cache_opts {
	const char *cache; /* this and the next two as in struct objects_opts */
	uint64_t cache_bytes;
	uint64_t memory_bytes;
	uint64_t keeps_bytes; /* expected total, including objects' blocks: memory must have room for it */
};

/* Opens the decoded cache. ERR_USAGE: the folder is unusable, or too little memory for CACHE_RAM. */
int decoded_cache_open(struct decoded_cache **ret, const struct decoded_cache_opts *o, struct err *err);
void decoded_cache_close(struct decoded_cache *d); /* NULL is fine */

struct decoded_cache_name {
	const char *of;	    /* source object and version, from objects_stamp */
	uint64_t at, bytes; /* range of the source bytes in the object */
	const char *how;    /* everything else that the result depends on */
};

/* Reads all n bytes. False: missing or damaged. */
bool decoded_cache_read(struct decoded_cache *d, const struct decoded_cache_name *name, void *to, size_t n);

/* Writes an entry. Failures (a full disk, more than 16 MiB) are ignored; a full disk is reported once. */
void decoded_cache_keep(struct decoded_cache *d, const struct decoded_cache_name *name, const void *bytes, size_t n);

/* Returns true if a read will probably succeed, without reading. */
bool decoded_cache_holds(const struct decoded_cache *d, const struct decoded_cache_name *name);

uint64_t decoded_cache_bytes(const struct decoded_cache *d); /* read so far */

/* Takes the next line to show to the user; false: none. */
bool decoded_cache_notice(struct decoded_cache *d, char *ret, size_t bytes);

#endif
