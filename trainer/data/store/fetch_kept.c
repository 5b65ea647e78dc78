/* fetch_kept.c: the interaction of a fetch with its cache. */
#include "trainer/data/store/fetch_kept.h"

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "trainer/data/store/fetch_block.h"

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
		o->cached = calloc(o->bytes / FETCH_BLOCK / 8 + 1, 1);
	if (o->cached && seen)
		o->cached[number / 8] |= (uint8_t)(1 << number % 8);
	else if (o->cached)
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
	TAILQ_REMOVE(&f->queue, b, link);
	kept_release(f, b);
	if (b->uses)
		f->due_bytes -= b->n;
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
	while ((b = TAILQ_FIRST(&f->to_keep)) || !f->stop) {
		struct cache_block name;

		if (!b) {
			pthread_cond_wait(&f->kept, &f->lock);
			continue;
		}
		TAILQ_REMOVE(&f->to_keep, b, link);
		kept_name(f, b->object, b->begin, &name);
		pthread_mutex_unlock(&f->lock);
		cache_keep(f->o.cache, &name, b->bytes, b->n);
		pthread_mutex_lock(&f->lock);
		kept_release(f, b);
		b->readers--;
		block_rest(f, b);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void kept_write(struct fetch *f, struct fetched_block *b)
{
	if (!f->keeps)
		f->keeps = !pthread_create(&f->keeper, NULL, run_keeper_thread, f);
	if (!f->keeps) {
		kept_release(f, b);
		return;
	}
	b->readers++;
	TAILQ_INSERT_TAIL(&f->to_keep, b, link);
	pthread_cond_signal(&f->kept);
}

void kept_end(struct fetch *f)
{
	if (!f->keeps)
		return;
	pthread_cond_signal(&f->kept);
	pthread_join(f->keeper, NULL);
}
