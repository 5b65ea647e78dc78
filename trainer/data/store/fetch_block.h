/* fetch_block.h: blocks: found by their place, queued, given up when nobody needs them. All of it under the lock. */
#ifndef DPT_DATA_FETCH_BLOCK_H
#define DPT_DATA_FETCH_BLOCK_H

#include "trainer/data/store/fetch_inside.h"

/* One that is neither a probe nor left to the cache; NULL: there is none. */
struct block *block_find(struct fetch *f, int object, uint64_t begin, size_t n);

/* A new one at the end of the queue; NULL: out of memory. */
struct block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n);

/* Gives up what is held for nobody, the oldest first, until n more bytes fit or nothing is left to give up. */
void block_make_room(struct fetch *f, size_t n);

/* A use or a reader less: b may be freed. */
void block_rest(struct fetch *f, struct block *b);

#endif
