/* ring.h: the data that goes to a device before a run and returns after it: pages, small values and batches; results.
 * One slot for each run that may be in progress, in pinned memory. Everything is enqueued; nothing waits.
 *
 * A batch is uploaded on a stream of its own into memory that no program uses (prepared_feed), while the run before may
 * be in progress, and copied from there into its place before its run. */
#ifndef DPT_RUN_RING_H
#define DPT_RUN_RING_H

#include "trainer/run/exec/exec.h"

#define RING_SLOTS (EXEC_AHEAD_MAX + 1)

struct ring;

/* Borrows p and the stream on which runs follow each other. */
int ring_open(struct ring **ret, const struct prepared *p, struct stream_handle *compute, struct err *err);
void ring_close(struct ring *r); /* no run is in progress; NULL is fine */

/* Returns the page that nodes of that micro-batch slot read, in the device's memory. */
const struct step_page *ring_page(const struct ring *r, int micro_slot);

/* Enqueues the data of a run. The slot's last run must be finished. */
int ring_send(struct ring *r, int slot, const struct program *p, const struct exec_call *call, struct err *err);

/* Returns the event of the last batch's arrival on the device. */
struct event_handle *ring_fed(const struct ring *r);

/* ring_receive is called after the run is enqueued; the event of ring_over signals its results, which ring_read then
 * returns. */
int ring_receive(struct ring *r, int slot, const struct program *p, struct err *err);
struct event_handle *ring_over(const struct ring *r, int slot);
void ring_read(const struct ring *r, int slot, const struct program *p, struct exec_done *ret); /* except times */

#endif
