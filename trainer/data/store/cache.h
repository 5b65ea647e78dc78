/* cache.h: caches blocks of remote objects in a folder for all processes of a user on this machine. Blocks are named
 * by the hash of address, version and offset. Every read is checked. The least recently used are dropped first.
 * Files of other users are not trusted. A failure to write (a full disk) is ignored and reported once. Thread-safe. */
#ifndef DPT_DATA_CACHE_H
#define DPT_DATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define CACHE_RAM "ram" /* as a folder: memory, freed when the user's last process ends */

struct cache;

struct cache_opts {
	const char *folder;  /* created if missing; or CACHE_RAM */
	uint64_t most_bytes; /* of all blocks; 0: limited by the free space */
};

/* Opens the cache folder, created if missing. ERR_USAGE: not a private folder, or not usable. */
int cache_open(struct cache **ret, const struct cache_opts *o, struct err *err);
void cache_close(struct cache *c); /* NULL is fine */

/* ERR_USAGE, with the possible size, if a cache in memory cannot hold `bytes`. memory: free for this process; 0:
 * unknown. */
int cache_fits(const struct cache *c, uint64_t bytes, uint64_t memory, struct err *err);

struct cache_block {
	char name[65];
};

struct cache_key {
	const char *address, *version;
	uint64_t bytes; /* of the object */
	uint64_t begin; /* of the block */
};

/* Computes the block's name, a SHA-256 of the key. */
void cache_name(const struct cache_key *k, struct cache_block *ret);

/* Returns true if the block is cached. Marks it as used and starts reading it from disk. */
bool cache_has(struct cache *c, const struct cache_block *b);

/* The same, without marking it. */
bool cache_holds(const struct cache *c, const struct cache_block *b);

/* Reads n bytes at offset `at`. False: not cached, or damaged; a damaged block is removed. */
bool cache_read(struct cache *c, const struct cache_block *b, uint64_t at, void *to, size_t n);

/* Claims the right to fetch a block. False: another process has it. Released when the process ends. */
bool cache_claim(struct cache *c, const struct cache_block *b);
void cache_release(struct cache *c, const struct cache_block *b);

/* Writes a block of n bytes atomically, at most 16 MiB, and removes old blocks for it. Failures are reported by
 * cache_notice only. */
void cache_keep(struct cache *c, const struct cache_block *b, const void *bytes, size_t n);

/* Takes the next line to show to the user; false: none. */
bool cache_notice(struct cache *c, char *ret, size_t bytes);

#endif
