/* thread_pool.h: a few threads that run short tasks in order. All are started at once: a thread started by a thread
 * that answers requests would inherit its sandbox. */
#ifndef DPT_STORE_THREAD_POOL_H
#define DPT_STORE_THREAD_POOL_H

#include "tracker/base/err.h"

struct thread_pool;

int thread_pool_new(struct thread_pool **ret, int threads, struct err *err);
void thread_pool_free(struct thread_pool *c); /* after all tasks are done; NULL is fine */

/* A task, embedded in the object it works on, which must live until fn is called. Queued at most once at a time. */
struct thread_pool_task {
	void (*fn)(void *arg);
	void *arg;
	struct thread_pool_task *next; /* private */
};

void thread_pool_give(struct thread_pool *c, struct thread_pool_task *t); /* any thread */

#endif
