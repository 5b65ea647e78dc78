/* cache_inside.h: what the files of the cache know of each other. */
#ifndef DPT_DATA_CACHE_INSIDE_H
#define DPT_DATA_CACHE_INSIDE_H

#include "trainer/data/store/cache.h"

#define CACHE_PATH_BYTES 4200

/* Counts what there is, and drops the oldest until `more` bytes fit. */
void cache_sweep(struct cache *c, uint64_t more);

/* Drops the oldest blocks of the folder until the others have at most `goal` bytes (0: none is dropped); unfinished
 * files of a day ago too. Returns what is left. */
uint64_t cache_sweep_folder(const char *folder, uint64_t goal);

/* A folder in memory. It is removed when the last process that opened it has ended, however it ended. */
struct cache_ram;

int cache_ram_open(struct cache_ram **ret, char ret_folder[CACHE_PATH_BYTES], struct err *err);
void cache_ram_close(struct cache_ram *r); /* NULL is fine */

#endif
