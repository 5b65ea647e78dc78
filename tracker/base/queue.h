/* queue.h: a bounded queue of fixed-size items between threads. Producers never wait: a full queue refuses the
 * newest item. Consumers wait with a time limit. */
#ifndef DPT_BASE_QUEUE_H
#define DPT_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct queue;

/* NULL when out of memory. */
struct queue *queue_new(size_t item_bytes, size_t capacity_items);
void queue_free(struct queue *q); /* NULL is fine; items still inside are dropped */

/* Copies item in; false when full or closed. */
bool queue_push(struct queue *q, const void *item);

/* Moves up to max items out, waiting at most wait_s for the first one (0: never, negative: for ever); returns how
 * many. 0 after queue_close means that nothing will ever come. */
size_t queue_pop(struct queue *q, void *items, size_t max, double wait_s);

void queue_close(struct queue *q); /* refuses pushes, wakes consumers */
size_t queue_len(struct queue *q);

#endif
