/* waiter.c: a condition and the answer. */
#include "web/store/write/waiter.h"

#include <string.h>

static void store_waiter_answer(void *arg, const struct ingest_result *res)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->res = *res;
	w->done = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

struct ingest_done waiter_init(struct waiter *w)
{
	memset(w, 0, sizeof *w);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->cond, NULL);
	return (struct ingest_done){ store_waiter_answer, w };
}

int waiter_wait(struct waiter *w, struct ingest_result *ret, struct err *err)
{
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (ret)
		*ret = w->res;
	if (w->res.code && err)
		*err = w->res.err;
	return w->res.code;
}

void waiter_done(struct waiter *w)
{
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->lock);
}
