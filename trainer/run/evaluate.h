/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.h: evaluates the whole evaluation set, each rank its part (collective); the results of an evaluation and of
 * an epoch as points of the run's series. Does not know who records them or who chooses a checkpoint by them. */
#ifndef DPT_RUN_EVALUATE_H
#define DPT_RUN_EVALUATE_H

#include "trainer/run/engine.h"

struct evaluation {
	double loss, top1, top5; /* top1, top5 in percent; top5 is NaN with 5 classes or fewer */
	int64_t count;
	double seconds;
	bool stopped; /* the job was asked to end: the results are not of the whole set */
};

/* outputs: NULL, or room for the logits of every sample, [n_samples, evaluate_outputs] f64, zeroed; complete on every
 * rank. */
int evaluate_run(struct engine *e, double *outputs, struct evaluation *ret, struct err *err);

/* Evaluates again; rank 0 writes the logits of every sample. */
int evaluate_save_outputs(struct engine *e, const char *path, struct err *err);

/* Copies rank 0's running statistics to all ranks (nothing to do with --sync-bn or one rank). */
int evaluate_share_stats(struct engine *e, struct err *err);

#define EVAL_METRICS_MAX 8

struct epoch_summary {
	int64_t epoch;
	double train_loss, seconds, samples_per_s;
	bool evaluated;
	struct evaluation val;
};

struct eval_metrics {
	int64_t at; /* step or epoch, as the series is numbered */
	int n;
	struct {
		enum series_id id;
		double value;
	} point[EVAL_METRICS_MAX];
};

/* words: true for a language model. */
struct eval_metrics eval_metrics_of_evaluation(const struct evaluation *v, bool words,
					       int64_t step); /* interval of --eval-steps */
struct eval_metrics eval_metrics_of_epoch(const struct epoch_summary *s, bool words);

/* Finds the point of the series with that key; false: none, or a loss among the points is not finite: then nothing is
 * best. */
bool eval_metrics_find(const struct eval_metrics *p, const char *key, double *ret);

#endif
