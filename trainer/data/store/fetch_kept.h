/* fetch_kept.h: connects a fetch to its cache: which blocks are cached, which another process fetches, and the
 * thread that writes received blocks. */
#ifndef DPT_DATA_FETCH_KEPT_H
#define DPT_DATA_FETCH_KEPT_H

#include "trainer/data/store/fetch_inside.h"

/* Returns true if the object's blocks are cached. An object without a version cannot be: a cached block might be
 * outdated. */
bool kept_can(const struct fetch *f, int object);

/* Computes the name of a block in the cache. */
void kept_name(const struct fetch *f, int object, uint64_t begin, struct cache_block *ret);

/* ---- under the lock ---- */

/* Returns true if the block is probably in the cache, without reading it. */
bool kept_has(struct fetch *f, int object, uint64_t begin);

/* Records whether the block is in the cache. */
void kept_set_seen(struct fetch *f, int object, uint64_t begin, bool seen);

/* Returns true if a queued block need not be requested, or not yet: it is in the cache (b may be freed), or another
 * process fetches it. */
bool kept_elsewhere(struct fetch *f, struct fetched_block *b);

/* Releases the claim, so that other processes may fetch the block. */
void kept_release(struct fetch *f, struct fetched_block *b);

/* Queues a held block for writing. The writer counts as a reader until it is done. */
void kept_write(struct fetch *f, struct fetched_block *b);

/* ---- without the lock ---- */

/* Finishes the pending writes. Call after f->stop is set. */
void kept_end(struct fetch *f);

#endif
