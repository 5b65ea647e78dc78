/* timing.h: the steps of a stored run: what a comparison and a diagnosis begin with. */
#ifndef DPT_NATIVE_TIMING_H
#define DPT_NATIVE_TIMING_H

#include "tracker/insight/steps.h"
#include "web/api/api.h"

struct timing {
	struct steps *steps;
	struct step_time_step *rows; /* in order, warm-up included */
	size_t n;               /* 0: the run has none that can be timed */
	struct step_time pace;
};

/* 0, or negative after failing the call; timing_done in either case. */
int timing_read(struct call *c, const struct query_run *run, struct timing *ret);
void timing_done(struct timing *t);

double timing_param(const struct query_run *run, const char *key, double fallback); /* a number above 0 */
const struct query_metric *timing_metric(const struct query_run *run, const char *key); /* NULL: it has none */

#endif
