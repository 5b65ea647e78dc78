/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.c: a condition and the answer; the list of watchers. */
#include "tracker/mem/mem.h"
#include "web/store/write/committer.h"

#include <stdlib.h>
#include <string.h>

static void store_waiter_answer(void *arg, const struct ingest_result *res)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->res = *res;
	w->done = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

struct ingest_done waiter_init(struct waiter *w)
{
	memset(w, 0, sizeof(*w));
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->cond, NULL);
	return (struct ingest_done){ store_waiter_answer, w };
}

int waiter_wait(struct waiter *w, struct ingest_result *ret, struct err *err)
{
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (ret)
		*ret = w->res;
	if (w->res.code && err)
		*err = w->res.err;
	return w->res.code;
}

void waiter_done(struct waiter *w)
{
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->lock);
}

/* --- watchers ------------------------------------------------------------------------------------------------- */

/* A table under a lock that is held during the calls, so that removing waits for a running call. */

#define MAX_WATCHERS 64

struct watcher {
	void (*fn)(void *arg, uint64_t rev);
	void *arg;
};

struct watchers {
	pthread_mutex_t lock;
	struct watcher items[MAX_WATCHERS];
};

struct watchers *watchers_new(void)
{
	struct watchers *w = mem_zalloc(sizeof(*w));

	pthread_mutex_init(&w->lock, NULL);
	return w;
}

void watchers_free(struct watchers *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int watchers_add(struct watchers *w, void (*fn)(void *arg, uint64_t rev), void *arg)
{
	int i, at = ERR_LIMIT;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < MAX_WATCHERS && at < 0; i++)
		if (!w->items[i].fn) {
			w->items[i] = (struct watcher){ fn, arg };
			at = i;
		}
	pthread_mutex_unlock(&w->lock);
	return at;
}

void watchers_remove(struct watchers *w, int handle)
{
	if (handle < 0 || handle >= MAX_WATCHERS)
		return;
	pthread_mutex_lock(&w->lock);
	w->items[handle] = (struct watcher){ 0 };
	pthread_mutex_unlock(&w->lock);
}

void watchers_tell(struct watchers *w, uint64_t rev)
{
	int i;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < MAX_WATCHERS; i++)
		if (w->items[i].fn)
			w->items[i].fn(w->items[i].arg, rev);
	pthread_mutex_unlock(&w->lock);
}
