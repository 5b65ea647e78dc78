/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_block.c: the block table, block memory and eviction, and the interaction with the cache. */
#include "trainer/data/store/fetch_inside.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define BETWEEN_BYTES ((size_t)2048) /* headers and padding between samples, which are never read */

static struct fetched_block **find_hash_bucket(struct fetch *f, int object, uint64_t begin)
{
	uint64_t x = ((uint64_t)object * 0x9e3779b97f4a7c15u) ^ (begin * 0xbf58476d1ce4e5b9u);

	return &f->pool.hashed[(x ^ x >> 32) % FETCH_BUCKETS];
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
	struct fetched_block *b = mem_zalloc(sizeof(*b)), **at = find_hash_bucket(f, object, begin);

	b->object = object;
	b->begin = begin;
	b->n = b->unread = n;
	b->peer = -1;
	b->asked = clock_mono_s();
	b->next = *at;
	*at = b;
	TAILQ_INSERT_TAIL(&f->pool.queue, b, link);
	return b;
}

static void release_block_memory(struct fetch *f, struct fetched_block *b)
{
	if (!b->bytes)
		return;
	if (b->n == FETCH_BLOCK && f->pool.n_spares < FETCH_SPARES) {
		f->pool.spare[f->pool.n_spares++] = b->bytes;
		return;
	}
	f->pool.held_bytes -= b->n;
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
	while (f->pool.held_bytes + n > f->o.room_bytes) {
		struct fetched_block *oldest = TAILQ_FIRST(&f->pool.idle);

		if (f->pool.n_spares && n == FETCH_BLOCK)
			return;
		if (f->pool.n_spares) {
			free(f->pool.spare[--f->pool.n_spares]);
			f->pool.held_bytes -= FETCH_BLOCK;
		} else if (oldest) {
			TAILQ_REMOVE(&f->pool.idle, oldest, link);
			free_idle_block(f, oldest);
		} else {
			return;
		}
	}
}

bool block_take_memory(struct fetch *f, struct fetched_block *b)
{
	evict_idle_blocks(f, b->n);
	if (b->n == FETCH_BLOCK && f->pool.n_spares) {
		b->bytes = f->pool.spare[--f->pool.n_spares];
		return true;
	}
	f->pool.starved = f->pool.held_bytes && f->pool.held_bytes + b->n > f->o.room_bytes && !b->urgent && !b->probe;
	if (f->pool.starved)
		return false;
	b->bytes = b->n == FETCH_BLOCK ? allocate_whole_block() : malloc(b->n);
	f->pool.held_bytes += b->bytes ? b->n : 0;
	return b->bytes != NULL;
}

bool block_may_have_room(const struct fetch *f)
{
	return f->pool.starved &&
	       (f->pool.n_spares || !TAILQ_EMPTY(&f->pool.idle) || f->pool.held_bytes + FETCH_BLOCK <= f->o.room_bytes);
}

void block_free_all(struct fetch *f)
{
	for (int i = 0; i < FETCH_BUCKETS; i++)
		for (struct fetched_block *b = f->pool.hashed[i], *next; b; b = next) {
			next = b->next;
			free(b->bytes);
			free(b);
		}
	while (f->pool.n_spares)
		free(f->pool.spare[--f->pool.n_spares]);
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
		TAILQ_INSERT_TAIL(&f->pool.idle, b, link);
}

/* ---- the cache ---- */

#define OTHERS_LOOK_S 0.05 /* interval of the checks whether another process has fetched a block */
#define OTHERS_MOST_S 60.0 /* then it is fetched here too */

bool kept_can(const struct fetch *f, int object)
{
	const struct fetch_object *o = &f->object[object];

	return f->o.cache && o->known && (o->etag[0] || o->modified[0]);
}

void kept_name(const struct fetch *f, int object, uint64_t begin, struct cache_block *ret)
{
	const struct fetch_object *o = &f->object[object];

	cache_name(&(struct cache_key){ o->shown, o->etag[0] ? o->etag : o->modified, o->bytes, begin }, ret);
}

static bool was_seen_cached(const struct fetch_object *o, uint64_t begin)
{
	uint64_t number = begin / FETCH_BLOCK;

	return o->cached && o->cached[number / 8] & 1 << number % 8;
}

void kept_set_seen(struct fetch *f, int object, uint64_t begin, bool seen)
{
	struct fetch_object *o = &f->object[object];
	uint64_t number = begin / FETCH_BLOCK;

	if (!o->cached)
		o->cached = mem_zalloc(o->bytes / FETCH_BLOCK / 8 + 1);
	if (seen)
		o->cached[number / 8] |= (uint8_t)(1 << number % 8);
	else
		o->cached[number / 8] &= (uint8_t) ~(1 << number % 8);
}

