/* step_time.h: what a sample of one run costs: wall time by phase, of steps and of what lies between them, warm-up left out.
 */
#ifndef DPT_INSIGHT_STEP_TIME_H
#define DPT_INSIGHT_STEP_TIME_H

#include <stddef.h>
#include <stdint.h>

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
	double samples;
	double seconds; /* the sum of phase */
	double phase[STEP_TIME_PHASES];
};

struct step_time {
	size_t steps, warmup; /* that count; that were left out before them */
	double samples;       /* of the steps that count */
	double seconds;       /* a sample: all seconds divided by all samples. NaN without steps */
	double phase[STEP_TIME_PHASES]; /* of these; they sum to seconds */
	double variance;      /* of log(seconds), as the steps of this one run tell it; NaN: too few */
	double effective;     /* independent steps that would say as much */
	double block;         /* mean block length of the bootstrap */
};

/* settled: the last step at which the loader's threads changed, INT64_MIN for none. ERR_NOMEM. */
int step_time_of(const struct step_time_step *steps, size_t n, int64_t settled, struct step_time *ret, struct err *err);

#endif
