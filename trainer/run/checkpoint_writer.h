/* checkpoint_writer.h: writes checkpoints of a run: from snapshots in a thread while training continues, and at the end
 * from the tensors. Rank 0 writes; other ranks that own parts have a saver too, whose thread sends them to rank 0. A
 * checkpoint that cannot be written costs one warning; training continues. Keeps --save-total-limit checkpoints and the
 * best one. */
#ifndef DPT_RUN_CHECKPOINT_WRITER_H
#define DPT_RUN_CHECKPOINT_WRITER_H

#include "trainer/run/engine.h"
#include "trainer/run/report.h"
#include "trainer/weights/checkpoint.h"

struct checkpoint_writer;

/* Borrows e and report. have_step: step of the checkpoint from which this run continues, which need not be written
 * again; -1: none. Starts a thread when the plan has room for a snapshot. */
int checkpoint_writer_open(struct checkpoint_writer **ret, struct engine *e, struct report *report, int64_t have_step,
			   struct err *err);
void checkpoint_writer_close(struct checkpoint_writer *s); /* waits for the thread; NULL is fine */

/* Takes a snapshot and returns; waits first while the previous one is being written. Called on every rank that has
 * one. */
int checkpoint_writer_save(struct checkpoint_writer *s, const struct checkpoint_state *at, struct err *err);

/* Rank 0 writes a checkpoint of this moment unless there is one, with the other ranks here or in tensors_help; complete
 * on return. */
int checkpoint_writer_finish(struct checkpoint_writer *s, const struct checkpoint_state *at, struct err *err);

#endif
