/* SPDX-License-Identifier: Apache-2.0 */
/* timing.h: the timed steps of a stored run, input of comparison and diagnosis. */
#ifndef DPT_NATIVE_TIMING_H
#define DPT_NATIVE_TIMING_H

#include "tracker/insight/goal.h"
#include "tracker/insight/run_change.h"
#include "tracker/insight/steps.h"
#include "web/api/api.h"

struct timing {
	struct steps *steps;
	struct step_time_step *rows; /* in order, including warm-up */
	size_t n;		     /* 0: no step can be timed */
	struct step_time pace;
};

/* Reads the steps. by_step: one step counts as one sample. Returns 0, or a negative value after failing the call; call
 * timing_done in either case. */
int timing_read(struct call *c, const struct query_run *run, bool by_step, struct timing *ret);
void timing_done(struct timing *t);

double timing_batch(const struct query_run *run); /* samples of a step; 0: the run does not say it */
double timing_param(const struct query_run *run, const char *key, double fallback); /* a number above 0 */

/* ---- why_read.c ----
 * Reads runs, their repeats and the cost of a sample of each from the store. */

/* A named run and its repeats. */
struct why_side {
	const struct query_run *run; /* the one that the request named */
	const char **repeats;	     /* ids of its repeats */
	struct step_time *paces;     /* the first one belongs to run `first` */
	double *metrics;	     /* best value of the goal of each, NaN if missing */
	bool by_step;		     /* as of all sides */
	size_t n;
};

struct why {
	struct why_side *sides;
	size_t n;
	struct run_change_pool pool; /* further groups of equal runs on the same host */
	size_t reads;		     /* number of runs read besides the named ones */
	struct goal_choice goal;     /* a metric that all named runs have */
	bool by_step;		     /* seconds are per step: a named run does not say its batch size */
};

/* Returns true for params in which repeats may differ: name, seed, and random inputs derived from it. */
bool why_is_own(const struct query_kv *param);

/* ids: at least two. Returns 0, or a negative value after failing the call. Everything lives in the call's arena. */
int why_read(struct call *c, const char *const *ids, size_t n, struct why *ret);

/* Mean seconds per sample of a side's runs: of a phase (enum step_time_phase), or in total (STEP_TIME_PHASES). */
double why_mean(const struct why_side *s, int phase);

#endif
