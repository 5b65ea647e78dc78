/* eval_metrics.h: the results of an evaluation and of an epoch as points of the run's series. Does not know who records
 * them or who chooses a checkpoint by them. */
#ifndef DPT_RUN_EVAL_METRICS_H
#define DPT_RUN_EVAL_METRICS_H

#include "trainer/config/config.h"
#include "trainer/run/evaluate.h"

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
					       int64_t step); /* of --eval-steps */
struct eval_metrics eval_metrics_of_epoch(const struct epoch_summary *s, bool words);

/* Finds the point of the series with that key; false: none. */
bool eval_metrics_find(const struct eval_metrics *p, const char *key, double *ret);

#endif
