/* SPDX-License-Identifier: Apache-2.0 */
/* background_job.c: the thread of background jobs, and the pool of threads for short tasks. Both start with the
 * store. */
#include "web/store/base/background_job.h"

#include <stdlib.h>

#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"

struct background_job {
	pthread_mutex_t lock;
	pthread_cond_t news;
	pthread_t thread;
	bool started; /* needs a join */
	bool running; /* fn is queued or running */
	bool ending;
	_Atomic bool canceled;
	void (*fn)(void *arg), (*then)(void *arg);
	void *arg;
};

/* Runs one job at a time until the end. */
static void *work_thread(void *arg)
{
	struct background_job *w = arg;
	void (*then)(void *arg);
	void *done;

	pthread_mutex_lock(&w->lock);
	while (w->running || !w->ending) {
		if (!w->running) {
			pthread_cond_wait(&w->news, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		w->fn(w->arg);
		pthread_mutex_lock(&w->lock);
		w->running = false;
		then = w->then;
		done = w->arg;
		if (!then)
			continue;
		/* `then` may start the next job at once. */
		pthread_mutex_unlock(&w->lock);
		then(done);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct background_job *background_job_new(void)
{
	struct background_job *w = mem_zalloc(sizeof(*w));

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->news, NULL);
	w->started = !thread_start(&w->thread, work_thread, w);
	return w;
}

bool background_job_canceled(const struct background_job *w)
{
	return atomic_load(&w->canceled);
}

int background_job_start(struct background_job *w, void (*fn)(void *arg), void (*then)(void *arg), void *arg,
			 struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->ending) {
		rc = err_set(err, ERR_CANCELED, "the store is closing");
	} else if (w->running) {
		rc = err_set(err, ERR_BUSY, "another gc, backup or check is running: try again when it has ended");
	} else if (!w->started) {
		rc = err_set(err, ERR_IO, "cannot start a thread");
	} else {
		w->fn = fn;
		w->then = then;
		w->arg = arg;
		w->running = true;
		pthread_cond_signal(&w->news);
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

void background_job_cancel(struct background_job *w)
{
	atomic_store(&w->canceled, true);
}

void background_job_end(struct background_job *w)
{
	bool join;

	background_job_cancel(w);
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	join = w->started;
	w->started = false;
	pthread_cond_signal(&w->news);
	pthread_mutex_unlock(&w->lock);
	if (join)
		pthread_join(w->thread, NULL);
}

void background_job_free(struct background_job *w)
{
	if (!w)
		return;
	background_job_end(w);
	pthread_cond_destroy(&w->news);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* --- the pool ------------------------------------------------------------------------------------------------- */

#define CREW_MAX 32

struct thread_pool {
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct thread_pool_task *first, **last;
	bool ending;
	pthread_t threads[CREW_MAX];
	int count;
};

static void *crew_thread(void *arg)
{
	struct thread_pool *c = arg;
	struct thread_pool_task *t;

	pthread_mutex_lock(&c->lock);
	while (c->first || !c->ending) {
		t = c->first;
		if (!t) {
			pthread_cond_wait(&c->news, &c->lock);
			continue;
		}
		c->first = t->next;
		if (!c->first)
			c->last = &c->first;
		pthread_mutex_unlock(&c->lock);
		t->fn(t->arg); /* t may be freed when it returns */
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int thread_pool_new(struct thread_pool **ret, int threads, struct err *err)
{
	struct thread_pool *c = mem_zalloc(sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->news, NULL);
	c->last = &c->first;
	while (c->count < threads && c->count < CREW_MAX && !thread_start(&c->threads[c->count], crew_thread, c))
		c->count++;
	if (!c->count) {
		thread_pool_free(c);
		return err_set(err, ERR_IO, "store: cannot start a thread");
	}
	*ret = c;
	return 0;
}

void thread_pool_free(struct thread_pool *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->news);
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < c->count; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->news);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void thread_pool_give(struct thread_pool *c, struct thread_pool_task *t)
{
	t->next = NULL;
	pthread_mutex_lock(&c->lock);
	*c->last = t;
	c->last = &t->next;
	pthread_cond_signal(&c->news);
	pthread_mutex_unlock(&c->lock);
}
