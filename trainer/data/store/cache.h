/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h: caches blocks of remote objects in a folder for all processes of a user on this machine. Blocks are named by
 * the hash of address, version and offset. Every read is checked. The least recently used are dropped first. Files of
 * other users are not trusted. A failure to write (a full disk) is ignored and reported once. Thread-safe. */
#ifndef DPT_DATA_CACHE_H
#define DPT_DATA_CACHE_H

#include "tracker/base/err.h"

#define CACHE_RAM "ram" /* as a folder: memory, freed when the user's last process ends */

struct cache;

struct cache_opts {
	const char *folder;  /* created if missing; or CACHE_RAM */
	uint64_t most_bytes; /* of all files; 0: limited by the free space */
};

/* Opens the cache folder, created if missing. ERR_USAGE: not a private folder, or not usable. */
int cache_open(struct cache **ret, const struct cache_opts *o, struct err *err);
void cache_close(struct cache *c); /* NULL is fine */

#define CACHE_ID_BYTES 16

/* Reads the id of the folder: random, drawn when the folder is made. */
void cache_id(const struct cache *c, unsigned char ret[CACHE_ID_BYTES]);

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

/* Returns true if the block was given to cache_keep before, in any job: the cache has removed it since, or had no room.
 * A little too often: each block so far makes one in four million other blocks count as one that was, and more with a
 * limit below 64 MiB. */
bool cache_had(const struct cache *c, const struct cache_block *b);

/* Writes a block of n bytes atomically, at most 16 MiB, and removes old blocks for it. Failures are reported by
 * cache_notice only. */
void cache_keep(struct cache *c, const struct cache_block *b, const void *bytes, size_t n);

/* Does the same with a block of another node's cache. Such copies take only room that nothing else needs: they are
 * removed first. Failures are ignored. */
void cache_keep_copy(struct cache *c, const struct cache_block *b, const void *bytes, size_t n);

/* Takes the next line to show to the user; false: none. */
bool cache_notice(struct cache *c, char *ret, size_t bytes);

/* ---- the folders of a cache: one in memory, and the removal of old blocks; for cache*.c ---- */

#define CACHE_PATH_BYTES 4200

#define CACHE_COPY_MODE 0400 /* of the file of a copy; other blocks: 0600 */

struct cache_used {
	uint64_t bytes;	 /* of all blocks */
	uint64_t copies; /* the part that is copies */
};

/* Removes blocks of the folder until the rest is at most `goal` bytes (0: none): copies first, and the oldest first.
 * Removes unfinished files older than a day. Returns the remaining sizes. */
struct cache_used cache_sweep_folder(const char *folder, uint64_t goal);

/* A folder in memory. It is removed after the last process that opened it has ended in any way. */
struct cache_ram;

/* Opens the folder and returns its path. ERR_USAGE: it cannot be created. */
int cache_ram_open(struct cache_ram **ret, char ret_folder[CACHE_PATH_BYTES], struct err *err);
void cache_ram_close(struct cache_ram *r); /* NULL is fine */

#endif
