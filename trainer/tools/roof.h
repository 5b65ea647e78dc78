/* roof.h: the roofline of this rank's threads while all ranks work: FLOP/s of a large matrix product, and bandwidth by
 * working set. */
#ifndef DPT_TOOLS_ROOF_H
#define DPT_TOOLS_ROOF_H

#include "trainer/run/engine.h"

enum { ROOF_SIZES = 6 };

struct roof {
	double flops;             /* FLOP/s, in the type of the run */
	double bytes[ROOF_SIZES]; /* working sets, ascending */
	double rate[ROOF_SIZES];  /* best bytes per second there or in a larger set: descending */
};

/* Collective call. */
int roof_measure(struct roof *ret, const struct engine *e, struct err *err);

double roof_rate(const struct roof *r, double bytes); /* at that working set, between the measured ones */

#endif
