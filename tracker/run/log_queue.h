/* SPDX-License-Identifier: Apache-2.0 */
/* log_queue.h: the log queue between the logging threads and the writer thread. Each logging thread has its own lane
 * (up to 256 threads), so loggers do not contend: a push is one uncontended lock and one store. A push never waits for
 * the writer; it fails when the capacity is exhausted. One consumer. */
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
	const struct key *key; /* borrowed: valid as long as the run */
	int rank;
};

struct log_queue;

/* Capacity in points, a multiple of 1024. Returns NULL if out of memory. */
struct log_queue *log_queue_new(size_t capacity_points);
void log_queue_free(struct log_queue *l); /* NULL is fine */

/* Any thread. Returns false if full. */
bool log_queue_push(struct log_queue *l, const struct point *p);

/* Consumer: waits for log_queue_wake, for many queued points, or for wait_s seconds. */
void log_queue_wait(struct log_queue *l, double wait_s);
void log_queue_wake(struct log_queue *l); /* any thread */

/* Consumer: takes all points pushed so far; call it only after all points taken earlier are consumed. */
void log_queue_take(struct log_queue *l);

/* Consumer: returns the next taken point, over all lanes by time, each lane in its own order; NULL at the end. The
 * pointer is valid until the next call. */
const struct point *log_queue_next(struct log_queue *l);

#endif
