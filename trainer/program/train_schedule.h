/* train_schedule.h: the course of a run: in which order samples come, how many steps there are and at which learning rate,
 * whether it evaluates and saves. Follows from configuration and data alone. */
#ifndef DPT_PROGRAM_TRAIN_SCHEDULE_H
#define DPT_PROGRAM_TRAIN_SCHEDULE_H

#include "trainer/config/config.h"
#include "trainer/config/lr_schedule.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader/sampler.h"

struct train_schedule {
	struct sampler train, eval;
	struct lr_schedule lr;
	int64_t steps_per_epoch; /* INT64_MAX when endless */
	int64_t steps_total;	 /* INT64_MAX: no limit */
	int64_t steps_end;	 /* where this process ends; below steps_total where --stop-epoch says so */
	bool evaluates;		 /* sets without an end are only evaluated when somebody asks for it */
	bool saves;		 /* checkpoints are written, at the end if not before */
};

/* ERR_USAGE when the configuration asks for what such a set has not. */
int train_schedule_make(struct train_schedule *ret, const struct run_config *cfg, const struct dataset *d, struct err *err);

/* The number, within the set, of the training sample at a position (from 0) of an epoch's (from 0) order; -1: out of
 * memory. A sample that could not be read has left its place to another one, which this does not know. */
int64_t train_schedule_sample(const struct train_schedule *c, int64_t epoch, int64_t position);

/* A series that the run will never write cannot choose the best checkpoint. */
int train_schedule_check_best(const struct train_schedule *c, const struct run_config *cfg, const struct dataset *d, struct err *err);

#endif
