/* SPDX-License-Identifier: Apache-2.0 */
/* bottleneck_tree.h: finds what makes a run slow: the share of its time that each leaf of the bottleneck tree
 * (schema/insight/leaves.def) takes, the evidence for it, the next action and the expected gain.
 *
 * A phase counts by the rank that the others wait for. Without the series that tell leaves apart, a finding has the
 * name of their branch. Unknown numbers are NaN. */
#ifndef DPT_INSIGHT_BOTTLENECK_TREE_H
#define DPT_INSIGHT_BOTTLENECK_TREE_H

#include "tracker/base/buf.h"
#include "tracker/insight/step_time.h"

#define BOTTLENECK_GAIN_LEAST 0.05 /* leaves with a smaller gain are not reported */
/* A rank is a straggler if its own time (a step without waiting for others) exceeds that of the usual rank, the lower
 * median, by this share. The page has the same rule (web/ui/src/base/heat.ts). */
#define BOTTLENECK_STRAGGLER_EXCESS 0.05

enum bottleneck_leaf {
#define LEAF(name, branch, title, usual, action) BOTTLENECK_##name,
#define BRANCH(name, title)
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
	BOTTLENECK_LEAVES
};

/* Means per step of one rank. */
struct bottleneck_rank {
	int rank;
	double seconds;
	double phase[STEP_TIME_PHASES];
};

struct bottleneck_run {
	const struct step_time_step *steps; /* the counted steps */
	size_t n;
	const struct bottleneck_rank *ranks;
	size_t n_ranks;
	/* the configuration */
	double workers, threads, local_world, cores, batch_size, parameters, bucket_cap_mb, eval_steps, save_steps;
	double grad_accum_steps;
	bool workers_auto, recomputes_all; /* -j auto, --activation-checkpointing full */
	double nodes; /* operators that a step calls */
	/* Mean seconds per step: comm_total of the rank that the others wait for; evaluation; checkpoints (copying and
	 * waiting). */
	double comm_total, evaluation, checkpoint;
	double cached;	   /* seconds of a cached step: without data loading or pauses */
	double saving_cpu; /* seconds per step on a core, of the thread that writes checkpoints */
	/* The loader, per step: seconds of its threads, their seconds on a core, batches ready. */
	double load, load_cpu, ready;
	/* Shares of the wall time: compute threads waiting for a core; cores used by other programs; steal time;
	 * throttled by the control group; waiting for memory. */
	double run_wait, taken, steal, throttled, memory_wait;
	double major_faults; /* per step */
	double clock;	     /* slowdown of a fixed loop against the best clock; 1: none */
};

struct bottleneck_finding {
	const char *leaf;	 /* or its branch */
	double share, low, high; /* of the wall time that removing it would save; low and high NaN: too few steps */
	double gain;		 /* speed-up factor without it; NaN: unknown from the share */
	char evidence[240];
	const char *usual;
	char action[240];
	char flags[80];	    /* flags of dptrain for the action; "": none can be tried */
	char sentence[160]; /* title, share, interval and gain in words, for every display of the finding */
};

struct bottleneck_report {
	const char *verdict; /* the first finding's leaf, or "healthy" */
	struct bottleneck_finding findings[BOTTLENECK_LEAVES];
	size_t n;	    /* largest share first */
	char sentence[160]; /* the first finding's, or "healthy: …" */
	char bound[160];    /* the composition of the computing time */
};

/* Returns a bottleneck_run with all numbers unknown. */
struct bottleneck_run bottleneck_unknown(void);

/* Diagnoses a run. ERR_NOMEM; ERR_USAGE: no steps. */
int bottleneck_judge(const struct bottleneck_run *run, struct bottleneck_report *ret, struct err *err);

/* Appends the report as lines of text. */
void bottleneck_print(struct buf *out, const struct bottleneck_report *r);

#endif
