/* fetch_block.h: blocks: lookup, queueing, memory and eviction. All functions run under the lock. */
#ifndef DPT_DATA_FETCH_BLOCK_H
#define DPT_DATA_FETCH_BLOCK_H

#include "trainer/data/store/fetch_inside.h"

/* Finds a block that is neither a probe nor left to the cache; NULL: none. */
struct fetched_block *block_find(struct fetch *f, int object, uint64_t begin, size_t n);

/* Appends a new block to the queue; NULL: out of memory. */
struct fetched_block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n);

/* Allocates a block's memory and evicts idle blocks for it, the oldest first. False: no memory now; a block that a
 * reader waits for always gets some. */
bool block_take_memory(struct fetch *f, struct fetched_block *b);

/* Returns true if a block that got no memory may get some now. */
bool block_may_have_room(const struct fetch *f);

void block_free_all(struct fetch *f); /* for fetch_free */

void block_count_read(struct fetched_block *b, size_t n); /* a reader has read n bytes of the block */

/* Call after a use or reader ends. May free b. */
void block_rest(struct fetch *f, struct fetched_block *b);

#endif
