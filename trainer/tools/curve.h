/* curve.h: seconds of collectives between this run's ranks, by size: the curves of a hardware file. */
#ifndef DPT_TOOLS_CURVE_H
#define DPT_TOOLS_CURVE_H

#include "trainer/run/engine.h"

enum { CURVE_POINTS = 18 };

struct curve_point {
	const char *op;	 /* allreduce, all_gather, reduce_scatter */
	double bytes;	 /* of the whole */
	double seconds;	 /* median; of the slowest rank */
	int ranks;
	const char *transport; /* of the communicator */
};

/* Collective call. *ret_n is 0 for one rank, and for a device whose memory the host's communicators cannot access. */
int curve_measure(struct curve_point ret[CURVE_POINTS], int *ret_n, const struct engine *e, struct err *err);

#endif
