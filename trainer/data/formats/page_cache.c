/* SPDX-License-Identifier: Apache-2.0 */
/* page_cache.c: an LRU list of uncompressed pages in memory. A page is decompressed once; other threads that need it
 * wait. A window may cover more pages than fit into memory. So a large page that can be read in parts keeps only its
 * block table, as far as it was needed, and every other page is written to the overflow ring file. If parts of a
 * page turn out to be unreadable on their own, the page is replaced by one that is read whole. */
#include "trainer/data/formats/shards_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tracker/base/clock.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/store/ring_file.h"

#define PARTS_LEAST ((uint32_t)2 << 20) /* smallest page that is read in parts */
#define BUCKETS 4096
#define LOOK_S 0.1 /* interval of the checks for cancellation */

struct cached_page {
	TAILQ_ENTRY(cached_page) link; /* in the list of pages in memory */
	struct cached_page *next;      /* in its bucket */
	uint32_t object;
	uint64_t offset;
	unsigned char *bytes;	     /* NULL: not in memory */
	_Atomic uint64_t aside;	     /* position in the ring file; 0: none */
	struct parquet_page_map map; /* block table of a page that is read in parts */
	uint32_t n;		     /* uncompressed bytes; 0 for a page that is read in parts */
	int uses;		     /* threads that copy from it or fill it */
	bool filled;
	bool grows;	 /* a thread extends its block table */
	bool is_removed; /* no longer found; freed with its last use */
};

TAILQ_HEAD(page_list, cached_page);

struct page_cache {
	struct page_cache_opts o;
	pthread_mutex_t lock;
	pthread_cond_t filled; /* signals a page that is filled, failed or has grown */
	struct page_list list; /* filled pages in memory */
	uint64_t bytes;	       /* size of the pages in memory */
	struct cached_page *hashed[BUCKETS];
};

struct page_source {
	struct objects *store;
	int object;
	const struct stop *stop;
};

int page_cache_new(struct page_cache **ret, const struct page_cache_opts *o, struct err *err)
{
	struct page_cache *p = calloc(1, sizeof(*p));

	if (!p) {
		ring_file_close(o->aside);
		return err_nomem(err, NULL);
	}
	p->o = *o;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->filled);
	TAILQ_INIT(&p->list);
	*ret = p;
	return 0;
}

static void page_free(struct cached_page *page)
{
	free(page->bytes);
	free(page->map.block);
	free(page);
}

static struct cached_page **find_page_bucket(struct page_cache *p, uint32_t object, uint64_t offset)
{
	uint64_t x = (offset ^ (uint64_t)object << 40) * 0x9e3779b97f4a7c15u;

	return &p->hashed[x >> 52];
}

/* Under the lock. */
static void insert_page(struct page_cache *p, struct cached_page *page)
{
	struct cached_page **at = find_page_bucket(p, page->object, page->offset);

	page->next = *at;
	*at = page;
}

/* Under the lock. */
static void drop_page_bytes(struct page_cache *p, struct cached_page *page)
{
	if (!page->bytes)
		return;
	TAILQ_REMOVE(&p->list, page, link);
	p->bytes -= page->n;
	free(page->bytes);
	page->bytes = NULL;
}

/* Under the lock. The page is no longer found. */
static void remove_page(struct page_cache *p, struct cached_page *page)
{
	struct cached_page **at = find_page_bucket(p, page->object, page->offset);

	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	drop_page_bytes(p, page);
}

