/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h: groups runs by params and tags, computes statistics of a group (mean, sample standard deviation, quantile
 * for a confidence band), and replies with lists and charts of groups. */
#ifndef DPT_NATIVE_GROUPS_H
#define DPT_NATIVE_GROUPS_H

#include "web/api/api.h"

struct groups {
	const char *const *fields; /* "params.lr", "tags.team", "status" */
	size_t field_count;
	size_t count;
	size_t *of;	      /* group of each run, in the order of the runs */
	const char ***values; /* of each group by field; NULL: its runs have no value */
	size_t *sizes;	      /* number of runs in each group */
};

/* Makes groups in the order of their first runs. Returns false after failing the call, for example for an unknown
 * field. */
bool groups_make(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs,
		 struct groups *ret);

/* Replies {"groups":[{"group","runs","n","metrics":{KEY:{"first","last","min","max"}}}]}. Each of the four has n, mean
 * and std of the finite values of the runs. */
enum call_next runs_group_reply(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs);

/* --- charts: the lines of a chart by groups of runs, on the same bucket edges ---------------------------------- */

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
 * "high", and the number of "nonfinite" points. */
void series_group_write(struct call *c, struct js *j, const struct series_group *s);

#endif
