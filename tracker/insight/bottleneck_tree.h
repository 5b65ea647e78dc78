/* bottleneck_tree.h: what makes a run slow: the share of its time that each leaf of schema/insight/leaves.def takes, the evidence
 * for it, what to do next and the gain to expect.
 *
 * A phase counts by the rank that the others wait for. What cannot be told for want of series gets the name of its
 * branch. Numbers that are not known are NaN. */
#ifndef DPT_INSIGHT_BOTTLENECK_TREE_H
#define DPT_INSIGHT_BOTTLENECK_TREE_H

#include "tracker/base/buf.h"
#include "tracker/insight/step_time.h"

#define BOTTLENECK_GAIN_LEAST 0.05 /* a leaf whose removal brings less is none */

enum bottleneck_leaf {
#define LEAF(name, branch, usual, action) BOTTLENECK_##name,
#include "schema/insight/leaves.def"
#undef LEAF
	BOTTLENECK_LEAVES
};

/* Means a step of one rank. */
struct bottleneck_rank {
	int rank;
	double seconds;
	double phase[STEP_TIME_PHASES];
};

struct bottleneck_run {
	const struct step_time_step *steps; /* that count */
	size_t n;
	const struct bottleneck_rank *ranks;
	size_t n_ranks;
	/* the configuration */
	double workers, threads, local_world, cores, batch_size, parameters, bucket_cap_mb,
		eval_steps, save_steps;
	double nodes; /* operators that a step calls */
	/* seconds a step, means: comm_total of the rank that is waited for; evaluation, checkpoints (copying and
	 * waiting) */
	double comm_total, evaluation, checkpoint;
	double bare;       /* seconds of a step on a batch that is there already, with nothing beside or before it */
	double saving_cpu; /* seconds a step on a core, of the thread that writes checkpoints */
	/* the loader, a step: seconds of its threads, of these on a core, batches ready */
	double load, load_cpu, ready;
	/* shares of the wall time: compute threads waiting for a core; cores that other programs took; that the machine
	 * below took (steal); in which the control group was throttled; waiting for memory */
	double run_wait, taken, steal, throttled, memory_wait;
	double major_faults; /* a step */
	double clock;        /* how much longer than at best a fixed loop takes: 1 is the best */
};

struct bottleneck_finding {
	const char *leaf; /* or its branch */
	double share, low, high; /* of the wall time, that its removal would save; low and high NaN: too few steps */
	double gain;             /* the run would be so many times as fast; NaN: the share does not tell */
	char evidence[240];
	const char *usual;
	char action[240];
	char flags[80]; /* of the action, as dptrain takes them; "": there is none to be tried */
	char sentence[160]; /* leaf, share, interval and gain in words, wherever the finding is shown */
};

struct bottleneck_report {
	const char *verdict; /* the first finding's leaf, or "healthy" */
	struct bottleneck_finding findings[BOTTLENECK_LEAVES];
	size_t n;            /* largest share first */
	char sentence[160];  /* the first finding's, or that there is none */
	char bound[160];     /* what bounds the rest */
};

/* A bottleneck_run in which nothing is known. */
struct bottleneck_run bottleneck_unknown(void);

/* ERR_NOMEM; ERR_USAGE: no steps. */
int bottleneck_judge(const struct bottleneck_run *run, struct bottleneck_report *ret, struct err *err);

/* The report in lines for people. */
void bottleneck_print(struct buf *out, const struct bottleneck_report *r);

#endif
