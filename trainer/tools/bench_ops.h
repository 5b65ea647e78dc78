/* bench_ops.h: time of measured steps by op, and the speed of a matrix product on this machine. */
#ifndef DPT_TOOLS_BENCH_OPS_H
#define DPT_TOOLS_BENCH_OPS_H

#include "trainer/run/engine.h"

struct bench_op { /* all nodes of one op, in one step of this rank */
	const char *name;
	int nodes;
	double seconds, flops;
};

struct bench_ops {
	struct bench_op op[OP_COUNT]; /* the slowest first; only ops with nodes */
	int n;
	double product_seconds; /* of ops with FLOPs: matrix products, convolutions, attention */
	double flops;
};

/* Collects the nodes that ran since exec_profile, in `steps` steps. */
void bench_ops_collect(struct bench_ops *ret, const struct engine *e, int64_t steps);

/* Measures the FLOP/s of a large square product on this rank's threads, in the type of the run; NAN on devices. */
int bench_matmul(double *ret, const struct engine *e, struct err *err);

#endif
