/* planning.h: from what a run is about to its course, its programs and their plan. Takes no memory for tensors. */
#ifndef DPT_PROGRAM_PLANNING_H
#define DPT_PROGRAM_PLANNING_H

#include "trainer/program/train_schedule.h"
#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

/* Course and programs of r->cfg, with the backend that is open; ranks need not meet. */
int planning_make(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r, const struct workload *s,
		  struct err *err);

/* The same on every rank: rank 0 first and alone, so that the others find its kernels chosen. Collective. */
int planning_together(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r, const struct workload *s,
		      struct err *err);

/* Programs that evaluate s alone, for batches of these sizes (at most SAMPLER_SHAPES_MAX). */
struct planning_sizes {
	const int64_t *batch;
	int n;
};

int planning_evaluation(struct prepared *ret, const struct rank *r, const struct workload *s,
			const struct planning_sizes *sizes, struct err *err);

#endif