uint64_t fetch_cached(const struct fetch *f)
{
	struct cache_block name;
	uint64_t bytes = 0;

	for (int i = 0; i < f->n; i++)
		for (uint64_t at = 0; kept_can(f, i) && at < f->object[i].bytes; at += FETCH_BLOCK) {
			uint64_t left = f->object[i].bytes - at;

			kept_name(f, i, at, &name);
			if (cache_holds(f->o.cache, &name))
				bytes += left < FETCH_BLOCK ? left : FETCH_BLOCK;
		}
	return bytes;
}

bool kept_has(struct fetch *f, int object, uint64_t begin)
{
	struct cache_block name;

	if (!kept_can(f, object))
		return false;
	if (was_seen_cached(&f->object[object], begin))
		return true;
	kept_name(f, object, begin, &name);
	if (!cache_has(f->o.cache, &name))
		return false;
	kept_set_seen(f, object, begin, true);
	return true;
}

void kept_release(struct fetch *f, struct fetched_block *b)
{
	struct cache_block name;

	if (!b->claimed)
		return;
	kept_name(f, b->object, b->begin, &name);
	cache_release(f->o.cache, &name);
	b->claimed = false;
}

/* Removes a queued block that is now in the cache; its readers read it there. */
static void leave_to_cache(struct fetch *f, struct fetched_block *b)
{
	TAILQ_REMOVE(&f->pool.queue, b, link);
	kept_release(f, b);
	if (b->uses)
		f->pool.due_bytes -= b->n;
	b->uses = 0;
	b->state = CACHED;
	pthread_cond_broadcast(&f->arrived);
	block_rest(f, b);
}

bool kept_elsewhere(struct fetch *f, struct fetched_block *b)
{
	double now = clock_mono_s();
	struct cache_block name;

	if (b->probe || b->direct || b->claimed || !kept_can(f, b->object))
		return false;
	if (kept_has(f, b->object, b->begin)) {
		leave_to_cache(f, b);
		return true;
	}
	kept_name(f, b->object, b->begin, &name);
	b->claimed = cache_claim(f->o.cache, &name);
	if (b->claimed && kept_has(f, b->object, b->begin)) { /* since the check above */
		leave_to_cache(f, b);
		return true;
	}
	b->others = b->claimed ? 0 : b->others > 0 ? b->others : now;
	b->direct = b->others > 0 && now - b->others > OTHERS_MOST_S;
	b->not_before = now + OTHERS_LOOK_S;
	return !b->claimed && !b->direct;
}

/* Thread: writes received blocks to the cache, so that the fetch thread does not wait for the disk. */
static void *run_keeper_thread(void *arg)
{
	struct fetch *f = arg;
	struct fetched_block *b;

	pthread_setname_np(pthread_self(), "dptrain-keep");
	pthread_mutex_lock(&f->lock);
	while ((b = TAILQ_FIRST(&f->keeper.queue)) || !f->stop) {
		struct cache_block name;

		if (!b) {
			pthread_cond_wait(&f->keeper.wake, &f->lock);
			continue;
		}
		TAILQ_REMOVE(&f->keeper.queue, b, link);
		kept_name(f, b->object, b->begin, &name);
		pthread_mutex_unlock(&f->lock);
		if (b->peer >= 0)
			cache_keep_copy(f->o.cache, &name, b->bytes, b->n);
		else
			cache_keep(f->o.cache, &name, b->bytes, b->n);
		pthread_mutex_lock(&f->lock);
		kept_release(f, b);
		b->readers--;
		block_rest(f, b);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void kept_count_again(struct fetch *f, const struct fetched_block *b)
{
	struct cache_block name;

	kept_name(f, b->object, b->begin, &name);
	if (cache_had(f->o.cache, &name))
		f->counts.refetched_bytes += b->n;
}

void kept_write(struct fetch *f, struct fetched_block *b)
{
	if (!f->keeper.started)
		f->keeper.started = !thread_start(&f->keeper.thread, run_keeper_thread, f);
	if (!f->keeper.started) {
		kept_release(f, b);
		return;
	}
	b->readers++;
	TAILQ_INSERT_TAIL(&f->keeper.queue, b, link);
	pthread_cond_signal(&f->keeper.wake);
}

void kept_end(struct fetch *f)
{
	if (!f->keeper.started)
		return;
	pthread_cond_signal(&f->keeper.wake);
	pthread_join(f->keeper.thread, NULL);
}
