/* SPDX-License-Identifier: Apache-2.0 */
/* page_cache.c: an LRU list of uncompressed pages in memory. A page is decompressed by one thread; others that need it
 * wait. */
#include "trainer/data/formats/shards_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tracker/base/clock.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet_page.h"

#define BUCKETS 4096
#define LOOK_S 0.1 /* interval of the checks for cancellation */

struct cached_page {
	TAILQ_ENTRY(cached_page) link; /* filled pages, the least recently used first */
	LIST_ENTRY(cached_page) bucket;
	uint32_t object;
	uint64_t offset;
	unsigned char *bytes; /* n of them */
	uint32_t n;
	int uses; /* threads that copy from it or fill it */
	bool filled;
};

LIST_HEAD(page_bucket, cached_page);
TAILQ_HEAD(page_list, cached_page);

struct page_cache {
	struct objects *store;
	uint64_t memory_bytes;
	pthread_mutex_t lock;
	pthread_cond_t filled; /* signals a page that is filled or failed */
	struct page_list list;
	uint64_t bytes; /* size of the pages in the list */
	struct page_bucket hashed[BUCKETS];
};

struct page_cache *page_cache_new(struct objects *store, uint64_t memory_bytes)
{
	struct page_cache *p = mem_zalloc(sizeof(*p));

	p->store = store;
	p->memory_bytes = memory_bytes;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->filled);
	TAILQ_INIT(&p->list);
	return p;
}

/* A lane has one page more than its window spans, and one for the step to the next window. With four pages or more in
 * each lane, windows mix at least two of them. */
struct dataset_page_window page_cache_window(const struct page_totals *t, uint64_t memory_bytes)
{
	const int64_t fit = (int64_t)(memory_bytes / t->largest);
	const int64_t lanes = fit < 4 ? 1 : min_int64(fit / 4, WINDOW_LANES), spans = fit < 2 ? 0 : fit / lanes - 2;

	return (struct dataset_page_window){ (int)lanes, lanes * spans * t->samples / t->pages + 1 };
}

static struct page_bucket *find_page_bucket(struct page_cache *p, uint32_t object, uint64_t offset)
{
	uint64_t x = (offset ^ (uint64_t)object << 40) * 0x9e3779b97f4a7c15u;

	return &p->hashed[x >> 52];
}

/* Under the lock. */
static void remove_page(struct page_cache *p, struct cached_page *page)
{
	LIST_REMOVE(page, bucket);
	if (page->filled) {
		TAILQ_REMOVE(&p->list, page, link);
		p->bytes -= page->n;
	}
	free(page->bytes);
	free(page);
}

void page_cache_free(struct page_cache *p)
{
	if (!p)
		return;
	while (!TAILQ_EMPTY(&p->list))
		remove_page(p, TAILQ_FIRST(&p->list));
	pthread_cond_destroy(&p->filled);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Under the lock. NULL: the page is neither in memory nor being read. */
static struct cached_page *find_page(struct page_cache *p, const struct sample *one)
{
	struct cached_page *page;

	LIST_FOREACH(page, find_page_bucket(p, one->object, one->offset), bucket)
		if (page->offset == one->offset && page->object == one->object)
			break;
	return page;
}

/* Under the lock. Removes the least recently used pages until the rest fits. Skips pages in use. */
static void evict_pages(struct page_cache *p)
{
	struct cached_page *page, *next;

	for (page = TAILQ_FIRST(&p->list); page && p->bytes > p->memory_bytes; page = next) {
		next = TAILQ_NEXT(page, link);
		if (!page->uses)
			remove_page(p, page);
	}
}

/* Reads a page of Parquet or Arrow, by the sample's kind. */
static int unpack_into_page(struct cached_page *page, struct object_source *s, const struct sample *one,
			    struct err *err)
{
	const struct byte_source file = objects_source(s);
	const int kind = samples_kind(one->packed);
	struct parquet_page raw;
	int rc;

	if (kind >= ARROW_LZ4)
		return arrow_buffer_whole(&(struct arrow_buffer){ &file, one->offset, kind }, &page->bytes, &page->n,
					  err);
	rc = parquet_page_read(&raw, &(struct parquet_page_place){ &file, one->offset, file.bytes, kind }, err);
	if (rc)
		return rc;
	page->bytes = raw.bytes;
	page->n = raw.n;
	return 0;
}

/* Called and returns with the lock held; unlocks while it decompresses the page, which the caller then uses. A page
 * that could not be read is removed. */
static int fill_page(struct page_cache *p, const struct sample *one, const struct stop *stop, struct cached_page **ret,
		     struct err *err)
{
	struct object_source source = { p->store, (int)one->object, stop };
	struct cached_page *page = mem_alloc(sizeof(*page));
	int rc;

	*page = (struct cached_page){ .object = one->object, .offset = one->offset, .uses = 1 };
	LIST_INSERT_HEAD(find_page_bucket(p, one->object, one->offset), page, bucket);
	pthread_mutex_unlock(&p->lock);
	rc = unpack_into_page(page, &source, one, err);
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->filled);
	if (rc) {
		remove_page(p, page);
		return rc;
	}
	page->filled = true;
	TAILQ_INSERT_TAIL(&p->list, page, link);
	p->bytes += page->n;
	evict_pages(p);
	*ret = page;
	return 0;
}

/* Under the lock. Finds the page, or fills it, and counts a use. A page that another thread failed to read is read
 * again: that thread's read may have been canceled. */
static int acquire_page(struct page_cache *p, const struct sample *one, const struct stop *stop,
			struct cached_page **ret, struct err *err)
{
	struct cached_page *page;

	while ((page = find_page(p, one)) && !page->filled) {
		if (stop_asked(stop))
			return err_set(err, ERR_CANCELED, "%.250s: the read was canceled",
				       objects_name(p->store, (int)one->object));
		cond_wait_until(&p->filled, &p->lock, clock_mono_s() + LOOK_S);
	}
	if (!page)
		return fill_page(p, one, stop, ret, err);
	TAILQ_REMOVE(&p->list, page, link);
	TAILQ_INSERT_TAIL(&p->list, page, link);
	page->uses++;
	*ret = page;
	return 0;
}

int page_cache_read(struct page_cache *p, const struct sample *one, const struct stop *stop, void *to, struct err *err)
{
	const uint32_t inside = samples_inside(one->packed);
	struct cached_page *page = NULL;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = acquire_page(p, one, stop, &page, err);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	if (inside > page->n || one->bytes > page->n - inside)
		rc = err_set(err, ERR_CORRUPT, "%.200s: a page has changed since it was indexed",
			     objects_name(p->store, (int)one->object));
	else
		memcpy(to, page->bytes + inside, one->bytes);
	pthread_mutex_lock(&p->lock);
	page->uses--;
	pthread_mutex_unlock(&p->lock);
	return rc;
}
