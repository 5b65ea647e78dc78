/* metric.c: converts a stored summary to a metric of a run. Knows no database. */
#include "web/store/read/metric.h"

#include <string.h>

void metric_of(struct query_metric *m, const char *key, const struct sum *s)
{
	*m = (struct query_metric){
		.key = key, .count = s->count, .nonfinite = s->nonfinite,
		.first = s->first.value, .last = s->last.value, .min = s->min, .max = s->max,
		.first_step = s->first.step, .last_step = s->last.step, .min_step = s->min_step,
		.max_step = s->max_step,
		.first_time = s->first.time, .last_time = s->last.time, .first_nonfinite_step = s->nonfinite_step,
	};
}

bool metric_is_loss(const char *key)
{
	return strstr(key, "loss") != NULL && strcmp(key, "train/loss_scale") != 0;
}
