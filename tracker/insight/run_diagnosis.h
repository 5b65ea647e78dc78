/* run_diagnosis.h: from the records of a run (params, steps, system statistics) to the report of the bottleneck tree.
 * The result is the same for a server's store and for the journals of a folder. */
#ifndef DPT_INSIGHT_RUN_DIAGNOSIS_H
#define DPT_INSIGHT_RUN_DIAGNOSIS_H

#include <stdbool.h>

#include "tracker/insight/steps.h"
#include "tracker/insight/bottleneck_tree.h"
#include "tracker/insight/system_stats.h"

/* Configuration of the run; NaN: unknown. */
struct diagnosis_facts {
	double workers, threads, batch_size, parameters, bucket_cap_mb; /* params of the same names */
	double global_batch_size, steps_per_epoch, eval_steps, save_steps;
	double cores;       /* of one machine */
	double nodes;       /* of the program that a step runs */
	double local_world; /* ranks on the first machine */
	int world;          /* ranks, at least 1 */
	bool evaluates;     /* has val/seconds or epoch/eval_seconds */
};

struct diagnosis_facts diagnosis_unknown(void);

void diagnosis_param(struct diagnosis_facts *f, const char *key, const char *value); /* ignores other params */
void diagnosis_environment(struct diagnosis_facts *f, const char *key,
			   const char *text);			   /* reads "cpu" and "program" */
void diagnosis_series(struct diagnosis_facts *f, const char *key); /* a series that the run has */

struct diagnosis_input {
	const struct diagnosis_facts *facts;
	const struct steps *steps;
	const struct step_time_step *rows; /* of steps_take; warm-up is skipped */
	const struct step_time *pace;      /* of these */
	struct system_stats *vitals;        /* NULL: no system statistics */
};

/* Diagnoses a run. ERR_NOMEM; ERR_USAGE: no counted steps, or none with phases. */
int diagnosis_run(const struct diagnosis_input *in, struct bottleneck_report *ret, struct err *err);

#endif
