/* workers.h: finds the number of loader threads: measures while the run continues, then keeps the best. Pure logic over
 * the times of batches: knows neither loader nor clock.
 *
 * Threads that load ahead take time from those that compute, where both share cores. Without them, all threads load a
 * batch when it is needed. So the search begins with none, adds threads as long as batches are late and steps become
 * faster, and takes back what did not help. */
#ifndef DPT_PROGRAM_WORKERS_H
#define DPT_PROGRAM_WORKERS_H

#include <stdbool.h>

#define WORKERS_SKIPPED 4 /* batches after a change that still show the former number */
#define WORKERS_WINDOW 8	 /* batches that measure one number */

struct workers {
	int n, most;	  /* threads now, and at most */
	bool done;	  /* n is final */
	double wait_share; /* share of time spent waiting for data, with the best number so far */
	/* internal */
	int seen;
	double wait_s, all_s, longest_s;
	int best, in_vain; /* numbers tried since then without gain */
	bool any;
	double best_s; /* seconds of a batch with that many */
};

void workers_init(struct workers *s, int most); /* most >= 1 */

/* Records a batch that took all_s since the one before, wait_s of it waiting for data. Returns true when n has changed
 * or is final. */
bool workers_batch(struct workers *s, double wait_s, double all_s);

#endif
