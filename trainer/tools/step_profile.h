/* SPDX-License-Identifier: Apache-2.0 */
/* step_profile.h: `dptrain bench --profile op|node|block`: time of measured steps, and the roofline that limits it. */
#ifndef DPT_TOOLS_STEP_PROFILE_H
#define DPT_TOOLS_STEP_PROFILE_H

#include "trainer/run/engine.h"

/* ---- roof.c ----
 * Measures this rank's threads while all ranks work: the roofline (FLOP/s of a large matrix product, bandwidth by
 * working set), and the curves of a hardware file. */

enum { ROOF_SIZES = 6 };

struct roof {
	double flops;		  /* FLOP/s, in the type of the run */
	double bytes[ROOF_SIZES]; /* working sets, ascending */
	double rate[ROOF_SIZES];  /* best bytes per second there or in a larger set: descending */
};

/* Collective call. */
int roof_measure(struct roof *ret, const struct engine *e, struct err *err);

double roof_rate(const struct roof *r, double bytes); /* interpolated between the measured working sets */

enum { CURVE_POINTS = 18 };

struct curve_point {
	const char *op; /* allreduce, all_gather, reduce_scatter */
	double bytes;	/* size of the whole buffer */
	double seconds; /* median; of the slowest rank */
	int ranks;
	const char *transport; /* transport of the communicator */
};

/* Collective call. *ret_n is 0 for one rank, and for a device whose memory the host's communicators cannot access. */
int curve_measure(struct curve_point ret[CURVE_POINTS], int *ret_n, const struct engine *e, struct err *err);

/* Measures the FLOP/s of a large square product on this rank's threads, in the type of the run; NAN on devices. */
int bench_matmul(double *ret, const struct engine *e, struct err *err);

/* ---- step_profile.c ---- */

struct bench_op { /* all nodes of one op, in one step of this rank */
	const char *name;
	int nodes;
	double seconds, flops;
};

struct bench_ops {
	struct bench_op op[OP_COUNT]; /* the slowest first; only ops with nodes */
	int n;
	double product_seconds; /* time of ops with FLOPs: matrix products, convolutions, attention */
	double flops;
};

/* Collects the nodes that ran since exec_profile, in `steps` steps. */
void bench_ops_collect(struct bench_ops *ret, const struct engine *e, int64_t steps);

struct profile_row { /* in one step of this rank */
	char name[80];
	const char *impl;	/* implementation of the kernels; "": none, or several */
	const char *op, *dtype; /* op and type of its last node; with --profile node, of the only one */
	int calls;
	double seconds;
	double flops;  /* as PyTorch's counter counts them */
	double work;   /* operations actually made: without masked ones, with recomputed ones, and fewer if the
			* implementation needs fewer (Winograd) */
	double bytes;  /* operands, each read or written once per call; of embeddings only the rows read */
	double roof_s; /* seconds of the calls at the roofline */
	bool by_flops; /* operations limit it, not bytes */
};

struct profile {
	struct profile_row *rows; /* the slowest first */
	size_t n;
	struct roof roof;
	struct curve_point curve[CURVE_POINTS];
	int n_curve;
};

/* Collective call. Profiles the nodes that ran since exec_profile, in `steps` steps; --profile selects the rows. */
int profile_make(struct profile *ret, const struct engine *e, int64_t steps, struct err *err);
void profile_done(struct profile *p);

#endif
