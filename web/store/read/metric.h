/* metric.h: a stored summary as a run's metric. Private to web/store. */
#ifndef DPT_STORE_METRIC_H
#define DPT_STORE_METRIC_H

#include "web/store/points/series_summary.h"
#include "web/store/read/query.h"

/* key is kept. */
void metric_of(struct query_metric *m, const char *key, const struct sum *s);

/* Whether what a run's reader is warned of is found in this metric. */
bool metric_is_loss(const char *key);

#endif
