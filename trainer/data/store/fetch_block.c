/* fetch_block.c: see fetch_block.h. */
#include "trainer/data/store/fetch_block.h"

#include <stdlib.h>

#include "tracker/base/clock.h"

static struct block **bucket_of(struct fetch *f, int object, uint64_t begin)
{
	uint64_t x = ((uint64_t)object * 0x9e3779b97f4a7c15u) ^ (begin * 0xbf58476d1ce4e5b9u);

	return &f->hashed[(x ^ x >> 32) % FETCH_BUCKETS];
}

struct block *block_find(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct block *b = *bucket_of(f, object, begin);

	while (b && (b->object != object || b->begin != begin || b->n != n || b->probe || b->state == CACHED))
		b = b->next;
	return b;
}

struct block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct block *b = calloc(1, sizeof(*b)), **at = bucket_of(f, object, begin);

	if (!b)
		return NULL;
	b->object = object;
	b->begin = begin;
	b->n = n;
	b->asked = clock_mono_s();
	b->next = *at;
	*at = b;
	TAILQ_INSERT_TAIL(&f->queue, b, link);
	return b;
}

/* A block that nobody waits for and nobody announced. */
static void drop(struct fetch *f, struct block *b)
{
	struct block **at = bucket_of(f, b->object, b->begin);

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	if (b->bytes)
		f->held_bytes -= b->n;
	free(b->bytes);
	free(b);
}

void block_make_room(struct fetch *f, size_t n)
{
	while (f->held_bytes + n > f->o.room_bytes && !TAILQ_EMPTY(&f->idle)) {
		struct block *b = TAILQ_FIRST(&f->idle);

		TAILQ_REMOVE(&f->idle, b, link);
		drop(f, b);
	}
}

/* Held or failed, and of no use to anybody now: the oldest of them go first. */
void block_rest(struct fetch *f, struct block *b)
{
	if (b->uses || b->readers || b->state == QUEUED || b->state == GOING)
		return;
	if (b->state == FAILED || b->state == CACHED)
		drop(f, b);
	else
		TAILQ_INSERT_TAIL(&f->idle, b, link);
}
