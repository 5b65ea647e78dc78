/* thread_pool.h: a few threads that do short pieces of work in the order they come. They are there from the start: a thread
 * that an answering thread made would inherit the walls around that one. Knows nothing of what is done. */
#ifndef DPT_STORE_THREAD_POOL_H
#define DPT_STORE_THREAD_POOL_H

#include "tracker/base/err.h"

struct thread_pool;

int thread_pool_new(struct thread_pool **ret, int threads, struct err *err);
void thread_pool_free(struct thread_pool *c); /* when all that was given is done; NULL is fine */

/* One piece; embedded in what it is about, whose owner keeps it until fn is called. Given once at a time. */
struct thread_pool_task {
	void (*fn)(void *arg);
	void *arg;
	struct thread_pool_task *next; /* the crew's own */
};

void thread_pool_give(struct thread_pool *c, struct thread_pool_task *t); /* any thread */

#endif
