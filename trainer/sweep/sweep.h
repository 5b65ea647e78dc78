/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h: `dptrain sweep FILE`: trials of many settings, as processes. There is no service: the state is a run of the
 * sweep's name, next to the runs of its trials, and the journals of these. */
#ifndef DPT_SWEEP_SWEEP_H
#define DPT_SWEEP_SWEEP_H

#include <jansson.h>
#include <sys/types.h>

#include "trainer/config/config.h"

/* Runs a sweep, or continues it. Returns 0, 130 if it was interrupted, or a negative code. program: argv[0]. */
int sweep_main(const struct run_config *cfg, const char *program, struct err *err);

/* ---- sweep_plan.c ----
 * What a sweep will try: its file, the settings of trial i, and which trial runs next. Pure: the same file gives the
 * same trials; no processes, and no file but the sweep's own. */

/* The search space. The settings of trial i depend only on the file and the seed, so a continued sweep has the same
 * ones. */
struct search_space;

/* parameters: {FLAG: {"values": [...]} or {"min", "max", "distribution": "uniform" | "log_uniform_values" |
 * "int_uniform"}}; without a distribution two integers mean int_uniform, other numbers uniform. FLAG as on dptrain's
 * command line, without the dashes. Borrows parameters; space_free frees *ret. ERR_USAGE names the parameter. */
int space_new(struct search_space **ret, json_t *parameters, uint64_t seed, struct err *err);
void space_free(struct search_space *s); /* NULL is fine */

size_t space_params(const struct search_space *s);
const char *space_name(const struct search_space *s, size_t param);
size_t space_grid(const struct search_space *s); /* combinations of all values; 0: a parameter has a range */

#define SPACE_VALUE_BYTES 256

/* Writes one value of a trial as on a command line; returns true if it is a boolean, "true" or "false". grid: the
 * trial-th combination, the last parameter changes fastest; else the value is drawn. */
bool space_value(const struct search_space *s, bool grid, size_t trial, size_t param, char *to);

/* Selects the next trial of a sweep and its length: asynchronous successive halving (Li et al., "A System for
 * Massively Parallel Hyperparameter Tuning", 2020, algorithm 2). A trial climbs rungs. Of the trials that reached a
 * rung, the best 1/eta are promoted as soon as enough of them are known. With one rung every trial runs to its end. */
#define ASHA_RUNGS 20

struct asha_trial {
	int rungs;		  /* number of rungs with a result */
	double value[ASHA_RUNGS]; /* by rung; values that are not finite are the worst */
	bool running, failed;	  /* a failed trial is not promoted, but its results count */
};

struct asha {
	struct asha_trial *trials;
	size_t count;
	int rungs;  /* 1 to ASHA_RUNGS */
	double eta; /* above 1 */
	bool maximize;
};

enum asha_next { ASHA_RUN, ASHA_WAIT, ASHA_DONE };

/* ASHA_RUN: run *ret_trial up to rung *ret_rung. ASHA_WAIT: wait for running trials. Promotions come before new trials:
 * the highest rung first, the best trial first. New trials start in their order. */
enum asha_next asha_next(const struct asha *a, size_t *ret_trial, int *ret_rung);

/* Returns the trial with the best value at the highest rung that has one; a->count: none. */
size_t asha_best(const struct asha *a);

struct sweep_plan {
	json_t *root;
	const char *name, *metric, *experiment; /* experiment NULL: not given */
	json_t *flags;				/* flags of all trials: {FLAG: value} */
	bool grid, maximize;
	size_t trials;
	int rungs;		    /* 1: every trial runs to its end */
	int64_t epochs[ASHA_RUNGS]; /* epoch at which a trial reaches each rung */
	double eta;
	char sha256[65]; /* checksum of everything that determines the settings: all but the flags */
	struct search_space *space;
};

/* Reads the file. ERR_USAGE names the bad member. Call sweep_plan_done also after a failure. */
int sweep_plan_read(struct sweep_plan *ret, const char *path, struct err *err);
void sweep_plan_done(struct sweep_plan *p);

/* ---- trial.c ----
 * One trial of a sweep: its process and its journals. A trial is an ordinary run of dptrain, which resumes from its
 * last checkpoint. */

/* Common to all trials of a sweep. */
struct trial_place {
	const char *runs_dir, *experiment;
	const char *metric; /* the series to optimise */
	const char *best;   /* "max" or "min" of it */
	const char *parent; /* id of the sweep's run */
};

/* The run of a trial; zeroed if it was not started. */
struct trial_known {
	bool begun, tagged; /* tagged: its run names its sweep */
	char id[33];
	char dir[4096];
};

struct trial_taker { /* receives the metric's points */
	void (*take)(void *user, int64_t step, double value);
	void *user;
};

/* Finds the run of a trial and calls take for every visible point of the metric, in the order of the journals. A trial
 * that was not started has none. ERR_USAGE. */
int trial_read(struct trial_known *ret, const struct trial_place *place, const char *name,
	       const struct trial_taker *taker, struct err *err);

/* Tags the run with the id of its sweep, and with which value of the metric is best; a failure is logged. */
void trial_tag(const struct trial_known *known, const struct trial_place *place, const char *name);

/* Starts dptrain with these arguments (with argv[0], up to a NULL) and appends its output to the file log. The child
 * gets SIGTERM when this process ends. Returns the process id, or a negative code. */
pid_t trial_start(char *const argv[], const char *log, struct err *err);

/* Waits until no process writes the log: a killed launcher may have left a trial that has not created its run yet.
 * ERR_BUSY after wait_s seconds. */
int trial_wait(const char *log, double wait_s, struct err *err);

/* Copies the last line of the log; "" for an empty or unreadable one. */
void trial_last_words(const char *log, char *ret, size_t n);

#endif
