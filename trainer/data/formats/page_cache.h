/* SPDX-License-Identifier: Apache-2.0 */
/* page_cache.h: a cache of uncompressed pages of shards (Parquet's and Arrow's), kept for neighbouring samples:
 * recently used ones in memory, up to memory_bytes, the others in the overflow ring file as long as it has room.
 * Thread-safe. */
#ifndef DPT_DATA_PAGE_CACHE_H
#define DPT_DATA_PAGE_CACHE_H

#include "trainer/data/container/samples.h"
#include "trainer/data/store/data_objects.h"

#define PAGE_CACHE_BYTES ((uint64_t)256 << 20)
#define PAGE_CACHE_ASIDE_BYTES ((uint64_t)8 << 30)

struct page_cache;
struct ring_file;

struct page_cache_opts {
	struct objects *store;
	uint64_t memory_bytes; /* limit for pages in memory, except those being copied from */
	struct ring_file
		*aside; /* overflow ring file; owned by the cache, even if page_cache_new fails; NULL: no ring */
};

/* Creates an empty cache. ERR_NOMEM. */
int page_cache_new(struct page_cache **ret, const struct page_cache_opts *o, struct err *err);
void page_cache_free(struct page_cache *p); /* NULL is fine */

/* Reads the bytes of a compressed sample into `to`. ERR_CORRUPT: its page is damaged. */
int page_cache_read(struct page_cache *p, const struct sample *one, const struct stop *stop, void *to, struct err *err);

#endif
