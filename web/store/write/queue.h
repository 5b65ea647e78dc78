/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h: the queue of the writer's thread: operations, and steps that run between commits. It hands out groups
 * that one commit stores. The cost of a group is bounded, which bounds the wait of each operation.
 * Cheap operations overtake expensive ones that no longer fit, but never one on the same run. Any thread puts, one
 * takes. Private to web/store. */
#ifndef DPT_STORE_QUEUE_H
#define DPT_STORE_QUEUE_H

#include "web/store/write/change.h"

struct db;
struct queue;

struct queue_job {
	struct change change;
	struct ingest_done done;
	size_t bytes; /* memory that it holds while it waits */
	struct queue_job *next;
	bool held; /* given back: queued in front of later operations */
	/* Not NULL: a step between commits instead of an operation; it is queued like a group of one. It is not a
	 * kind of change, because it must run outside a transaction (copying a page of a backup) and changes
	 * nothing. */
	int (*step)(void *arg, struct db *d, struct err *err);
	void *step_arg;
};

struct queue *queue_new(size_t max_bytes);
void queue_free(struct queue *q);	   /* must be empty; NULL is fine */

/* Takes ownership of the job. Waits while more than max_bytes are queued, except for a step and a kind that never
 * waits. ERR_CANCELED: queue_stop was called. q NULL: ERR_NOSPC, because the store is only read. */
int queue_put(struct queue *q, struct queue_job *job, struct err *err);

/* The next group, linked by next; NULL when nothing arrived within wait_s, or after queue_wake. *ret_end: nothing
 * will follow. */
struct queue_job *queue_take(struct queue *q, double wait_s, bool *ret_end);

/* A group of the cheap waiting operations that may overtake; NULL: there are none. For a taker in the middle of long
 * work. */
struct queue_job *queue_take_small(struct queue *q);

/* Keeps back operations of the run until queue_release; operations on other runs overtake them. False: too many runs
 * are held, or q has ended. Any thread. */
bool queue_hold(struct queue *q, const char *run);
void queue_release(struct queue *q, const char *run);
/* Taker's thread: puts the job back to the front, in the order of the calls. */
void queue_give_back(struct queue *q, struct queue_job *job);

void queue_wake(struct queue *q);
void queue_stop(struct queue *q); /* still hands out what waits, held or not */

#endif
