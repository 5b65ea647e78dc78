/* derived.h: the series that a formula makes of a run's series: a point wherever all of its metrics have one at the
 * same step, before anything is put into buckets. */
#ifndef DPT_NATIVE_DERIVED_H
#define DPT_NATIVE_DERIVED_H

#include "web/api/api.h"

/* As points_chart, with one line a run that has all metrics and params of the formula; o's keys are ignored, its rank
 * is one. A step that a series has twice counts with its last point; the time of a point is the latest of its parts'.
 * Edges that o leaves open are those of the parts. False after failing the call. */
bool derived_chart(struct call *c, const char *formula, struct points_chart_opts *o, struct points_chart *ret);

#endif
