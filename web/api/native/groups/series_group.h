/* series_group.h: aggregates the lines of a chart by groups of runs, on the same bucket edges. */
#ifndef DPT_NATIVE_SERIES_GROUP_H
#define DPT_NATIVE_SERIES_GROUP_H

#include "web/api/native/groups/groups.h"
#include "web/store/read/points.h"

/* MINMAX: range of all points; the others are around the mean of the runs' means. */
enum series_band { SERIES_MINMAX, SERIES_STD, SERIES_SE, SERIES_T95 };

extern const char *const series_band_names[]; /* NULL-terminated */

/* A chart whose lines are grouped by run. */
struct series_group {
	const struct points_chart *chart;
	const struct groups *groups;
	const struct query_runs *runs;
	enum series_band band;
};

/* Writes the member "groups" of an open object. Each key and group has "key", "group", "runs" and "buckets". A bucket
 * has its index "i", the number "n" of runs with a finite value in it, "mean" and "median" of these runs' means, "low",
 * "high", and the number of "nonfinite" points. Returns false after failing the call. */
bool series_group_write(struct call *c, struct js *j, const struct series_group *s);

#endif
