/* waiter.h: waits for one answer of the writer's thread. Private to web/store; the caller's storage. */
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

/* Who calls the result's fn ends the wait. */
struct ingest_done waiter_init(struct waiter *w);

/* The answer's code, its error in err; ret (NULL is fine) gets all of it. */
int waiter_wait(struct waiter *w, struct ingest_result *ret, struct err *err);

void waiter_done(struct waiter *w);

#endif
