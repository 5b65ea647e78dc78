/* SPDX-License-Identifier: Apache-2.0 */
/* timing.h: the timed steps of a stored run, input of comparison and diagnosis. */
#ifndef DPT_NATIVE_TIMING_H
#define DPT_NATIVE_TIMING_H

#include "tracker/insight/steps.h"
#include "web/api/api.h"

struct timing {
	struct steps *steps;
	struct step_time_step *rows; /* in order, including warm-up */
	size_t n;               /* 0: no step can be timed */
	struct step_time pace;
};

/* Reads the steps. Returns 0, or a negative value after failing the call; call timing_done in either case. */
int timing_read(struct call *c, const struct query_run *run, struct timing *ret);
void timing_done(struct timing *t);

double timing_param(const struct query_run *run, const char *key, double fallback); /* a number above 0 */

#endif
