/* cache_inside.h: shared by the files of the cache. */
#ifndef DPT_DATA_CACHE_INSIDE_H
#define DPT_DATA_CACHE_INSIDE_H

#include "trainer/data/store/cache.h"

#define CACHE_PATH_BYTES 4200

/* Recomputes the total size, and removes the oldest blocks until `more` bytes fit. */
void cache_sweep(struct cache *c, uint64_t more);

/* Removes the oldest blocks of the folder until the rest is at most `goal` bytes (0: none), and unfinished files
 * older than a day. Returns the remaining size. */
uint64_t cache_sweep_folder(const char *folder, uint64_t goal);

/* A folder in memory. It is removed after the last process that opened it has ended in any way. */
struct cache_ram;

/* Opens the folder and returns its path. ERR_USAGE: it cannot be created. */
int cache_ram_open(struct cache_ram **ret, char ret_folder[CACHE_PATH_BYTES], struct err *err);
void cache_ram_close(struct cache_ram *r); /* NULL is fine */

#endif
