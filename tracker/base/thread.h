/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h: threads, condition variables and requests to stop. */
#ifndef DPT_BASE_THREAD_H
#define DPT_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Starts a thread that runs `run`. All signals are blocked in it except those of a fault (SIGSEGV, SIGBUS, …), so that
 * signals to the process reach the program's own threads. Returns 0 or an errno value, for err_set_errno. */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* As thread_start, without a join: the thread's resources are freed when it ends. stack_bytes 0: the default. */
int thread_start_detached(void *(*run)(void *arg), void *arg, size_t stack_bytes);

/* ---- condition variables with timeouts on the monotonic clock, which changes of the date do not affect ---- */

void cond_init(pthread_cond_t *c); /* destroy with pthread_cond_destroy */

/* Waits like pthread_cond_wait, at most until the time until_s of clock_mono_s (INFINITY: no limit). Returns false when
 * that time has passed. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, double until_s);

/* ---- a stop request for a waiting thread, which polls it a few times a second ---- */

struct stop {
	_Atomic bool now;
	bool (*asked)(void *user); /* optional: polled by the waiting thread, too; once true it must stay true */
	void *user;
};

/* s NULL: never stopped. */
static inline bool stop_asked(const struct stop *s)
{
	return s && (atomic_load(&s->now) || (s->asked && s->asked(s->user)));
}

#endif
