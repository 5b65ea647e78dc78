/* pages.c: a list of pages, the last used in front. A page is unpacked once: who wants one that another thread is at
 * waits for it. */
#include "trainer/data/formats/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tracker/base/clock.h"
#include "tracker/base/cond.h"
#include "trainer/data/container/arrow_buffer.h"
#include "trainer/data/container/parquet_page.h"

#define LOOK_S 0.1 /* between two looks at whether somebody still waits */

struct page {
	TAILQ_ENTRY(page) link;
	uint32_t object;
	uint64_t offset;
	unsigned char *bytes;
	uint32_t n;
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
	free(page);
}

void pages_free(struct pages *p)
{
	struct page *page;

	if (!p)
		return;
	while ((page = TAILQ_FIRST(&p->list))) {
		TAILQ_REMOVE(&p->list, page, link);
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

	TAILQ_FOREACH(page, &p->list, link)
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
	struct page *page, *next;
	uint64_t bytes = 0;

	for (page = TAILQ_FIRST(&p->list); page; page = next) {
		next = TAILQ_NEXT(page, link);
		bytes += page->n;
		if (bytes <= p->most_bytes || page->uses)
			continue;
		TAILQ_REMOVE(&p->list, page, link);
		page_free(page);
	}
}

/* Of Parquet or of Arrow, as its kind says. */
static int unpack_page(struct page *page, const struct byte_source *file, const struct sample *one, struct err *err)
{
	int kind = samples_kind(one->packed), rc;
	struct parquet_page raw;

	if (kind >= ARROW_LZ4)
		return arrow_buffer_whole(file, one->offset, kind, &page->bytes, &page->n, err);
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
	struct byte_source file = { objects_bytes(p->store, (int)one->object), read_source, &source,
				    objects_name(p->store, (int)one->object) };
	int rc;

	*page = (struct page){ .object = one->object, .offset = one->offset, .uses = 1 };
	TAILQ_INSERT_HEAD(&p->list, page, link);
	pthread_mutex_unlock(&p->lock);
	rc = unpack_page(page, &file, one, err);
	pthread_mutex_lock(&p->lock);
	page->filled = !rc;
	if (rc)
		TAILQ_REMOVE(&p->list, page, link);
	else
		make_room(p);
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
	uint32_t inside = samples_inside(one->packed);
	struct page *page = NULL;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = take(p, one, stop, &page, err);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	if (inside > page->n || one->bytes > page->n - inside)
		rc = err_set(err, ERR_CORRUPT, "%.200s: a page is not as it was",
			     objects_name(p->store, (int)one->object));
	else
		memcpy(to, page->bytes + inside, one->bytes);
	pthread_mutex_lock(&p->lock);
	page->uses--;
	pthread_mutex_unlock(&p->lock);
	return rc;
}
