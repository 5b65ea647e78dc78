/* queue.c: ring buffer under one mutex; the condition is signalled only when the ring was empty. */
#include "tracker/base/queue.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/cond.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	size_t item_bytes;
	size_t cap;
	size_t head; /* next to pop */
	size_t len;
	bool closed;
	char items[];
};

struct queue *queue_new(size_t item_bytes, size_t capacity_items)
{
	struct queue *q;
	size_t bytes;

	if (__builtin_mul_overflow(item_bytes, capacity_items, &bytes) || !capacity_items)
		return NULL;
	q = malloc(sizeof(*q) + bytes);
	if (!q)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->item_bytes = item_bytes;
	q->cap = capacity_items;
	pthread_mutex_init(&q->lock, NULL);
	cond_init(&q->filled);
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

bool queue_push(struct queue *q, const void *item)
{
	bool was_empty, ok;

	pthread_mutex_lock(&q->lock);
	was_empty = !q->len;
	ok = !q->closed && q->len < q->cap;
	if (ok) {
		memcpy(q->items + (q->head + q->len) % q->cap * q->item_bytes, item, q->item_bytes);
		q->len++;
	}
	pthread_mutex_unlock(&q->lock);
	if (ok && was_empty)
		pthread_cond_signal(&q->filled);
	return ok;
}

static void wait_filled(struct queue *q, double wait_s)
{
	double until_s = wait_s < 0 ? INFINITY : clock_mono_s() + wait_s;

	while (!q->len && !q->closed && wait_s != 0 && cond_wait_until(&q->filled, &q->lock, until_s))
		;
}

size_t queue_pop(struct queue *q, void *items, size_t max, double wait_s)
{
	size_t n, first;

	pthread_mutex_lock(&q->lock);
	wait_filled(q, wait_s);
	n = q->len < max ? q->len : max;
	first = n < q->cap - q->head ? n : q->cap - q->head;
	memcpy(items, q->items + q->head * q->item_bytes, first * q->item_bytes);
	memcpy((char *)items + first * q->item_bytes, q->items, (n - first) * q->item_bytes);
	q->head = (q->head + n) % q->cap;
	q->len -= n;
	pthread_mutex_unlock(&q->lock);
	return n;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_broadcast(&q->filled);
}

size_t queue_len(struct queue *q)
{
	size_t n;

	pthread_mutex_lock(&q->lock);
	n = q->len;
	pthread_mutex_unlock(&q->lock);
	return n;
}
