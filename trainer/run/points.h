/* points.h: what an evaluation and an epoch come to, as points of the run's series. Knows neither who records them nor
 * who chooses a checkpoint by them. */
#ifndef DPT_RUN_POINTS_H
#define DPT_RUN_POINTS_H

#include "trainer/config/series.h"
#include "trainer/run/evaluate.h"

#define POINTS_MAX 8

struct epoch_summary {
	int64_t epoch;
	double train_loss, seconds, samples_per_s;
	bool evaluated;
	struct evaluation val;
};

struct points {
	int64_t at; /* step or epoch, as the series are numbered */
	int n;
	struct {
		enum series_id id;
		double value;
	} point[POINTS_MAX];
};

/* words: of a language model. */
struct points points_of_evaluation(const struct evaluation *v, bool words, int64_t step); /* of --eval-steps */
struct points points_of_epoch(const struct epoch_summary *s, bool words);

/* The value of the series with that key; false: none of these points is of it. */
bool points_find(const struct points *p, const char *key, double *ret);

#endif
