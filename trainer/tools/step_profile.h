/* step_profile.h: `dptrain bench --profile op|node|block`: where the time of measured steps went, beside what bounds
 * it. */
#ifndef DPT_TOOLS_STEP_PROFILE_H
#define DPT_TOOLS_STEP_PROFILE_H

#include "trainer/tools/curve.h"
#include "trainer/tools/roof.h"

struct profile_row { /* in one step of this rank */
	char name[80];
	const char *impl; /* of the kernels; "": they have none, or several */
	const char *op, *dtype; /* of its last node: of all of them, by node */
	int calls;
	double seconds;
	double flops; /* as PyTorch's counter has them */
	double work;  /* operations that are made: without what is masked, with what is made again, and fewer where the
		       * implementation needs fewer (Winograd) */
	double bytes; /* of operands, each read or written once a call; of tables the rows that are looked up */
	double roof_s; /* what the calls would take at the roof */
	bool by_flops; /* more of that is operations than bytes */
};

struct profile {
	struct profile_row *rows; /* the slowest first */
	size_t n;
	struct roof roof;
	struct curve_point curve[CURVE_POINTS];
	int n_curve;
};

/* Collective. Of the nodes that ran since exec_profile, in `steps` steps, as --profile says. */
int profile_make(struct profile *ret, const struct engine *e, int64_t steps, struct err *err);
void profile_done(struct profile *p);

#endif
