/* SPDX-License-Identifier: Apache-2.0 */
/* roof.h: measures this rank's threads while all ranks work: the roofline (FLOP/s of a large matrix product, bandwidth
 * by working set), and the curves of a hardware file. */
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

double roof_rate(const struct roof *r, double bytes); /* interpolated between the measured working sets */

enum { CURVE_POINTS = 18 };

struct curve_point {
	const char *op;	 /* allreduce, all_gather, reduce_scatter */
	double bytes;	 /* size of the whole buffer */
	double seconds;	 /* median; of the slowest rank */
	int ranks;
	const char *transport; /* transport of the communicator */
};

/* Collective call. *ret_n is 0 for one rank, and for a device whose memory the host's communicators cannot access. */
int curve_measure(struct curve_point ret[CURVE_POINTS], int *ret_n, const struct engine *e, struct err *err);

/* Measures the FLOP/s of a large square product on this rank's threads, in the type of the run; NAN on devices. */
int bench_matmul(double *ret, const struct engine *e, struct err *err);

#endif
