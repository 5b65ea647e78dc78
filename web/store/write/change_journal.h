/* change_journal.h: journals inside the writer's transaction: offsets, first records, items in order. */
#ifndef DPT_STORE_CHANGE_JOURNAL_H
#define DPT_STORE_CHANGE_JOURNAL_H

#include "web/store/write/apply.h"

struct apply_points {
	int rank;    /* of the journal: decides what a series without a rank belongs to */
	int segment;
	bool tolerant; /* what goes beyond a limit becomes a problem of the run instead of a refusal */
};

int apply_journal(struct state *st, struct apply_job *job, struct err *err);

/* Stores the batch's points: log row and visible summaries. */
int apply_points(struct state *st, struct state_run *r, const struct apply_points *a, const struct intake *in,
		 struct err *err);

int apply_problem(struct state *st, struct state_run *r, const char *text, uint64_t count, struct err *err);

#endif
