/* SPDX-License-Identifier: Apache-2.0 */
/* background_job.h: work outside the threads that answer requests: background jobs, one at a time, and a pool for
 * short tasks. Their threads are started with the store: one started by a thread that answers requests would inherit
 * its sandbox. */
#ifndef DPT_STORE_BACKGROUND_JOB_H
#define DPT_STORE_BACKGROUND_JOB_H

#include "tracker/base/err.h"

struct background_job;

struct background_job *background_job_new(void);
void background_job_free(struct background_job *w); /* cancels the running job and waits for it; NULL is fine */

/* Runs fn, then `then` (NULL: nothing) once another job may start. ERR_BUSY: a job is running. ERR_CANCELED: after
 * background_job_end. */
int background_job_start(struct background_job *w, void (*fn)(void *arg), void (*then)(void *arg), void *arg,
			 struct err *err);

void background_job_cancel(struct background_job *w); /* asks the running job to end */
void background_job_end(struct background_job *w);    /* the same, then waits; no other job starts */

/* True if the running job should end; long jobs check it between steps. */
bool background_job_canceled(const struct background_job *w);

/* A few threads that run short tasks in order. */
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
