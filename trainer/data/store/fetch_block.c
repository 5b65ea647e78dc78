/* fetch_block.c: the block table, block memory, and eviction. */
#include "trainer/data/store/fetch_block.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "tracker/base/clock.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define BETWEEN_BYTES ((size_t)2048) /* headers and padding between samples, which are never read */

static struct fetched_block **find_hash_bucket(struct fetch *f, int object, uint64_t begin)
{
	uint64_t x = ((uint64_t)object * 0x9e3779b97f4a7c15u) ^ (begin * 0xbf58476d1ce4e5b9u);

	return &f->hashed[(x ^ x >> 32) % FETCH_BUCKETS];
}

struct fetched_block *block_find(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct fetched_block *b = *find_hash_bucket(f, object, begin);

	while (b && (b->object != object || b->begin != begin || b->n != n || b->probe || b->state == CACHED))
		b = b->next;
	return b;
}

struct fetched_block *block_queue(struct fetch *f, int object, uint64_t begin, size_t n)
{
	struct fetched_block *b = calloc(1, sizeof(*b)), **at = find_hash_bucket(f, object, begin);

	if (!b)
		return NULL;
	b->object = object;
	b->begin = begin;
	b->n = b->unread = n;
	b->asked = clock_mono_s();
	b->next = *at;
	*at = b;
	TAILQ_INSERT_TAIL(&f->queue, b, link);
	return b;
}

static void release_block_memory(struct fetch *f, struct fetched_block *b)
{
	if (!b->bytes)
		return;
	if (b->n == FETCH_BLOCK && f->n_spares < FETCH_SPARES) {
		f->spare[f->n_spares++] = b->bytes;
		return;
	}
	f->held_bytes -= b->n;
	free(b->bytes);
}

/* Allocates a block in huge pages if possible. */
static char *allocate_whole_block(void)
{
	void *at;

	if (posix_memalign(&at, LARGE_PAGE, FETCH_BLOCK))
		return NULL;
	madvise(at, FETCH_BLOCK, MADV_HUGEPAGE);
	return at;
}

/* Frees a block without readers and announcements. */
static void free_idle_block(struct fetch *f, struct fetched_block *b)
{
	struct fetched_block **at = find_hash_bucket(f, b->object, b->begin);

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	release_block_memory(f, b);
	free(b);
}

/* Evicts idle blocks, the oldest first, until n more bytes fit, a spare block can be reused, or no idle block is
 * left. */
static void evict_idle_blocks(struct fetch *f, size_t n)
{
	while (f->held_bytes + n > f->o.room_bytes) {
		struct fetched_block *oldest = TAILQ_FIRST(&f->idle);

		if (f->n_spares && n == FETCH_BLOCK)
			return;
		if (f->n_spares) {
			free(f->spare[--f->n_spares]);
			f->held_bytes -= FETCH_BLOCK;
		} else if (oldest) {
			TAILQ_REMOVE(&f->idle, oldest, link);
			free_idle_block(f, oldest);
		} else {
			return;
		}
	}
}

bool block_take_memory(struct fetch *f, struct fetched_block *b)
{
	evict_idle_blocks(f, b->n);
	if (b->n == FETCH_BLOCK && f->n_spares) {
		b->bytes = f->spare[--f->n_spares];
		return true;
	}
	f->starved = f->held_bytes && f->held_bytes + b->n > f->o.room_bytes && !b->urgent && !b->probe;
	if (f->starved)
		return false;
	b->bytes = b->n == FETCH_BLOCK ? allocate_whole_block() : malloc(b->n);
	f->held_bytes += b->bytes ? b->n : 0;
	return b->bytes != NULL;
}

bool block_may_have_room(const struct fetch *f)
{
	return f->starved &&
	       (f->n_spares || !TAILQ_EMPTY(&f->idle) || f->held_bytes + FETCH_BLOCK <= f->o.room_bytes);
}

void block_free_all(struct fetch *f)
{
	for (int i = 0; i < FETCH_BUCKETS; i++)
		for (struct fetched_block *b = f->hashed[i], *next; b; b = next) {
			next = b->next;
			free(b->bytes);
			free(b);
		}
	while (f->n_spares)
		free(f->spare[--f->n_spares]);
}

void block_count_read(struct fetched_block *b, size_t n)
{
	n += BETWEEN_BYTES;
	b->unread -= n < b->unread ? n : b->unread;
}

/* Returns true if the block was read completely in this pass and would be evicted before the next, because this
 * process's part exceeds the memory limit. Reusing its memory is cheaper than new pages, which the kernel must
 * clear. */
static bool is_block_spent(const struct fetch *f, const struct fetched_block *b)
{
	return !b->unread && f->all_bytes / (uint64_t)f->o.parts > f->o.room_bytes;
}

/* Makes an unused block idle or frees it. The oldest idle block is evicted first. */
void block_rest(struct fetch *f, struct fetched_block *b)
{
	if (b->uses || b->readers || b->state == QUEUED || b->state == GOING)
		return;
	if (b->state == FAILED || b->state == CACHED || is_block_spent(f, b))
		free_idle_block(f, b);
	else
		TAILQ_INSERT_TAIL(&f->idle, b, link);
}
