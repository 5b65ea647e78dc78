/* run_diagnosis.h: from what a run recorded (params, steps, what its machines said) to the report of the tree: the same whether
 * a server's store or a folder's journals were read. */
#ifndef DPT_INSIGHT_RUN_DIAGNOSIS_H
#define DPT_INSIGHT_RUN_DIAGNOSIS_H

#include <stdbool.h>

#include "tracker/insight/steps.h"
#include "tracker/insight/bottleneck_tree.h"
#include "tracker/insight/system_stats.h"

/* Of the run's configuration; NaN: not known. */
struct diagnosis_facts {
	double workers, threads, batch_size, parameters, bucket_cap_mb; /* as the params of those names */
	double global_batch_size, steps_per_epoch, eval_steps, save_steps;
	double cores;       /* of a machine */
	double nodes;       /* of the program that a step runs */
	double local_world; /* ranks on the first machine */
	int world;          /* ranks, at least 1 */
	bool evaluates;     /* it has val/seconds or epoch/eval_seconds */
};

struct diagnosis_facts diagnosis_unknown(void);

void diagnosis_param(struct diagnosis_facts *f, const char *key, const char *value); /* of the params those above alone */
void diagnosis_environment(struct diagnosis_facts *f, const char *key, const char *text); /* of "cpu" and "program" */
void diagnosis_series(struct diagnosis_facts *f, const char *key); /* a series that the run has */

struct diagnosis_input {
	const struct diagnosis_facts *facts;
	const struct steps *steps;
	const struct step_time_step *rows; /* of steps_take; those behind the warm-up count */
	const struct step_time *pace;      /* of these */
	struct system_stats *vitals;        /* NULL: none */
};

/* ERR_NOMEM; ERR_USAGE: no steps that count, or none that has phases. */
int diagnosis_run(const struct diagnosis_input *in, struct bottleneck_report *ret, struct err *err);

#endif
