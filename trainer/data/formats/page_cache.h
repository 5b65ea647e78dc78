/* page_cache.h: packed pages of shards (Parquet's), unpacked and kept for their neighbours: the last ones that were asked
 * for in memory, up to so many bytes, and the others in a file as long as that has room. Any thread. */
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
	uint64_t memory_bytes; /* of all pages that are kept there, but for those that are being copied of */
	struct ring_file *aside;   /* for the others; it is theirs, also where page_cache_new fails; NULL: they are forgotten */
};

int page_cache_new(struct page_cache **ret, const struct page_cache_opts *o, struct err *err);
void page_cache_free(struct page_cache *p); /* NULL is fine */

/* The bytes of a packed sample. ERR_CORRUPT: its page is damaged. */
int page_cache_read(struct page_cache *p, const struct sample *one, const struct stop *stop, void *to, struct err *err);

#endif
