/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c: starts threads with signals blocked, and waits with CLOCK_MONOTONIC. */
#include "tracker/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define FOR_EVER_S 1e9 /* on the monotonic clock: three decades after boot */

static int start_masked(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
	sigset_t blocked, before;
	int rc;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(ret, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	return start_masked(ret, NULL, run, arg);
}

int thread_start_detached(void *(*run)(void *arg), void *arg, size_t stack_bytes)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	rc = start_masked(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return rc;
}

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
