/* waiter.h: waits for one answer of the writer's thread, in the caller's storage. Private to web/store. */
#ifndef DPT_STORE_WAITER_H
#define DPT_STORE_WAITER_H

#include <pthread.h>
#include <stdbool.h>

#include "web/store/write/ingest.h"

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	struct ingest_result res;
};

/* Calling the fn of the result ends the wait. */
struct ingest_done waiter_init(struct waiter *w);

/* Returns the code of the answer and copies its error to err; ret (NULL is fine) gets all of it. */
int waiter_wait(struct waiter *w, struct ingest_result *ret, struct err *err);

void waiter_done(struct waiter *w);

#endif
