/* planning.h: from the workload of a run to its schedule, its programs and their plan. Allocates no memory for
 * tensors. */
#ifndef DPT_PROGRAM_PLANNING_H
#define DPT_PROGRAM_PLANNING_H

#include "trainer/program/train_schedule.h"
#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

/* Makes schedule and programs of r->cfg, with the open backend; needs no other ranks. */
int planning_make(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r,
		  const struct workload *s, struct err *err);

/* The same on every rank: rank 0 first and alone, so that the others use its kernel choices. Collective. */
int planning_together(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r,
		      const struct workload *s, struct err *err);

/* Makes programs that only evaluate s, for batches of these sizes (at most SAMPLER_SHAPES_MAX). */
struct planning_sizes {
	const int64_t *batch;
	int n;
};

int planning_evaluation(struct prepared *ret, const struct rank *r, const struct workload *s,
			const struct planning_sizes *sizes, struct err *err);

#endif
