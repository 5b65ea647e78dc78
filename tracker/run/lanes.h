/* lanes.h: the queue between threads that log and the writer thread. Each logging thread gets a lane of its own (while
 * there are fewer than 256 of them), so that loggers do not meet: a push is one uncontended lock and one store. A push
 * never waits for the writer; it fails when the capacity is used up. One consumer. */
#ifndef DPT_RUN_LANES_H
#define DPT_RUN_LANES_H

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

struct lanes;

/* Capacity in points, a multiple of 1024. NULL when out of memory. */
struct lanes *lanes_new(size_t capacity_points);
void lanes_free(struct lanes *l); /* NULL is fine */

/* Any thread. False when full. */
bool lanes_push(struct lanes *l, const struct point *p);

/* Consumer: waits until lanes_wake, until much is queued, or for wait_s seconds. */
void lanes_wait(struct lanes *l, double wait_s);
void lanes_wake(struct lanes *l); /* any thread */

/* Consumer: takes over what has been pushed so far; only when everything taken before has been consumed. */
void lanes_take(struct lanes *l);

/* Consumer: the next point taken, over all lanes by time, each lane in its own order; NULL when there is none. The
 * pointer holds until the next call. */
const struct point *lanes_next(struct lanes *l);

#endif
