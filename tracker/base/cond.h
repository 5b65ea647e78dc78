/* cond.h: condition variables with timeouts on the monotonic clock, so that a change of the date does not affect
 * them. */
#ifndef DPT_BASE_COND_H
#define DPT_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>

void cond_init(pthread_cond_t *c); /* destroy with pthread_cond_destroy */

/* Waits like pthread_cond_wait, at most until the time until_s of clock_mono_s (INFINITY: no limit). Returns false when
 * that time has passed. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, double until_s);

#endif
