/* cache.h: blocks of remote objects, kept in a folder of this machine for all processes of its user: named by the hash
 * of address, version and offset, checked at every read, the oldest dropped first. Files of other users are not
 * believed. What cannot be kept (a full disk) is passed over and said once. Any thread. */
#ifndef DPT_DATA_CACHE_H
#define DPT_DATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define CACHE_RAM "ram" /* as a folder: memory, which is given back when the last process of the user ends */

struct cache;

struct cache_opts {
	const char *folder;  /* made unless it is there; CACHE_RAM */
	uint64_t most_bytes; /* of all blocks; 0: as long as there is room */
};

int cache_open(struct cache **ret, const struct cache_opts *o, struct err *err);
void cache_close(struct cache *c); /* NULL is fine */

/* ERR_USAGE with what would fit, where a cache in memory cannot hold so many bytes; `memory` is what is free of it for
 * this process, 0: not known. */
int cache_fits(const struct cache *c, uint64_t bytes, uint64_t memory, struct err *err);

struct cache_block {
	char name[65];
};

struct cache_key {
	const char *address, *version;
	uint64_t bytes; /* of the object */
	uint64_t begin; /* of the block */
};

void cache_name(const struct cache_key *k, struct cache_block *ret);

/* Whether it is there; it counts as used now and will be read soon. */
bool cache_has(struct cache *c, const struct cache_block *b);

/* The same, without being used. */
bool cache_holds(const struct cache *c, const struct cache_block *b);

/* n bytes from `at` on. False: it is not there, or not as it was written; then it is gone. */
bool cache_read(struct cache *c, const struct cache_block *b, uint64_t at, void *to, size_t n);

/* One process at a time may fetch a block: false while another one does. Ends with the process. */
bool cache_claim(struct cache *c, const struct cache_block *b);
void cache_release(struct cache *c, const struct cache_block *b);

void cache_keep(struct cache *c, const struct cache_block *b, const void *bytes, size_t n);

/* Takes the line that somebody should see; false: none. */
bool cache_notice(struct cache *c, char *ret, size_t bytes);

#endif
