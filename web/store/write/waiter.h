/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h: who waits for the writer's thread: one answer in the caller's storage, and callbacks for committed
 * changes (the list behind store_watch). Private to web/store. */
#ifndef DPT_STORE_WAITER_H
#define DPT_STORE_WAITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

/* The callbacks. */
struct watchers;

struct watchers *watchers_new(void);    /* NULL when out of memory */
void watchers_free(struct watchers *w); /* NULL is fine */

int watchers_add(struct watchers *w, void (*fn)(void *arg, uint64_t rev), void *arg); /* a handle, or ERR_LIMIT */
void watchers_remove(struct watchers *w, int handle); /* when it returns, fn is not running and is not called again */

void watchers_tell(struct watchers *w, uint64_t rev);

#endif
