/* eval_metrics.c: the series of an evaluation and of an epoch. */
#include "trainer/run/eval_metrics.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void add_series_point(struct eval_metrics *p, enum series_id id, double value)
{
	assert(p->n < EVAL_METRICS_MAX);
	p->point[p->n].id = id;
	p->point[p->n++].value = value;
}

struct eval_metrics eval_metrics_of_evaluation(const struct evaluation *v, bool words, int64_t step)
{
	struct eval_metrics p = { .at = step };

	add_series_point(&p, SERIES_val_loss, v->loss);
	if (words)
		add_series_point(&p, SERIES_val_perplexity, exp(v->loss));
	else
		add_series_point(&p, SERIES_val_top1, v->top1);
	add_series_point(&p, SERIES_val_seconds, v->seconds);
	return p;
}

struct eval_metrics eval_metrics_of_epoch(const struct epoch_summary *s, bool words)
{
	struct eval_metrics p = { .at = s->epoch };

	add_series_point(&p, SERIES_epoch_train_loss, s->train_loss);
	add_series_point(&p, SERIES_epoch_seconds, s->seconds);
	add_series_point(&p, SERIES_epoch_samples_per_s, s->samples_per_s);
	if (!s->evaluated)
		return p;
	add_series_point(&p, SERIES_epoch_val_loss, s->val.loss);
	add_series_point(&p, SERIES_epoch_eval_seconds, s->val.seconds);
	if (words)
		return p;
	add_series_point(&p, SERIES_epoch_top1, s->val.top1);
	add_series_point(&p, SERIES_epoch_top5, s->val.top5);
	return p;
}

bool eval_metrics_find(const struct eval_metrics *p, const char *key, double *ret)
{
	for (int i = 0; i < p->n; i++) {
		if (strcmp(series_get(p->point[i].id)->key, key) != 0)
			continue;
		*ret = p->point[i].value;
		return true;
	}
	return false;
}