void page_cache_free(struct page_cache *p)
{
	if (!p)
		return;
	for (int i = 0; i < BUCKETS; i++)
		for (struct cached_page *page; (page = p->hashed[i]);) {
			p->hashed[i] = page->next;
			page_free(page);
		}
	ring_file_close(p->o.aside);
	pthread_cond_destroy(&p->filled);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int read_page_source(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct page_source *s = user;

	return objects_read(s->store, &(struct objects_range){ .object = s->object, .at = at, .n = n, .stop = s->stop },
			    to, err);
}

/* Under the lock. Returns true if the page is not in memory and the ring file has overwritten it. */
static bool is_page_lost(struct page_cache *p, const struct cached_page *page)
{
	const bool whole = page->filled && !page->map.block;

	return whole && !page->bytes && !(p->o.aside && ring_file_holds(p->o.aside, page->aside));
}

/* Under the lock. Returns the page, moved to the end of the LRU list; NULL: never read, or lost. */
static struct cached_page *find_page(struct page_cache *p, const struct sample *one)
{
	struct cached_page *page;

	for (page = *find_page_bucket(p, one->object, one->offset); page; page = page->next)
		if (page->offset == one->offset && page->object == one->object)
			break;
	if (page && !page->uses && is_page_lost(p, page)) {
		remove_page(p, page);
		page_free(page);
		return NULL;
	}
	if (page && page->filled && page->bytes) {
		TAILQ_REMOVE(&p->list, page, link);
		TAILQ_INSERT_TAIL(&p->list, page, link);
	}
	return page;
}

/* Under the lock. Drops the least recently used pages until the rest fits. Skips pages in use. */
static void evict_pages(struct page_cache *p)
{
	struct cached_page *page, *next;

	for (page = TAILQ_FIRST(&p->list); page && p->bytes > p->o.memory_bytes; page = next) {
		next = TAILQ_NEXT(page, link);
		if (page->uses)
			continue;
		drop_page_bytes(p, page);
		if (is_page_lost(p, page)) {
			remove_page(p, page);
			page_free(page);
		}
	}
}

static struct byte_source make_page_source(struct page_source *s)
{
	return (struct byte_source){ objects_bytes(s->store, s->object), read_page_source, s,
				     objects_name(s->store, s->object) };
}

/* Reads a page of Parquet or Arrow, by the sample's kind. whole: does not read it in parts. */
static int unpack_into_page(struct cached_page *page, const struct byte_source *file, const struct sample *one,
			    bool whole, struct err *err)
{
	int kind = samples_kind(one->packed), rc;
	struct parquet_page raw;

	if (kind >= ARROW_LZ4)
		return arrow_buffer_whole(&(struct arrow_buffer){ file, one->offset, kind }, &page->bytes, &page->n,
					  err);
	rc = kind == DECOMPRESS_SNAPPY && !whole ? parquet_page_map(&page->map, file, one->offset, PARTS_LEAST, err)
						 : 1;
	if (rc <= 0)
		return rc;
	rc = parquet_page_read(&raw, &(struct parquet_page_place){ file, one->offset, file->bytes, kind }, err);
	if (rc)
		return rc;
	page->bytes = raw.bytes;
	page->n = raw.n;
	return 0;
}

/* What a thread reads. */
struct page_request {
	const struct sample *one;
	const struct stop *stop;
	const struct byte_source *file; /* file with the sample's page */
	bool whole;			/* do not read its page in parts */
};

/* Called and returns with the lock held; unlocks while it decompresses the page. The caller holds one use of the
 * page. A page that could not be read is removed. */
static int fill_page(struct page_cache *p, struct cached_page *page, const struct page_request *w, struct err *err)
{
	const struct sample *one = w->one;
	int rc;

	*page = (struct cached_page){ .object = one->object, .offset = one->offset, .uses = 1 };
	insert_page(p, page);
	pthread_mutex_unlock(&p->lock);
	rc = unpack_into_page(page, w->file, one, w->whole, err);
	if (!rc && page->bytes && p->o.aside)
		page->aside = ring_file_put(p->o.aside, page->bytes, page->n);
	pthread_mutex_lock(&p->lock);
	page->filled = !rc;
	if (rc)
		remove_page(p, page);
	else if (page->bytes) {
		TAILQ_INSERT_TAIL(&p->list, page, link);
		p->bytes += page->n;
		evict_pages(p);
	}
	pthread_cond_broadcast(&p->filled);
	return rc;
}

/* Under the lock. Waits for another thread's page, or returns ERR_CANCELED. */
static int wait_for_page(struct page_cache *p, const struct page_request *w, struct err *err)
{
	if (stop_asked(w->stop))
		return err_set(err, ERR_CANCELED, "%.250s: the read was canceled",
			       objects_name(p->o.store, (int)w->one->object));
	cond_wait_until(&p->filled, &p->lock, clock_mono_s() + LOOK_S);
	return 0;
}

/* Under the lock. Finds the page, or fills it, and counts a use. A page that another thread failed to read is read
 * again: that thread's read may have been canceled. */
static int acquire_page(struct page_cache *p, const struct page_request *w, struct cached_page **ret, struct err *err)
{
	struct cached_page *page;
	int rc;

	while ((page = find_page(p, w->one)) && !page->filled) {
		rc = wait_for_page(p, w, err);
		if (rc)
			return rc;
	}
	if (page) {
		page->uses++;
		*ret = page;
		return 0;
	}
	page = malloc(sizeof(*page));
	if (!page)
		return err_nomem(err, NULL);
	rc = fill_page(p, page, w, err);
	if (rc)
		free(page);
	else
		*ret = page;
	return rc;
}

/* Copies the sample from a page in use. Returns 1 if the ring file has overwritten the page. */
static int copy_from_page(struct page_cache *p, struct cached_page *page, const struct page_request *w, void *to,
			  struct err *err)
{
	const struct sample *one = w->one;
	uint32_t inside = samples_inside(one->packed);

	if (page->map.block)
		return parquet_page_part(&page->map, w->file, &(struct parquet_page_range){ inside, one->bytes }, to,
					 err);
	if (inside > page->n || one->bytes > page->n - inside)
		return err_set(err, ERR_CORRUPT, "%.200s: a page has changed since it was indexed", w->file->name);
	if (!page->bytes)
		return !ring_file_read(p->o.aside, page->aside, inside, to, one->bytes);
	memcpy(to, page->bytes + inside, one->bytes);
	return 0;
}

/* Called and returns with the lock held; unlocks while it reads. Extends the block table of a page that is read in
 * parts until it covers the sample. Returns 1 if the page cannot be read in parts; it is then removed. */
static int extend_page_map(struct page_cache *p, struct cached_page *page, const struct page_request *w,
			   struct err *err)
{
	const struct parquet_page_range range = { samples_inside(w->one->packed), w->one->bytes };
	struct parquet_page_map grown;
	int rc = 0;

	while (!rc && page->map.block && !page->is_removed && !parquet_page_reaches(&page->map, &range)) {
		if (page->grows) {
			rc = wait_for_page(p, w, err);
			continue;
		}
		page->grows = true;
		grown = page->map; /* shares the blocks; other threads use the known ones only */
		pthread_mutex_unlock(&p->lock);
		rc = parquet_page_grow(&grown, w->file, &range, err);
		pthread_mutex_lock(&p->lock);
		page->map.walk = grown.walk;
		page->grows = false;
		if (rc > 0) {
			remove_page(p, page);
			page->is_removed = true;
		}
		pthread_cond_broadcast(&p->filled);
	}
	return rc ? rc : page->is_removed;
}

/* Under the lock. Drops a use. lost: the ring file has overwritten the page. */
static void release_page(struct cached_page *page, bool lost)
{
	if (lost)
		page->aside = 0;
	if (!--page->uses && page->is_removed)
		page_free(page);
}

/* Returns 1 if the caller must try again, with the updated *w. */
static int try_read_page(struct page_cache *p, struct page_request *w, void *to, struct err *err)
{
	struct cached_page *page = NULL;
	bool lost = false;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = acquire_page(p, w, &page, err);
	if (rc) {
		pthread_mutex_unlock(&p->lock);
		return rc;
	}
	rc = extend_page_map(p, page, w, err);
	w->whole |= rc > 0;
	pthread_mutex_unlock(&p->lock);
	if (!rc) {
		rc = copy_from_page(p, page, w, to, err);
		lost = rc > 0;
	}
	pthread_mutex_lock(&p->lock);
	release_page(page, lost);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int page_cache_read(struct page_cache *p, const struct sample *one, const struct stop *stop, void *to, struct err *err)
{
	struct page_source source = { p->o.store, (int)one->object, stop };
	const struct byte_source file = make_page_source(&source);
	struct page_request w = { one, stop, &file, false };
	int rc;

	do
		rc = try_read_page(p, &w, to, err);
	while (rc > 0);
	return rc;
}
