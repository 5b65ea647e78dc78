/* metric.h: converts a stored summary to a metric of a run. Private to web/store. */
#ifndef DPT_STORE_METRIC_H
#define DPT_STORE_METRIC_H

#include "web/store/points/series_summary.h"
#include "web/store/read/query.h"

/* key is borrowed. */
void metric_of(struct query_metric *m, const char *key, const struct sum *s);

/* Returns true if non-finite values of this metric cause an alert. */
bool metric_is_loss(const char *key);

#endif
