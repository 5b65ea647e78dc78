/* heads.c: a table of heads in which each chunk has one place; the newer one takes it. */
#include "web/store/heads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/chunk.h"

#define PLACES 16384 /* 36 MB at most: the chunks of 33 million points */

struct head {
	int64_t chunk;
	size_t len;
	unsigned char bytes[CHUNK_HEAD_MAX];
};

struct heads {
	pthread_mutex_t lock;
	int64_t rev;
	struct head *places[PLACES];
};

struct heads *heads_new(void)
{
	struct heads *h = calloc(1, sizeof *h);

	if (h)
		pthread_mutex_init(&h->lock, NULL);
	return h;
}

static void forget(struct heads *h)
{
	size_t i;

	for (i = 0; i < PLACES; i++) {
		free(h->places[i]);
		h->places[i] = NULL;
	}
}

void heads_free(struct heads *h)
{
	if (!h)
		return;
	forget(h);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Chunks of one series lie side by side. */
static size_t place_of(int64_t chunk)
{
	return (size_t)((uint64_t)chunk + ((uint64_t)chunk >> 20) * 2654435761u) % PLACES;
}

bool heads_get(struct heads *h, const struct heads_key *k, void *ret, size_t *ret_len)
{
	const struct head *head;
	bool found;

	pthread_mutex_lock(&h->lock);
	head = h->places[place_of(k->chunk)];
	found = head && head->chunk == k->chunk && h->rev == k->rev;
	if (found) {
		memcpy(ret, head->bytes, CHUNK_HEAD_MAX);
		*ret_len = head->len;
	}
	pthread_mutex_unlock(&h->lock);
	return found;
}

void heads_put(struct heads *h, const struct heads_key *k, const void *bytes, size_t len)
{
	struct head **place = &h->places[place_of(k->chunk)];

	if (len < CHUNK_HEAD_MAX)
		return;
	pthread_mutex_lock(&h->lock);
	if (k->rev > h->rev) {
		forget(h);
		h->rev = k->rev;
	}
	if (!*place && k->rev == h->rev)
		*place = malloc(sizeof **place);
	if (*place && k->rev == h->rev) {
		(*place)->chunk = k->chunk;
		(*place)->len = len;
		memcpy((*place)->bytes, bytes, CHUNK_HEAD_MAX);
	}
	pthread_mutex_unlock(&h->lock);
}
