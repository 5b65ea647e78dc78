/* queue.h: what waits for the writer's thread: operations, and pieces of work between commits. Handed out as groups
 * that one commit stores. A group is bounded by what it costs, so that nobody waits long for it, and what costs little
 * does not stand behind what costs much: it goes ahead of operations that no longer fit, but never ahead of one on the
 * same run. Any thread puts, one takes. Private to web/store. */
#ifndef DPT_STORE_QUEUE_H
#define DPT_STORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "web/store/write/change.h"

struct db;
struct queue;

struct queue_job {
	struct change change;
	struct ingest_done done;
	size_t bytes; /* of the memory that it holds while it waits */
	struct queue_job *next;
	bool held; /* it was given back: it stands before what came later */
	/* Not NULL: no operation but a piece of work between commits, which stands in line like a group of its own. It
	 * is no kind of change because it must not run inside a transaction, as a page of a backup is copied, and
	 * changes nothing. */
	int (*step)(void *arg, struct db *d, struct err *err);
	void *step_arg;
};

struct queue *queue_new(size_t max_bytes); /* NULL when out of memory */
void queue_free(struct queue *q);          /* empty; NULL is fine */

/* Takes the job over. Waits while more than max_bytes are queued, but for a step and a kind that never waits.
 * ERR_CANCELED: queue_stop was called. q NULL: ERR_NOSPC, because the store is only read. */
int queue_put(struct queue *q, struct queue_job *job, struct err *err);

/* The next group, linked by next; NULL when nothing came within wait_s, or after queue_wake. *ret_end: nothing ever
 * will. */
struct queue_job *queue_take(struct queue *q, double wait_s, bool *ret_end);

/* Those of the waiting operations that cost little, as a group, as long as they may go ahead; NULL: there are none. For
 * a taker that is at long work in pieces. */
struct queue_job *queue_take_small(struct queue *q);

/* Operations of the run are not handed out until queue_release, whatever waits behind them is. False: too many runs are
 * held, or q has ended. Any thread. */
bool queue_hold(struct queue *q, const char *run);
void queue_release(struct queue *q, const char *run);
/* By who took it: to the front, in the order given back. */
void queue_give_back(struct queue *q, struct queue_job *job);

void queue_wake(struct queue *q);
void queue_stop(struct queue *q); /* what waits is still handed out, held or not */
bool queue_ended(struct queue *q); /* queue_stop was called */

#endif
