/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h: the workload of a run: a model with its sizes and a data set. Flags take precedence over the data, the
 * data over the model's defaults. Independent of ranks, backends and steps. */
#ifndef DPT_PROGRAM_WORKLOAD_H
#define DPT_PROGRAM_WORKLOAD_H

#include "trainer/config/config.h"
#include "trainer/data/dataset.h"
#include "trainer/models/models.h"
#include "trainer/weights/batch_file.h"

struct workload {
	const struct model *model;
	struct model_config config;
	struct dataset *data;
	struct dataset_norm norm; /* used by this run: the set's, unless flags or the weights' file set another */
};

/* Finds the model, opens the folder of --data-path, the batch of --batch-from (NULL: none, borrowed) or random samples
 * of the kind that the model reads, and checks that data and flags fit. Writes *cfg for the last time: flags that were
 * not given get their values from data and model. peers: see struct dataset_opts; NULL: none. */
int workload_open(struct workload *ret, struct run_config *cfg, const struct batch_file *batch, struct peers *peers,
		  struct err *err);
void workload_close(struct workload *s); /* accepts a zeroed struct */

bool workload_reads_words(const struct workload *s); /* true: a language model */

#endif
