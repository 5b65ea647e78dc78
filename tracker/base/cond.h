/* cond.h: condition variables whose waits end by the steady clock, so that a change of the date neither cuts nor
 * stretches them. */
#ifndef DPT_BASE_COND_H
#define DPT_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>

void cond_init(pthread_cond_t *c); /* pthread_cond_destroy ends it */

/* Waits as pthread_cond_wait does, at most until the time until_s of clock_mono_s (INFINITY: for ever). False when it
 * has come. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, double until_s);

#endif
