/* workload.h: what a run is about: which model in which size, on which data. Flags come first, then the data, then the
 * model's own defaults. Knows nothing of ranks, backends and steps. */
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
	struct dataset_norm norm; /* in this run: the set's own, until flags or the weights' file say otherwise */
};

/* Finds the model, opens the folder of --data-path, the batch of --batch-from (NULL: none, borrowed) or random samples
 * of the kind that the model reads, and checks that data and flags fit. The last one to write *cfg: what flags left
 * open becomes what data and model say. */
int workload_open(struct workload *ret, struct run_config *cfg, const struct batch_file *batch, struct err *err);
void workload_close(struct workload *s); /* a zeroed struct is fine */

bool workload_reads_words(const struct workload *s); /* of a language model */

#endif
