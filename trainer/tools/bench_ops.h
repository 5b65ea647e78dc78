/* bench_ops.h: where the time of measured steps went, op by op, and what a matrix product reaches on this machine. */
#ifndef DPT_TOOLS_BENCH_OPS_H
#define DPT_TOOLS_BENCH_OPS_H

#include "trainer/run/engine.h"

struct bench_op { /* all nodes of one op, in one step of this rank */
	const char *name;
	int nodes;
	double seconds, flops;
};

struct bench_ops {
	struct bench_op op[OP_COUNT]; /* the slowest first; those that took no part are left out */
	int n;
	double product_seconds; /* of ops that count their operations: matrix products, convolutions, attention */
	double flops;
};

/* Of the nodes that ran since exec_profile, in `steps` steps. */
void bench_ops_collect(struct bench_ops *ret, const struct engine *e, int64_t steps);

/* Floating-point operations a second of a large square product on this rank's threads, in the type of the run; NAN on
 * devices. */
int bench_matmul(double *ret, const struct engine *e, struct err *err);

#endif
