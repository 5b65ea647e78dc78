/* ring.h: what goes to a device in front of a run and comes back behind it: pages, small values and batches; results. A
 * slot of the ring for each run that may be under way, in pinned memory. Everything is enqueued; nothing waits.
 *
 * A batch is brought on a stream of its own into room that no program uses (prepared_feed), while the run before may
 * still be at work, and from there into its place in front of its run. */
#ifndef DPT_RUN_RING_H
#define DPT_RUN_RING_H

#include "trainer/run/exec/exec.h"

#define RING_SLOTS (EXEC_AHEAD_MAX + 1)

struct ring;

/* p, and the stream on which runs follow each other, are borrowed. */
int ring_open(struct ring **ret, const struct prepared *p, struct stream_handle *compute, struct err *err);
void ring_close(struct ring *r); /* nothing is under way; NULL is fine */

/* In the device's memory: what nodes of that micro-batch slot read. */
const struct step_page *ring_page(const struct ring *r, int micro_slot);

/* The slot's last run is over. Behind this, the run finds what it reads in place. */
int ring_send(struct ring *r, int slot, const struct program *p, const struct exec_call *call, struct err *err);

/* Done when the batch that was sent last lies on the device. */
struct event_handle *ring_fed(const struct ring *r);

/* Behind the run; ring_over is done when results are there, and then ring_read gives them. */
int ring_receive(struct ring *r, int slot, const struct program *p, struct err *err);
struct event_handle *ring_over(const struct ring *r, int slot);
void ring_read(const struct ring *r, int slot, const struct program *p, struct exec_done *ret); /* but its times */

#endif
