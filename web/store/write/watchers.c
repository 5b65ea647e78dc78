/* watchers.c: a table under a lock that is held during the calls, so that removing waits for a running call. */
#include "web/store/write/watchers.h"

#include <pthread.h>
#include <stdlib.h>

#include "tracker/base/err.h"

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
	struct watchers *w = calloc(1, sizeof *w);

	if (w)
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
