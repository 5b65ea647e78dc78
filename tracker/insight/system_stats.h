/* system_stats.h: collects the system statistics of a run's machines (series system/…, schema/event/system.def), point
 *by point, and computes the shares of time for the diagnosis.
 *
 *	rc = system_stats_new(&v, ranks, &err);
 *	…for each point of a key with system_stats_series(key) >= 0: system_stats_add(v, &point, &err)…
 *	system_stats_fill(v, first_counted_step, local_world, &bottleneck_run);
 */
#ifndef DPT_INSIGHT_SYSTEM_STATS_H
#define DPT_INSIGHT_SYSTEM_STATS_H

#include "tracker/base/err.h"
#include "tracker/insight/bottleneck_tree.h"

/* Series that are used. */
enum system_stats_series {
	SYSTEM_STATS_CPU_PERCENT,
	SYSTEM_STATS_PROCESS,
	SYSTEM_STATS_WAIT,
	SYSTEM_STATS_STEAL,
	SYSTEM_STATS_THROTTLED,
	SYSTEM_STATS_LOOP,
	SYSTEM_STATS_MEMORY_WAIT,
	SYSTEM_STATS_FAULTS,
	SYSTEM_STATS_SERIES
};

struct system_stats;

struct system_stats_point {
	int series; /* of system_stats_series; -1: ignored */
	int rank;
	int64_t step;
	double wall_time, value;
};

int system_stats_new(struct system_stats **ret, int ranks, struct err *err); /* ERR_NOMEM */
void system_stats_free(struct system_stats *v);                              /* NULL is fine */

int system_stats_series(const char *key); /* "system/loop_us"; -1: not used */
const char *system_stats_key(int series);

/* In any order. Values that are not finite are ignored; beyond SYSTEM_STATS_MAX points the oldest are overwritten. */
#define SYSTEM_STATS_MAX 200000
int system_stats_add(struct system_stats *v, const struct system_stats_point *p, struct err *err); /* ERR_NOMEM */

/* Sets run_wait, taken, steal, throttled, memory_wait, major_faults and clock, as far as known: means of the samples
 * from step `from` on, of the worst rank. local_world: ranks 0 to local_world - 1 run on the first machine; their
 * processes do not count as "taken". */
void system_stats_fill(struct system_stats *v, int64_t from, int local_world, struct bottleneck_run *run);

#endif
