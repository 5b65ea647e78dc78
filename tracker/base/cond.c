/* cond.c: condition variables with CLOCK_MONOTONIC. */
#include "tracker/base/cond.h"

#include <errno.h>
#include <time.h>

#define FOR_EVER_S 1e9 /* of the clock: three decades after boot */

void cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, double until_s)
{
	struct timespec t;

	if (until_s >= FOR_EVER_S)
		return !pthread_cond_wait(c, lock);
	until_s = until_s > 0 ? until_s : 0;
	t.tv_sec = (time_t)until_s;
	t.tv_nsec = (long)((until_s - (double)t.tv_sec) * 1e9);
	return pthread_cond_timedwait(c, lock, &t) != ETIMEDOUT;
}
