/* folding.h: how much is logged and not folded into series, when it is folded, and one transaction of that. Where one
 * process writes alone it counts what it logs and folds in quiet moments; where others write too, a backlog says when.
 * The writer's thread alone, but for folding_ask. */
#ifndef DPT_STORE_FOLDING_H
#define DPT_STORE_FOLDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "web/store/points/backlog.h"
#include "web/store/write/transaction.h"

#define FOLDING_BUSY_POINTS 400000 /* fold although more waits */
#define FOLDING_POINTS 200000      /* of one transaction while idle */

struct folding {
	struct transaction *t;
	bool never;             /* only tests */
	atomic_bool asked;      /* fold what is logged now without waiting for a quiet moment */
	uint64_t rows, points;  /* in the log; where others write too counted now and then */
	double counted_s, oldest_s, after_s;
	struct backlog backlog; /* where others write too */
};

void folding_ask(struct folding *f);  /* any thread */
void folding_done(struct folding *f); /* nothing is due: what was asked for has been done */

/* Counts what is logged, by whichever process. */
int folding_count(struct folding *f, struct err *err);

/* Looks, now and then, at what others log. */
void folding_look(struct folding *f);
void folding_recount(struct folding *f);

/* A commit has logged this, and removed that. */
struct folding_logged {
	uint64_t rows, points, rows_gone, points_gone;
};

void folding_note(struct folding *f, const struct folding_logged *l);

/* Whether to fold now that nothing waits; quiet_s: when something was last committed. */
bool folding_due(const struct folding *f, double quiet_s, double now_s);

/* When it will be due unless something comes; infinity: not at all. */
double folding_due_at(const struct folding *f, double quiet_s, double now_s);

/* Writers that never pause must not keep the log growing, nor alerts waiting. */
bool folding_pressing(const struct folding *f, double now_s);

/* Folds about so many points in a transaction of its own. *ret_rev: of the last change in it, 0 where there was none
 * that others want to hear of. */
int folding_some(struct folding *f, uint64_t max_points, uint64_t *ret_rev, struct err *err);

#endif
