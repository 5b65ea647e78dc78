/* judge.h: from what a run recorded (params, steps, what its machines said) to the report of the tree: the same whether
 * a server's store or a folder's journals were read. */
#ifndef DPT_INSIGHT_JUDGE_H
#define DPT_INSIGHT_JUDGE_H

#include <stdbool.h>

#include "tracker/insight/steps.h"
#include "tracker/insight/tree.h"
#include "tracker/insight/vitals.h"

/* Of the run's configuration; NaN: not known. */
struct judge_facts {
	double workers, threads, batch_size, parameters, bucket_cap_mb; /* as the params of those names */
	double global_batch_size, steps_per_epoch, eval_steps, save_steps;
	double cores;       /* of a machine */
	double nodes;       /* of the program that a step runs */
	double local_world; /* ranks on the first machine */
	int world;          /* ranks, at least 1 */
	bool evaluates;     /* it has val/seconds or epoch/eval_seconds */
};

struct judge_facts judge_unknown(void);

void judge_param(struct judge_facts *f, const char *key, const char *value); /* of the params those above alone */
void judge_environment(struct judge_facts *f, const char *key, const char *text); /* of "cpu" and "program" */
void judge_series(struct judge_facts *f, const char *key); /* a series that the run has */

struct judge_input {
	const struct judge_facts *facts;
	const struct steps *steps;
	const struct pace_step *rows; /* of steps_take; those behind the warm-up count */
	const struct pace *pace;      /* of these */
	struct vitals *vitals;        /* NULL: none */
};

/* ERR_NOMEM; ERR_USAGE: no steps that count, or none that has phases. */
int judge_run(const struct judge_input *in, struct tree_report *ret, struct err *err);

#endif
