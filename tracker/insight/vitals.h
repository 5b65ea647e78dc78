/* vitals.h: what the machines of a run said of themselves (series system/…, schema/event/system.def), point by point,
 * to the shares of time that a diagnosis is made of.
 *
 *	rc = vitals_new(&v, ranks, &err);
 *	…for each point of a key with vitals_series(key) >= 0: vitals_add(v, &point, &err)…
 *	vitals_fill(v, first_counted_step, local_world, &tree_run);
 */
#ifndef DPT_INSIGHT_VITALS_H
#define DPT_INSIGHT_VITALS_H

#include "tracker/base/err.h"
#include "tracker/insight/tree.h"

/* Series that are looked at. */
enum vitals_series {
	VITALS_CPU_PERCENT,
	VITALS_PROCESS,
	VITALS_WAIT,
	VITALS_STEAL,
	VITALS_THROTTLED,
	VITALS_LOOP,
	VITALS_MEMORY_WAIT,
	VITALS_FAULTS,
	VITALS_SERIES
};

struct vitals;

struct vitals_point {
	int series; /* of vitals_series; -1: passed over */
	int rank;
	int64_t step;
	double wall_time, value;
};

int vitals_new(struct vitals **ret, int ranks, struct err *err); /* ERR_NOMEM */
void vitals_free(struct vitals *v);                              /* NULL is fine */

int vitals_series(const char *key); /* "system/loop_us"; -1: does not matter here */
const char *vitals_key(int series);

/* In any order; what is not finite is passed over, and the oldest give way when there are more than VITALS_MAX. */
#define VITALS_MAX 200000
int vitals_add(struct vitals *v, const struct vitals_point *p, struct err *err); /* ERR_NOMEM */

/* Sets what is known of run_wait taken steal throttled memory_wait major_faults clock: means of the samples from step
 * `from` on, of the rank that was worst off. local_world: ranks 0 to that of the first machine, whose processes are not
 * "others". */
void vitals_fill(struct vitals *v, int64_t from, int local_world, struct tree_run *run);

#endif
