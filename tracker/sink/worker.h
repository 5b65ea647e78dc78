/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: a sending thread, its lock and its end. It is asked to end by a deadline, then its request is cancelled. If
 * it still does not end (a name lookup), it is detached and frees everything later. Independent of what is sent. */
#ifndef DPT_SINK_WORKER_H
#define DPT_SINK_WORKER_H

#include <pthread.h>

#include "tracker/base/err.h"

struct http;

struct worker_opts {
	const char *name;	 /* of the thread; 15 characters */
	void *own;		 /* the object that contains the worker */
	void (*run)(void *own);	 /* the thread's work, with the lock held; returns when it is asked to end */
	void (*free)(void *own); /* frees `own` after worker_done; called by the last user, in any thread */
	/* One line of text; from the thread, never after the owner has detached it. NULL: no notices. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* Embedded in the object that its thread works on. */
struct worker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* read under the lock */
	bool stop;	   /* the thread must end, */
	double deadline_s; /* by this time (clock_mono_s) */
	/* private */
	struct worker_opts o;
	pthread_t thread;
	bool ended, detached;
};

void worker_init(struct worker *w, const struct worker_opts *o);
void worker_done(struct worker *w); /* only if no thread was started, or it has ended */
int worker_start(struct worker *w, struct err *err);

/* Passes a notice on; call it without the lock. */
void worker_say(struct worker *w, const char *text);

/* Waits at most wait_s for the end, then cancels the requests of h and waits a little longer. Returns with the lock
 * held, so that the caller can read what remains; worker_leave then frees everything. */
void worker_end(struct worker *w, struct http *h, double wait_s);
void worker_leave(struct worker *w);

#endif
