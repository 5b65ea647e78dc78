/* fetch_block.h: blocks: found by their place, queued, given up when nobody needs them. All of it under the lock. */
#ifndef DPT_DATA_FETCH_BLOCK_H
#define DPT_DATA_FETCH_BLOCK_H

#include "trainer/data/store/fetch_inside.h"

/* One that is neither a probe nor left to the cache; NULL: there is none. */
struct fetched_block *block_find(struct fetch *f, int object, uint64_t begin, size_t n);

/* A new one at the end of the queue; NULL: out of memory. */
struct fetched_block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n);

/* Memory for its bytes. What is held for nobody is given up for it, the oldest first. False: there is none now, but for
 * what somebody waits for. */
bool block_take_memory(struct fetch *f, struct fetched_block *b);

/* Whether a block that got no memory may get some now. */
bool block_may_have_room(const struct fetch *f);

void block_free_all(struct fetch *f); /* at the end */

void block_count_read(struct fetched_block *b, size_t n); /* bytes that somebody has read of it */

/* A use or a reader less: b may be freed. */
void block_rest(struct fetch *f, struct fetched_block *b);

#endif
