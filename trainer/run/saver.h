/* saver.h: writes checkpoints of a run: while training goes on from snapshots, by a thread of its own; at the end from
 * the tensors themselves. Rank 0 writes; other ranks that hold parts have a saver too, whose thread hands them over. A
 * checkpoint that cannot be written costs one warning; training goes on. Keeps as many as --save-total-limit says, and
 * the best one. */
#ifndef DPT_RUN_SAVER_H
#define DPT_RUN_SAVER_H

#include "trainer/run/engine.h"
#include "trainer/run/report.h"
#include "trainer/weights/checkpoint.h"

struct saver;

/* e and report are borrowed. have_step: of the checkpoint that this run goes on from, which need not be written again;
 * -1 none. Starts a thread when the plan has room for a snapshot. */
int saver_open(struct saver **ret, struct engine *e, struct report *report, int64_t have_step, struct err *err);
void saver_close(struct saver *s); /* waits for the thread; NULL is fine */

/* Takes a snapshot and returns; waits first while the one before is still being written. On every rank that has one. */
int saver_save(struct saver *s, const struct checkpoint_state *at, struct err *err);

/* Rank 0 writes a checkpoint of this moment unless there is one, with the other ranks here or in tensors_help; complete
 * on return. */
int saver_finish(struct saver *s, const struct checkpoint_state *at, struct err *err);

#endif
