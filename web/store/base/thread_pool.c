/* thread_pool.c: a queue of tasks and its threads. */
#include "web/store/base/thread_pool.h"
#include "web/store/base/no_memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

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
	struct thread_pool *c = calloc(1, sizeof *c);

	if (!c)
		return no_memory(err);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->news, NULL);
	c->last = &c->first;
	while (c->count < threads && c->count < CREW_MAX &&
	       !pthread_create(&c->threads[c->count], NULL, crew_thread, c))
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
