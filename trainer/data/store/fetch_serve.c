/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_serve.c: reads blocks of this node's cache for other nodes, and queues those that the store must send first. */
#include <string.h>

#include "trainer/data/store/fetch_inside.h"

/* Returns true if the request is for a block of this set by any name: offsets and size of a whole block. */
static bool is_set_block(const struct fetch *f, const struct peers_ask *ask)
{
	struct cache_block name;
	uint64_t left;

	if (ask->object < 0 || ask->object >= f->n || ask->begin % FETCH_BLOCK || !kept_can(f, ask->object) ||
	    ask->begin >= f->object[ask->object].bytes)
		return false;
	left = f->object[ask->object].bytes - ask->begin;
	kept_name(f, ask->object, ask->begin, &name);
	return ask->bytes == (left < FETCH_BLOCK ? left : FETCH_BLOCK) && !strcmp(name.name, ask->name);
}

/* Copies a block that is in memory. The lock is released for the copy. */
static int copy_held_block(struct fetch *f, struct fetched_block *b, void *to)
{
	if (!b->uses && !b->readers)
		TAILQ_REMOVE(&f->pool.idle, b, link);
	b->readers++;
	pthread_mutex_unlock(&f->lock);
	memcpy(to, b->bytes, b->n);
	pthread_mutex_lock(&f->lock);
	b->readers--;
	block_rest(f, b);
	return 1;
}

static bool read_cached_block(struct fetch *f, const struct peers_ask *ask, void *to)
{
	struct cache_block name;
	bool done;

	memcpy(name.name, ask->name, sizeof(name.name));
	pthread_mutex_unlock(&f->lock);
	done = cache_read(f->o.cache, &name, 0, to, (size_t)ask->bytes);
	pthread_mutex_lock(&f->lock);
	if (!done)
		kept_set_seen(f, ask->object, ask->begin, false);
	return done;
}

int fetch_serve(void *user, const struct peers_ask *ask, void *to)
{
	struct fetch *f = user;
	struct fetched_block *b;
	int rc = 0;

	pthread_mutex_lock(&f->lock);
	if (!f->measured)
		goto out;
	if (!is_set_block(f, ask)) {
		rc = ERR_NOENT;
		goto out;
	}
	b = block_find(f, ask->object, ask->begin, (size_t)ask->bytes);
	if (b && b->state == HELD)
		rc = copy_held_block(f, b, to);
	else if (!b && kept_has(f, ask->object, ask->begin))
		rc = read_cached_block(f, ask, to);
	if (!rc && !b && !block_find(f, ask->object, ask->begin, (size_t)ask->bytes)) {
		block_queue(f, ask->object, ask->begin, (size_t)ask->bytes);
		fetcher_start(f, NULL);
	}
out:
	pthread_mutex_unlock(&f->lock);
	return rc;
}
