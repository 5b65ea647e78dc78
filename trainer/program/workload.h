/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h: the workload of a run: a model with its sizes and a data set. Flags take precedence over the data, the
 * data over the model's defaults. Independent of ranks, backends and steps. */
#ifndef DPT_PROGRAM_WORKLOAD_H
#define DPT_PROGRAM_WORKLOAD_H

#include "trainer/config/lr_schedule.h"
#include "trainer/data/loader/sampler.h"
#include "trainer/models/models.h"
#include "trainer/weights/batch_file.h"

struct workload {
	const struct model *model;
	struct model_config config;
	struct dataset *data;
	char *class_names; /* JSON list, by the model's labels; owned; NULL: unknown */
	/* What names the data: of each split, for records, and of all, for --resume. From workload_identify; before it
	 * identity is the set's hash and digest is "". */
	char digest[SPLIT_COUNT][65], identity[64];
	char base_hash[65];	  /* of the weights that LoRA adapts: rank 0 (trainer/state/initial.h); "": none */
	struct dataset_norm norm; /* used by this run: the set's, unless flags or the weights' file set another */
};

/* Finds the model, opens the folder of --data-path, the batch of --batch-from (NULL: none, borrowed) or random samples
 * of the kind that the model reads, and checks that data and flags fit. Writes *cfg for the last time: flags that were
 * not given get their values from data and model. peers: see struct dataset_opts; NULL: none. */
int workload_open(struct workload *ret, struct run_config *cfg, const struct batch_file *batch, struct peers *peers,
		  struct err *err);
void workload_close(struct workload *s); /* accepts a zeroed struct */

/* What the flags say of the set, whatever the model and the job; it borrows from cfg. */
struct dataset_opts workload_data_opts(const struct run_config *cfg);

/* Logs the warnings of the data's account (dataset_tell). One rank of a job does it. */
void workload_warn(struct dataset *d);

/* Names the content of the data, from every sample with --hash-content. Slow, so one rank calls it. */
int workload_identify(struct workload *s, const struct run_config *cfg, struct err *err);

bool workload_reads_words(const struct workload *s); /* true: a language model */

/* ---- train_schedule.c ----
 * The schedule of a training run: the order of samples, the number of steps and their learning rate, whether it
 * evaluates and saves. Depends on configuration and data alone. */

struct train_schedule {
	struct sampler train, eval;
	struct lr_schedule lr;
	int64_t steps_per_epoch; /* INT64_MAX: endless */
	int64_t steps_total;	 /* INT64_MAX: no limit */
	int64_t steps_end;	 /* last step of this process; less than steps_total with --stop-epoch */
	bool evaluates;		 /* endless sets are evaluated only on request */
	bool saves;		 /* checkpoints are written, at least at the end */
};

/* ERR_USAGE when the configuration asks for something that the set cannot provide. */
int train_schedule_make(struct train_schedule *ret, const struct run_config *cfg, const struct dataset *d,
			struct err *err);

/* Returns the index in the set of the training sample at a position (from 0) in the order of an epoch (from 0).
 * Does not know of samples that replaced unreadable ones. */
int64_t train_schedule_sample(const struct train_schedule *c, int64_t epoch, int64_t position);

/* Fails when --save-best names a series that the run will never write. */
int train_schedule_check_best(const struct train_schedule *c, const struct run_config *cfg, const struct dataset *d,
			      struct err *err);

#endif
