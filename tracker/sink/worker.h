/* worker.h: a thread that sends, its lock and its end: it is told to end by a time, then its request is cancelled, and
 * where even that does not get it out (a name lookup) it is left to itself and frees everything when it does. Knows
 * nothing of what is sent. */
#ifndef DPT_SINK_WORKER_H
#define DPT_SINK_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "tracker/base/err.h"

struct http;

struct worker_opts {
	const char *name; /* of the thread; 15 characters */
	void *own;        /* what the worker is part of */
	void (*run)(void *own);  /* the thread's work, with the lock held; returns when it shall end and may */
	void (*free)(void *own); /* all of it, behind worker_done; any thread, the last one */
	/* One line for people; from the thread, never once nobody waits for it any more. NULL: nobody listens. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* A part of what its thread works on. */
struct worker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock, to be read */
	bool stop;         /* it shall end, */
	double deadline_s; /* and by then (clock_mono_s) */
	/* its own */
	struct worker_opts o;
	pthread_t thread;
	bool ended, detached;
};

void worker_init(struct worker *w, const struct worker_opts *o);
void worker_done(struct worker *w); /* no thread was started, or it has ended */
int worker_start(struct worker *w, struct err *err);

/* Without the lock: tells people. */
void worker_say(struct worker *w, const char *text);

/* Waits at most wait_s for the end, then cancels the requests of h and waits some more. Returns with the lock held, so
 * that the caller reads what was left undone; worker_leave then frees all. */
void worker_end(struct worker *w, struct http *h, double wait_s);
void worker_leave(struct worker *w);

#endif
