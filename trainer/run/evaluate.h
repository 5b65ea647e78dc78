/* evaluate.h: evaluates the whole evaluation set, each rank its part. Collective. */
#ifndef DPT_RUN_EVALUATE_H
#define DPT_RUN_EVALUATE_H

#include "trainer/run/engine.h"

struct evaluation {
	double loss, top1, top5; /* top1, top5 in percent */
	int64_t count;
	double seconds;
	bool stopped; /* the job was asked to end: the results are not of the whole set */
};

/* outputs: NULL, or room for the logits of every sample, [n_samples, evaluate_outputs] f64, zeroed; complete on every
 * rank. */
int evaluate_run(struct engine *e, double *outputs, struct evaluation *ret, struct err *err);
int64_t evaluate_outputs(const struct engine *e); /* number of logits of one sample */

/* Evaluates again; rank 0 writes the logits of every sample. */
int evaluate_save_outputs(struct engine *e, const char *path, struct err *err);

/* Copies rank 0's running statistics to all ranks (nothing to do with --sync-bn or one rank). */
int evaluate_share_stats(struct engine *e, struct err *err);

#endif
