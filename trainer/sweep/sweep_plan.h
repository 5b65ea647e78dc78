/* sweep_plan.h: the file of a sweep. */
#ifndef DPT_SWEEP_SWEEP_PLAN_H
#define DPT_SWEEP_SWEEP_PLAN_H

#include "trainer/sweep/asha.h"
#include "trainer/sweep/space.h"

struct sweep_plan {
	json_t *root;
	const char *name, *metric, *experiment; /* experiment NULL: not given */
	json_t *flags;       /* of all trials: {FLAG: value} */
	bool grid, maximize;
	size_t trials;
	int rungs;           /* 1: every trial runs to its end */
	int64_t epochs[ASHA_RUNGS]; /* at which a trial reaches each rung */
	double eta;
	char sha256[65];     /* of everything that determines the settings: all but the flags */
	struct search_space *space;
};

/* Reads the file. ERR_USAGE names the bad member. Call sweep_plan_done also after a failure. */
int sweep_plan_read(struct sweep_plan *ret, const char *path, struct err *err);
void sweep_plan_done(struct sweep_plan *p);

#endif
