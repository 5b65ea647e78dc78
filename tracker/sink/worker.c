/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c: the thread of a sender; one lock and one condition for the thread and its owner. */
#include "tracker/sink/worker.h"

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/sink/http_client.h"

#define CANCEL_GRACE_S 2.0

void worker_init(struct worker *w, const struct worker_opts *o)
{
	*w = (struct worker){ .o = *o };
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->changed);
}

void worker_done(struct worker *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

static void *run_worker_thread(void *arg)
{
	struct worker *w = arg;
	bool detached;

	pthread_setname_np(pthread_self(), w->o.name);
	pthread_mutex_lock(&w->lock);
	w->o.run(w->o.own);
	w->ended = true;
	detached = w->detached;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (detached)
		w->o.free(w->o.own);
	return NULL;
}

int worker_start(struct worker *w, struct err *err)
{
	int rc = thread_start(&w->thread, run_worker_thread, w);

	return rc ? err_set_errno(err, rc, "cannot start the thread %s", w->o.name) : 0;
}

void worker_say(struct worker *w, const char *text)
{
	pthread_mutex_lock(&w->lock);
	if (!w->detached && w->o.notice) /* detached: the listener no longer exists */
		w->o.notice(w->o.user, text);
	pthread_mutex_unlock(&w->lock);
}

/* Waits for the thread's end, until the given time at most. The caller holds the lock. */
static bool wait_until_ended(struct worker *w, double until_s)
{
	while (!w->ended && clock_mono_s() < until_s)
		cond_wait_until(&w->changed, &w->lock, until_s);
	return w->ended;
}

void worker_end(struct worker *w, struct http *h, double wait_s)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	w->deadline_s = clock_mono_s() + (wait_s > 0 ? wait_s : 0);
	pthread_cond_broadcast(&w->changed);
	if (!wait_until_ended(w, w->deadline_s)) {
		http_cancel(h);
		wait_until_ended(w, clock_mono_s() + CANCEL_GRACE_S);
	}
}

void worker_leave(struct worker *w)
{
	pthread_t thread = w->thread;
	void (*free_all)(void *own) = w->o.free;
	void *own = w->o.own;
	bool ended = w->ended;

	w->detached = !ended;
	pthread_mutex_unlock(&w->lock);
	if (!ended) { /* the thread may free everything from here on */
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	free_all(own);
}
