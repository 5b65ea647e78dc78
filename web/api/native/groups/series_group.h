/* series_group.h: a chart's lines as groups of runs on its bucket edges. */
#ifndef DPT_NATIVE_SERIES_GROUP_H
#define DPT_NATIVE_SERIES_GROUP_H

#include "web/api/native/groups/groups.h"
#include "web/store/read/points.h"

/* MINMAX: of all points; the others around the mean of the runs' means. */
enum series_band { SERIES_MINMAX, SERIES_STD, SERIES_SE, SERIES_T95 };

extern const char *const series_band_names[]; /* NULL-terminated */

/* The member "groups" of an open object: for each key and group "key", "group", "runs" and "buckets", each with its
 * place "i", the number of runs "n" that have a finite value there, "mean" and "median" of these runs' means in the
 * bucket, "low", "high", and how many points are "nonfinite". False after failing the call. */
bool series_group_write(struct call *c, struct js *j, const struct points_chart *chart, const struct groups *g,
			const struct query_runs *runs, enum series_band band);

#endif
