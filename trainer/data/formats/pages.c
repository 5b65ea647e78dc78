/* pages.c: a list of pages, the last used in front. A page is unpacked once: who wants one that another thread is at
 * waits for it. Of large ones that can be read in parts only where these lie is kept: a window over many pages would
 * unpack each of them again and again. */
#include "trainer/data/formats/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tracker/base/clock.h"
#include "tracker/base/cond.h"
#include "trainer/data/container/arrow_buffer.h"
#include "trainer/data/container/parquet_page.h"
#include "trainer/data/container/unpack.h"

#define PARTS_LEAST ((uint32_t)2 << 20) /* bytes of a page that is read in parts */
#define BUCKETS 4096
#define LOOK_S 0.1 /* between two looks at whether somebody still waits */

struct page {
	TAILQ_ENTRY(page) link;
	struct page *next; /* in its bucket */
	uint32_t object;
	uint64_t offset;
	unsigned char *bytes; /* NULL: it is read in parts */
	struct parquet_page_map map;
	uint32_t n; /* bytes that are kept of it */
	int uses; /* threads that copy of it, or fill it */
	bool filled;
};

TAILQ_HEAD(page_list, page);

struct pages {
	struct objects *store;
	uint64_t most_bytes;
	pthread_mutex_t lock;
	pthread_cond_t filled; /* a page is, or could not be */
	struct page_list list;
	uint64_t bytes; /* of all of them */
	struct page *hashed[BUCKETS];
};

struct source {
	struct objects *store;
	int object;
	const struct stop *stop;
};

int pages_new(struct pages **ret, struct objects *store, uint64_t most_bytes, struct err *err)
{
	struct pages *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(err, ERR_NOMEM, "out of memory");
	p->store = store;
	p->most_bytes = most_bytes;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->filled);
	TAILQ_INIT(&p->list);
	*ret = p;
	return 0;
}

static void page_free(struct page *page)
{
	free(page->bytes);
	free(page->map.block);
	free(page);
}

static struct page **bucket_of(struct pages *p, uint32_t object, uint64_t offset)
{
	uint64_t x = (offset ^ (uint64_t)object << 40) * 0x9e3779b97f4a7c15u;

	return &p->hashed[x >> 52];
}

/* Under the lock. */
static void add(struct pages *p, struct page *page)
{
	struct page **at = bucket_of(p, page->object, page->offset);

	page->next = *at;
	*at = page;
	TAILQ_INSERT_HEAD(&p->list, page, link);
}

/* Under the lock; nobody finds it any more. */
static void take_out(struct pages *p, struct page *page)
{
	struct page **at = bucket_of(p, page->object, page->offset);

	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	TAILQ_REMOVE(&p->list, page, link);
	p->bytes -= page->n;
}

void pages_free(struct pages *p)
{
	struct page *page;

	if (!p)
		return;
	while ((page = TAILQ_FIRST(&p->list))) {
		take_out(p, page);
		page_free(page);
	}
	pthread_cond_destroy(&p->filled);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int read_source(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct source *s = user;

	return objects_read(s->store,
			    &(struct objects_range){ .object = s->object, .at = at, .n = n, .stop = s->stop }, to, err);
}

/* Under the lock: the page, in front of the others; NULL: nobody has read it. */
static struct page *find(struct pages *p, const struct sample *one)
{
	struct page *page;

	for (page = *bucket_of(p, one->object, one->offset); page; page = page->next)
		if (page->offset == one->offset && page->object == one->object)
			break;
	if (!page)
		return NULL;
	TAILQ_REMOVE(&p->list, page, link);
	TAILQ_INSERT_HEAD(&p->list, page, link);
	return page;
}

/* Under the lock: what lies behind as many bytes as there is room for goes, but for pages that are being copied of. */
static void make_room(struct pages *p)
{
	struct page *page, *before;

	for (page = TAILQ_LAST(&p->list, page_list); page && p->bytes > p->most_bytes; page = before) {
		before = TAILQ_PREV(page, page_list, link);
		if (page->uses || !page->n)
			continue;
		take_out(p, page);
		page_free(page);
	}
}

static struct byte_source file_of(struct source *s)
{
	return (struct byte_source){ objects_bytes(s->store, s->object), read_source, s,
				     objects_name(s->store, s->object) };
}

/* Of Parquet or of Arrow, as its kind says. */
static int unpack_page(struct page *page, const struct byte_source *file, const struct sample *one, struct err *err)
{
	int kind = samples_kind(one->packed), rc;
	struct parquet_page raw;

	if (kind >= ARROW_LZ4)
		return arrow_buffer_whole(file, one->offset, kind, &page->bytes, &page->n, err);
	rc = kind == UNPACK_SNAPPY ? parquet_page_map(&page->map, file, one->offset, PARTS_LEAST, err) : 1;
	if (rc <= 0)
		return rc;
	rc = parquet_page_read(&raw, file, one->offset, file->bytes, kind, err);
	if (rc)
		return rc;
	page->bytes = raw.bytes;
	page->n = raw.n;
	return 0;
}

/* Called and left with the lock held, which is free while the page is unpacked. One use of it is the caller's. A page
 * that could not be read is in the list no more. */
static int fill(struct pages *p, struct page *page, const struct sample *one, const struct stop *stop, struct err *err)
{
	struct source source = { p->store, (int)one->object, stop };
	struct byte_source file = file_of(&source);
	int rc;

	*page = (struct page){ .object = one->object, .offset = one->offset, .uses = 1 };
	add(p, page);
	pthread_mutex_unlock(&p->lock);
	rc = unpack_page(page, &file, one, err);
	pthread_mutex_lock(&p->lock);
	page->filled = !rc;
	if (rc) {
		page->n = 0; /* was never counted */
		take_out(p, page);
	} else {
		p->bytes += page->n;
		make_room(p);
	}
	pthread_cond_broadcast(&p->filled);
	return rc;
}

/* Under the lock. A page that could not be read by another thread is read once more: its error may have been that
 * nobody waited for it there. */
static int take(struct pages *p, const struct sample *one, const struct stop *stop, struct page **ret, struct err *err)
{
	struct page *page;
	int rc;

	while ((page = find(p, one)) && !page->filled) {
		if (stop_asked(stop))
			return err_set(err, ERR_CANCELED, "%.250s: nobody waits for it any more",
				       objects_name(p->store, (int)one->object));
		cond_wait_until(&p->filled, &p->lock, clock_mono_s() + LOOK_S);
	}
	if (page) {
		page->uses++;
		*ret = page;
		return 0;
	}
	page = malloc(sizeof(*page));
	if (!page)
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = fill(p, page, one, stop, err);
	if (rc)
		free(page);
	else
		*ret = page;
	return rc;
}

int pages_read(struct pages *p, const struct sample *one, const struct stop *stop, void *to, struct err *err)
{
	struct source source = { p->store, (int)one->object, stop };
	const struct byte_source file = file_of(&source);
	uint32_t inside = samples_inside(one->packed);
	struct page *page = NULL;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = take(p, one, stop, &page, err);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	if (!page->bytes)
		rc = parquet_page_part(&page->map, &file, inside, one->bytes, to, err);
	else if (inside > page->n || one->bytes > page->n - inside)
		rc = err_set(err, ERR_CORRUPT, "%.200s: a page is not as it was",
			     objects_name(p->store, (int)one->object));
	else
		memcpy(to, page->bytes + inside, one->bytes);
	pthread_mutex_lock(&p->lock);
	page->uses--;
	pthread_mutex_unlock(&p->lock);
	return rc;
}
