/* fetch_kept.h: what a fetch has to do with its cache: which blocks are there, which another process fetches, and the
 * thread that writes what has arrived. */
#ifndef DPT_DATA_FETCH_KEPT_H
#define DPT_DATA_FETCH_KEPT_H

#include "trainer/data/store/fetch_inside.h"

/* Whether blocks of the object are kept: without a version nobody knows whether what was kept is still the object. */
bool kept_can(const struct fetch *f, int object);

void kept_name(const struct fetch *f, int object, uint64_t begin, struct cache_block *ret);

/* ---- under the lock ---- */

/* Whether the block is in the cache, as far as one can tell without reading it. */
bool kept_has(struct fetch *f, int object, uint64_t begin);
void kept_set_seen(struct fetch *f, int object, uint64_t begin, bool seen);

/* Whether a block of the queue need not be asked for, or not yet: it is in the cache (b may be gone then), or another
 * process fetches it. */
bool kept_elsewhere(struct fetch *f, struct fetched_block *b);

/* Other processes may fetch it. */
void kept_release(struct fetch *f, struct fetched_block *b);

/* Has a block that is held written; the writer is one of its readers until it is. */
void kept_write(struct fetch *f, struct fetched_block *b);

/* ---- not under it ---- */

/* Writes what is to be written; after f->stop. */
void kept_end(struct fetch *f);

#endif
