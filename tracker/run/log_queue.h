/* log_queue.h: the queue between threads that log and the writer thread. Each logging thread gets a lane of its own (while
 * there are fewer than 256 of them), so that loggers do not meet: a push is one uncontended lock and one store. A push
 * never waits for the writer; it fails when the capacity is used up. One consumer. */
#ifndef DPT_RUN_LOG_QUEUE_H
#define DPT_RUN_LOG_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key;

struct point {
	double wall_time;
	double value;
	int64_t step;
	const struct key *key; /* borrowed: lives as long as the run */
	int rank;
};

struct log_queue;

/* Capacity in points, a multiple of 1024. NULL when out of memory. */
struct log_queue *log_queue_new(size_t capacity_points);
void log_queue_free(struct log_queue *l); /* NULL is fine */

/* Any thread. False when full. */
bool log_queue_push(struct log_queue *l, const struct point *p);

/* Consumer: waits until log_queue_wake, until much is queued, or for wait_s seconds. */
void log_queue_wait(struct log_queue *l, double wait_s);
void log_queue_wake(struct log_queue *l); /* any thread */

/* Consumer: takes over what has been pushed so far; only when everything taken before has been consumed. */
void log_queue_take(struct log_queue *l);

/* Consumer: the next point taken, over all lanes by time, each lane in its own order; NULL when there is none. The
 * pointer holds until the next call. */
const struct point *log_queue_next(struct log_queue *l);

#endif
