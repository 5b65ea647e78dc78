/* SPDX-License-Identifier: Apache-2.0 */
/* step_time.h: the step time of one run: wall time per sample by phase, of the steps and of the time between them,
 * without warm-up, whose length a documented rule determines. */
#ifndef DPT_INSIGHT_STEP_TIME_H
#define DPT_INSIGHT_STEP_TIME_H

#include "tracker/base/err.h"

enum step_time_phase {
#define PHASE(name, help) STEP_TIME_##name,
#include "schema/insight/phases.def"
#undef PHASE
	STEP_TIME_PHASES
};

const char *step_time_phase_name(enum step_time_phase p);

/* One step of the run: of the rank that the others waited for. */
struct step_time_step {
	int64_t step;
	int rank;
	bool by_clock; /* the time between two points of a series, without phase/step */
	double samples;
	double seconds; /* the sum of phase */
	double phase[STEP_TIME_PHASES];
};

struct step_time {
	size_t steps, warmup;		/* counted; skipped as warm-up before them */
	bool by_clock;			/* as of its steps */
	double samples;			/* of the counted steps */
	double seconds;			/* per sample: all seconds divided by all samples. NaN without steps */
	double phase[STEP_TIME_PHASES]; /* parts of seconds, with that sum */
	double variance;		/* of log(seconds), estimated from the steps of this run; NaN: too few */
	double effective;		/* number of independent steps with the same information */
	double block;			/* mean block length of the bootstrap */
};

/* settled: the last step at which the number of loader threads changed, INT64_MIN for none. ERR_NOMEM. */
int step_time_of(const struct step_time_step *steps, size_t n, int64_t settled, struct step_time *ret, struct err *err);

#define WARMUP_BATCH 5 /* values of one median */

/* The rule as text. */
#define WARMUP_RULE                                                                                                    \
	"the first step, steps until the number of loader threads is stable, and what MSER-5 finds on medians of 5 "   \
	"steps in the first half of the run"

/* Returns how many of the n values at the beginning differ from the rest. The cut d, a multiple of WARMUP_BATCH and at
 * most n / 2, minimises the variance of the rest divided by its length (MSER-5, White 1997). It uses medians of
 * batches, so that an occasional slow step is not warm-up. scratch: space for n / WARMUP_BATCH values. With fewer than
 * 8 batches: 0. */
size_t warmup_length(const double *x, size_t n, double *scratch);

#endif
