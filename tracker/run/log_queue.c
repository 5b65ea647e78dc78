/* SPDX-License-Identifier: Apache-2.0 */
/* log_queue.c: the log queue: per-thread chains of chunks. Capacity is granted one chunk at a time, so the shared
 * counter is accessed only once per 1024 points. */
#include "tracker/run/log_queue.h"

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"

#define LANES 256u
#define CHUNK_POINTS 1024u
#define POOL_CHUNKS_MAX 64u  /* kept for reuse: bursts of 65,536 points do not allocate */
#define WAKE_CHUNKS 8u	     /* chunks granted since the last wait that wake the writer early */
#define CACHE_LINE_BYTES 128 /* pairs of lines are prefetched together */

struct point_chunk {
	struct point_chunk *next;
	unsigned filled;
	struct point points[CHUNK_POINTS];
};

struct log_lane {
	_Alignas(CACHE_LINE_BYTES) _Atomic(uintptr_t) thread; /* owner; 0: none */
	pthread_mutex_t lock;
	struct point_chunk *head, *tail; /* NULL when empty */
	/* used by the consumer */
	struct point_chunk *taken;
	unsigned at; /* next point in taken */
};

struct log_queue {
	struct log_lane lane[LANES];
	pthread_mutex_t lock; /* protects pool, room, wake */
	pthread_cond_t woken;
	struct point_chunk *pool;
	unsigned pooled;
	size_t room; /* chunks that can still be granted */
	unsigned granted;
	bool wake;
	struct log_lane *active[LANES]; /* lanes with taken points */
	unsigned n_active;
	struct log_lane *last; /* lane of the point that log_queue_next returned last */
};

struct log_queue *log_queue_new(size_t capacity_points)
{
	struct log_queue *l = aligned_alloc(CACHE_LINE_BYTES, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct log_queue){ .room = capacity_points / CHUNK_POINTS };
	pthread_mutex_init(&l->lock, NULL);
	cond_init(&l->woken);
	for (unsigned i = 0; i < LANES; i++)
		pthread_mutex_init(&l->lane[i].lock, NULL);
	return l;
}

static void free_chunk_chain(struct point_chunk *c)
{
	for (struct point_chunk *next; c; c = next) {
		next = c->next;
		free(c);
	}
}

void log_queue_free(struct log_queue *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < LANES; i++) {
		free_chunk_chain(l->lane[i].head);
		free_chunk_chain(l->lane[i].taken);
		pthread_mutex_destroy(&l->lane[i].lock);
	}
	free_chunk_chain(l->pool);
	pthread_cond_destroy(&l->woken);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Returns the calling thread's lane. Its thread pointer is unique among living threads; a later thread with the same
 * one inherits the lane. If all lanes have owners, several threads share one. */
static struct log_lane *find_own_lane(struct log_queue *l)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();
	unsigned first = (unsigned)((uint64_t)(self >> 6) * 0x9e3779b97f4a7c15u >> 56);

	for (unsigned i = 0; i < LANES; i++) {
		struct log_lane *lane = &l->lane[(first + i) % LANES];
		uintptr_t owner = atomic_load_explicit(&lane->thread, memory_order_relaxed);

		if (owner == self)
			return lane;
		if (!owner && atomic_compare_exchange_strong(&lane->thread, &owner, self))
			return lane;
	}
	return &l->lane[first];
}

/* Returns an empty chunk, or NULL if the queue is full or memory is exhausted. */
static struct point_chunk *acquire_chunk(struct log_queue *l)
{
	struct point_chunk *c = NULL;
	bool wake = false;

	pthread_mutex_lock(&l->lock);
	if (l->room) {
		l->room--;
		c = l->pool;
		if (c) {
			l->pool = c->next;
			l->pooled--;
		} else {
			c = malloc(sizeof(*c));
		}
		if (!c)
			l->room++;
		if (++l->granted > WAKE_CHUNKS)
			wake = l->wake = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (wake)
		pthread_cond_signal(&l->woken);
	if (c) {
		c->next = NULL;
		c->filled = 0;
	}
	return c;
}

static void release_chunk(struct log_queue *l, struct point_chunk *c)
{
	pthread_mutex_lock(&l->lock);
	l->room++;
	if (l->pooled < POOL_CHUNKS_MAX) {
		c->next = l->pool;
		l->pool = c;
		l->pooled++;
		c = NULL;
	}
	pthread_mutex_unlock(&l->lock);
	free(c);
}

bool log_queue_push(struct log_queue *l, const struct point *p)
{
	struct log_lane *lane = find_own_lane(l);
	struct point_chunk *c;

	pthread_mutex_lock(&lane->lock);
	c = lane->tail;
	if (!c || c->filled == CHUNK_POINTS) {
		c = acquire_chunk(l);
		if (!c) {
			pthread_mutex_unlock(&lane->lock);
			return false;
		}
		if (lane->tail)
			lane->tail->next = c;
		else
			lane->head = c;
		lane->tail = c;
	}
	c->points[c->filled++] = *p;
	pthread_mutex_unlock(&lane->lock);
	return true;
}

void log_queue_wait(struct log_queue *l, double wait_s)
{
	double until_s = clock_mono_s() + wait_s;

	pthread_mutex_lock(&l->lock);
	while (!l->wake && cond_wait_until(&l->woken, &l->lock, until_s))
		;
	l->wake = false;
	l->granted = 0;
	pthread_mutex_unlock(&l->lock);
}

void log_queue_wake(struct log_queue *l)
{
	pthread_mutex_lock(&l->lock);
	l->wake = true;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->woken);
}

void log_queue_take(struct log_queue *l)
{
	l->n_active = 0;
	l->last = NULL;
	for (unsigned i = 0; i < LANES; i++) {
		struct log_lane *lane = &l->lane[i];

		if (!atomic_load_explicit(&lane->thread, memory_order_acquire))
			continue;
		pthread_mutex_lock(&lane->lock);
		lane->taken = lane->head;
		lane->head = lane->tail = NULL;
		pthread_mutex_unlock(&lane->lock);
		lane->at = 0;
		if (lane->taken)
			l->active[l->n_active++] = lane;
	}
}

static const struct point *peek_lane(const struct log_lane *lane)
{
	return &lane->taken->points[lane->at];
}

/* Moves past the returned point, which the caller has read in place. */
static void advance_lane(struct log_queue *l, struct log_lane *lane)
{
	struct point_chunk *done = lane->taken;

	if (++lane->at < done->filled)
		return;
	lane->taken = done->next;
	lane->at = 0;
	release_chunk(l, done);
	for (unsigned i = 0; !lane->taken && i < l->n_active; i++)
		if (l->active[i] == lane) {
			l->active[i] = l->active[--l->n_active];
			break;
		}
}

const struct point *log_queue_next(struct log_queue *l)
{
	if (l->last)
		advance_lane(l, l->last);
	l->last = NULL;
	for (unsigned i = 0; i < l->n_active; i++)
		if (!l->last || peek_lane(l->active[i])->wall_time < peek_lane(l->last)->wall_time)
			l->last = l->active[i];
	return l->last ? peek_lane(l->last) : NULL;
}
