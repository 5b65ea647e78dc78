/* pages.c: a list of pages, the last used in front. A page that is being read is nobody else's yet: two threads that
 * want the same one at once may both unpack it. */
#include "trainer/data/formats/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "trainer/data/container/arrow_buffer.h"
#include "trainer/data/container/parquet_page.h"

struct page {
	TAILQ_ENTRY(page) link;
	uint32_t object;
	uint64_t offset;
	unsigned char *bytes;
	uint32_t n;
	int uses; /* threads that copy of it */
};

TAILQ_HEAD(page_list, page);

struct pages {
	struct objects *store;
	uint64_t most_bytes;
	pthread_mutex_t lock;
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
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int read_source(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct source *s = user;

	return objects_read(s->store, &(struct objects_range){ s->object, at, n, false, s->stop }, to, err);
}

/* Under the lock: the page, one use more of it. */
static struct page *find(struct pages *p, const struct sample *one)
{
	struct page *page;

	TAILQ_FOREACH(page, &p->list, link)
		if (page->offset == one->offset && page->object == one->object)
			break;
	if (!page)
		return NULL;
	page->uses++;
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

static int load(struct pages *p, const struct sample *one, const struct stop *stop, struct page **ret, struct err *err)
{
	struct source source = { p->store, (int)one->object, stop };
	struct byte_source file = { objects_bytes(p->store, (int)one->object), read_source, &source,
				    objects_name(p->store, (int)one->object) };
	struct page *page = calloc(1, sizeof(*page));
	int rc = page ? 0 : err_set(err, ERR_NOMEM, "out of memory");

	if (!rc)
		rc = unpack_page(page, &file, one, err);
	if (rc) {
		free(page);
		return rc;
	}
	page->object = one->object;
	page->offset = one->offset;
	page->uses = 1;
	pthread_mutex_lock(&p->lock);
	TAILQ_INSERT_HEAD(&p->list, page, link);
	make_room(p);
	pthread_mutex_unlock(&p->lock);
	*ret = page;
	return 0;
}

int pages_read(struct pages *p, const struct sample *one, const struct stop *stop, void *to, struct err *err)
{
	uint32_t inside = samples_inside(one->packed);
	struct page *page;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	page = find(p, one);
	pthread_mutex_unlock(&p->lock);
	if (!page)
		rc = load(p, one, stop, &page, err);
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
