/* SPDX-License-Identifier: Apache-2.0 */
/* observers.h: what is done after each step and each epoch of a training: records, console, checks; the loop, with
 * evaluations and checkpoints; and the state that these share. */
#ifndef DPT_RUN_OBSERVERS_H
#define DPT_RUN_OBSERVERS_H

#include "tracker/insight/tuning.h"
#include "trainer/run/report.h"

/* ---- observers.c ---- */

struct training {
	struct engine *e;
	struct resume resume;
	struct report *report;
	struct console *console;	 /* rank 0 */
	struct checkpoint_writer *saver; /* rank 0, and ranks that own parts, when checkpoints are written */
	struct answering *answering;	 /* of chat data; NULL: off */
	struct err *err;

	struct checkpoint_state at; /* position of the run; its seconds are those before epoch_start_s */
	double epoch_start_s;
	struct evaluation val; /* the last evaluation, after val_step steps */
	int64_t val_step;      /* 0: none yet */
	bool has_metric;       /* --save-best's series has a new point since the last check for a checkpoint: metric */
	double metric;
	struct lr_range_test *range; /* state of dptrain find lr; NULL: other commands */
	bool stopped;		     /* ended on request, or at the time limit */
	int stop_code;
};

/* Pass a finished step, or an epoch before the next one begins, to all observers, in the order of their table. A
 * failure of one ends the run. */
int observers_after_step(struct training *t, const struct step_result *r);
int observers_after_epoch(struct training *t, const struct epoch_summary *s);

/* Notes the point that --save-best chooses by, if p has one. */
void observers_note_metric(struct training *t, const struct eval_metrics *p);

/* ---- loop.c ---- */

/* Runs the steps that are left. On return they are over and passed to the observers. */
int loop_run(struct training *t);

/* Returns the position of the run, with the training seconds of the open epoch. */
struct checkpoint_state loop_position(const struct training *t);

/* ---- val_answer.c ----
 *
 * The most likely answer in the first conversation of the evaluation set, as a text in the run's Media. */

struct answering;

/* *ret NULL: the set has no conversations, or is not evaluated. Borrows e. */
int answering_new(struct answering **ret, struct engine *e, struct err *err);
void answering_free(struct answering *a); /* NULL is fine */

/* Collective: all ranks read the text, rank 0 records the answer, with what it answers and the one that is given. NULL:
 * does nothing. */
int answering_record(struct answering *a, struct dptrack_run *run, int64_t step, struct err *err);

/* ---- console.c ----
 *
 * What a person sees of a run on stdout: a bar on a terminal, else plain lines; a table at the end. On rank 0 only. It
 * prints, so it is no part of a library. */

struct console;

struct console *console_new(const struct engine *e);
void console_free(struct console *c); /* NULL is fine */

void console_heading(struct console *c, const char *run_dir); /* run_dir: NULL when nothing is recorded */
void console_data(const struct console *c);		      /* which files are used; part of the heading */
void console_step(struct console *c, const struct step_result *r);

void console_validation(struct console *c, int64_t step, const struct evaluation *v); /* --eval-steps */

void console_epoch(struct console *c, const struct epoch_summary *s);
void console_evaluation(struct console *c, const struct evaluation *v); /* --test-only */
void console_memory(struct console *c);					/* memory planned and used, at the end */
void console_table(struct console *c);

/* ---- checkpoint_writer.c ----
 *
 * Writes checkpoints of a run: from snapshots in a thread while training continues, and at the end from the tensors.
 * Rank 0 writes; other ranks that own parts have a saver too, whose thread sends them to rank 0. A checkpoint that
 * cannot be written costs one warning; training continues. Keeps --save-total-limit checkpoints and the best one. */

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

/* ---- watch_record.c ----
 *
 * Statistics of tensors in watched steps, over all ranks: every --watch-steps steps, norms of gradients and updates by
 * parameter, dead rectifiers, histograms, and the noise scale. Does not change the training. */

struct watch;

/* Collective over all ranks. Borrows prepared and all; the programs must watch (optimizer_opts.watch). */
int watch_new(struct watch **ret, int64_t every, const struct prepared *prepared, struct comm *all, struct err *err);
void watch_free(struct watch *w); /* NULL is fine */

/* Returns true if that step, from 1, is watched. NULL: false. */
bool watch_due(const struct watch *w, int64_t step);

struct watch_step {
	const struct program *program; /* program of the last micro-batch */
	int64_t step;		       /* from 1 */
	int64_t samples;	       /* samples of the step over all ranks */
	double grad_norm, loss_scale;
};

/* Called after each micro-batch, of that many samples, of a watched step; its grad_norm is not known yet. */
int watch_micro(struct watch *w, const struct watch_step *s, int64_t samples, struct err *err);

/* Collective, after a watched step: rank 0 records the statistics. */
int watch_record(struct watch *w, struct dptrack_run *run, const struct watch_step *s, struct err *err);

/* ---- loss_spike.c ----
 *
 * Detects a step whose loss is far above those before it, and its samples with the largest losses. Keeps those of
 * every step, because a spike is detected when the step has changed the weights and cannot be repeated. */

struct loss_spike;

struct loss_spike *loss_spike_new(void);
void loss_spike_free(struct loss_spike *s); /* NULL is fine */

/* Records the losses of the rows of one program of a step (as in struct exec_done; NULL: none). It has `samples`
 * samples that begin at a position in the epoch's order; `begins`: the step's first program. s NULL: off. */
struct loss_spike_micro {
	const struct program *program;
	const double *losses;
	int64_t step, position, samples;
	bool begins;
};

void loss_spike_micro(struct loss_spike *s, const struct loss_spike_micro *m);

/* Collective, after each step, when a part of the next one may have been recorded: after a spike rank 0 warns and
 * records an alert that names the samples of largest loss over all ranks. */
int loss_spike_check(struct engine *e, struct dptrack_run *run, const struct step_result *r, struct err *err);

#endif
