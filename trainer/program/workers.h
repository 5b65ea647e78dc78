/* workers.h: how many threads shall load data: measured while a run goes on, then settled. Pure logic over the times of
 * batches: knows neither loader nor clock.
 *
 * Threads that load ahead take time from those that compute, where both share cores; with none of them a batch is
 * loaded by everybody when it is needed. So it begins with none, adds some as long as batches come late and that makes
 * the run faster, and takes back what did not. */
#ifndef DPT_PROGRAM_WORKERS_H
#define DPT_PROGRAM_WORKERS_H

#include <stdbool.h>

#define WORKERS_SKIPPED 4 /* batches after a change that show the number before it */
#define WORKERS_WINDOW 8	 /* batches that one number is judged by */

struct workers {
	int n, most;	  /* threads now, and at most */
	bool done;	  /* n stays */
	double wait_share; /* of the time with the best number so far, that was spent waiting for data */
	/* internal */
	int seen;
	double wait_s, all_s, longest_s;
	int best, in_vain; /* numbers tried since then that were no better */
	bool any;
	double best_s; /* a batch with that many */
};

void workers_init(struct workers *s, int most); /* most >= 1 */

/* A batch took all_s from the one before it, wait_s of them waiting for it. True when n has changed, or is done. */
bool workers_batch(struct workers *s, double wait_s, double all_s);

#endif
