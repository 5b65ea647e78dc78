/* folding.h: decides when logged points are folded into series, and runs the transactions that fold. One process
 * alone counts what it logs and folds in quiet moments; with other writers a backlog decides. Writer's thread only,
 * except folding_ask. */
#ifndef DPT_STORE_FOLDING_H
#define DPT_STORE_FOLDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "web/store/points/backlog.h"
#include "web/store/write/transaction.h"

#define FOLDING_BUSY_POINTS 400000 /* from this many on, fold even while operations wait */
#define FOLDING_POINTS 200000	   /* per transaction while idle */

struct folding {
	struct transaction *t;
	bool never;	       /* for tests */
	atomic_bool asked;     /* fold what is logged without waiting for a quiet moment */
	uint64_t rows, points; /* in the log; with other writers recounted from time to time */
	double counted_s, oldest_s, after_s;
	struct backlog backlog; /* with other writers */
};

void folding_ask(struct folding *f);  /* any thread */
void folding_done(struct folding *f); /* clears the request of folding_ask: nothing is due */

/* Counts what is logged, by all processes. */
int folding_count(struct folding *f, struct err *err);

/* Looks from time to time at what others log. */
void folding_look(struct folding *f);
void folding_recount(struct folding *f);

/* What one commit added to the log and removed from it. */
struct folding_logged {
	uint64_t rows, points, rows_gone, points_gone;
};

void folding_note(struct folding *f, const struct folding_logged *l);

/* Returns true if folding is due now that nothing waits. quiet_s: time of the last commit. */
bool folding_due(const struct folding *f, double quiet_s, double now_s);

/* When it will be due if nothing arrives; INFINITY: never. */
double folding_due_at(const struct folding *f, double quiet_s, double now_s);

/* Returns true if folding is due although operations wait: the log and pending alerts must not grow without bound. */
bool folding_pressing(const struct folding *f, double now_s);

/* Folds about max_points points in a transaction of its own. *ret_rev: revision of its last change; 0: nothing that
 * watchers need to see. */
int folding_some(struct folding *f, uint64_t max_points, uint64_t *ret_rev, struct err *err);

#endif
