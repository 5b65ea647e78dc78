/* SPDX-License-Identifier: Apache-2.0 */
/* run_diagnosis.h: from the records of a run (params, steps, system statistics) to the report of the bottleneck tree.
 * The result is the same for a server's store and for the journals of a folder. */
#ifndef DPT_INSIGHT_RUN_DIAGNOSIS_H
#define DPT_INSIGHT_RUN_DIAGNOSIS_H

#include "tracker/insight/bottleneck_tree.h"
#include "tracker/insight/steps.h"

/* Configuration of the run; NaN: unknown. */
struct diagnosis_facts {
	double workers, threads, batch_size, parameters, bucket_cap_mb; /* params of the same names */
	double global_batch_size, steps_per_epoch, eval_steps, save_steps, grad_accum_steps;
	bool workers_auto, recomputes_all; /* -j auto, --activation-checkpointing full */
	double cores;	    /* of one machine */
	double nodes;	    /* of the program that a step runs */
	double local_world; /* ranks on the first machine */
	int world;	    /* ranks, at least 1 */
	bool evaluates;	    /* has val/seconds or epoch/eval_seconds */
};

struct diagnosis_facts diagnosis_unknown(void);

void diagnosis_param(struct diagnosis_facts *f, const char *key, const char *value); /* ignores other params */
void diagnosis_environment(struct diagnosis_facts *f, const char *key,
			   const char *text);			   /* reads "cpu" and "program" */
void diagnosis_series(struct diagnosis_facts *f, const char *key); /* a series that the run has */

/* Collects the system statistics of a run's machines (series system/…, schema/event/system.def), point by point, and
 * computes the shares of time for the diagnosis.
 *
 *	rc = system_stats_new(&v, ranks, &err);
 *	…for each point of a key with system_stats_series(key) >= 0: system_stats_add(v, &point, &err)…
 *	system_stats_fill(v, first_counted_step, local_world, &bottleneck_run);
 */
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
void system_stats_free(struct system_stats *v);				     /* NULL is fine */

int system_stats_series(const char *key); /* "system/loop_us"; -1: not used */
const char *system_stats_key(int series);

/* In any order. Values that are not finite are ignored; beyond SYSTEM_STATS_MAX points the oldest are overwritten. */
#define SYSTEM_STATS_MAX 200000
int system_stats_add(struct system_stats *v, const struct system_stats_point *p, struct err *err); /* ERR_NOMEM */

/* Sets run_wait, taken, steal, throttled, memory_wait, major_faults and clock, as far as known: means of the samples
 * from step `from` on, of the worst rank. local_world: ranks 0 to local_world - 1 run on the first machine; their
 * processes do not count as "taken". */
void system_stats_fill(struct system_stats *v, int64_t from, int local_world, struct bottleneck_run *run);

struct diagnosis_input {
	const struct diagnosis_facts *facts;
	const struct steps *steps;
	const struct step_time_step *rows; /* of steps_take; warm-up is skipped */
	const struct step_time *pace;	   /* of these */
	struct system_stats *vitals;	   /* NULL: no system statistics */
};

/* Diagnoses a run. ERR_NOMEM; ERR_USAGE: no counted steps, or none with phases. */
int diagnosis_run(const struct diagnosis_input *in, struct bottleneck_report *ret, struct err *err);

#endif
