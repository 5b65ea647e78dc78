/* roof.h: what this rank's threads can reach, all ranks at work: operations of a large matrix product, and bytes moved
 * by working set. */
#ifndef DPT_TOOLS_ROOF_H
#define DPT_TOOLS_ROOF_H

#include "trainer/run/engine.h"

enum { ROOF_SIZES = 6 };

struct roof {
	double flops;             /* a second, in the type of the run */
	double bytes[ROOF_SIZES]; /* working sets, rising */
	double rate[ROOF_SIZES];  /* bytes a second that the best of simple operations reads and writes there, or
				   * in a larger set: falling */
};

/* Collective. */
int roof_measure(struct roof *ret, const struct engine *e, struct err *err);

double roof_rate(const struct roof *r, double bytes); /* at that working set, between the measured ones */

#endif
