/* work.c: the thread of long work and its end. */
#include "web/store/work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "web/store/inside.h"
#include "web/store/upkeep.h"

struct work {
	pthread_mutex_t lock;
	pthread_t thread;
	bool started; /* to be joined */
	bool running;
	_Atomic bool canceled;
	void (*fn)(void *arg);
	void *arg;
};

struct work *work_new(void)
{
	struct work *w = calloc(1, sizeof *w);

	if (w)
		pthread_mutex_init(&w->lock, NULL);
	return w;
}

bool work_canceled(const struct store *s)
{
	return atomic_load(&s->work->canceled);
}

static void *work_thread(void *arg)
{
	struct work *w = arg;

	w->fn(w->arg);
	pthread_mutex_lock(&w->lock);
	w->running = false;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int start_locked(struct work *w, struct err *err)
{
	if (atomic_load(&w->canceled))
		return err_set(err, ERR_CANCELED, "the store is closing");
	if (w->running)
		return err_set(err, ERR_BUSY, "another gc, backup or check is under way; try again when it has ended");
	if (w->started)
		pthread_join(w->thread, NULL);
	w->started = w->running = !pthread_create(&w->thread, NULL, work_thread, w);
	return w->started ? 0 : err_set(err, ERR_IO, "cannot start a thread");
}

int store_work(struct store *s, void (*fn)(void *arg), void *arg, struct err *err)
{
	struct work *w = s->work;
	int rc;

	pthread_mutex_lock(&w->lock);
	if (!w->running) {
		w->fn = fn;
		w->arg = arg;
	}
	rc = start_locked(w, err);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void end(struct work *w)
{
	bool join;

	atomic_store(&w->canceled, true);
	pthread_mutex_lock(&w->lock);
	join = w->started;
	w->started = false;
	pthread_mutex_unlock(&w->lock);
	if (join)
		pthread_join(w->thread, NULL);
}

void store_work_stop(struct store *s)
{
	if (s && s->work)
		end(s->work);
}

void work_free(struct work *w)
{
	if (!w)
		return;
	end(w);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
