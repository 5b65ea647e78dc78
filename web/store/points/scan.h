/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h: visits every point of some series of a run: folded chunks in order, then the ingest log. Works on any
 * connection, in its snapshot. Private to web/store. */
#ifndef DPT_STORE_SCAN_H
#define DPT_STORE_SCAN_H

#include "web/store/points/outline.h"

#define SCAN_CHUNK_ID(series, number) ((series) * (INT64_C(1) << 20) + (number))
#define SCAN_CHUNK_SERIES(id) ((id) >> 20)

/* Called with up to CHUNK_POINTS points of the series at position `at` of the list; per series in order of arrival. */
typedef int scan_fn(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err);

/* Called with the folded chunks of one series in order, not decoded; a chunk is valid during the call. */
typedef int scan_chunk_fn(void *arg, const struct chunk *c, struct err *err);
int scan_series_chunks(struct db *d, int64_t series, scan_chunk_fn *fn, void *arg, struct err *err);

/* The same for readers that decode few groups. want, given the ends of a chunk by step and by time, selects chunks.
 * Full ones are passed as outlines, whose groups scan_group decodes; the last one, which is not full, as points. */
struct scan_group_source;

struct scan_parts {
	bool (*want)(void *arg, const struct sum_point *low, const struct sum_point *high);
	int (*outline)(void *arg, const struct outline *o, struct scan_group_source *from, struct err *err);
	int (*points)(void *arg, const struct sum_point *points, size_t n, struct err *err);
	void *arg;
	struct outlines *outlines;
	uint64_t outlines_generation; /* of d's snapshot */
};

/* folded: number of points in chunks. */
int scan_series_parts(struct db *d, int64_t series, uint64_t folded, const struct scan_parts *o, struct err *err);

int scan_group(struct scan_group_source *from, const struct outline *o, unsigned group, struct sum_point *ret,
	       struct err *err);

/* Visits only chunks of the series that may have points in the window (inclusive), not decoded. fn may narrow the
 * window. */
struct scan_window {
	int64_t min_step, max_step;
	double min_time, max_time;
	int64_t series;
};

int scan_series_window(struct db *d, const struct scan_window *w, scan_chunk_fn *fn, void *arg, struct err *err);

int scan_damaged(struct err *err, const char *what, int64_t id); /* reports a row that is damaged */

/* The series of a run to visit and the function that receives their points. */
struct series_scan {
	int64_t run_id;
	const int64_t *ids; /* ascending */
	size_t count;
	scan_fn *fn;
	void *arg;
};

int scan_points(struct db *d, const struct series_scan *s, struct err *err);

/* The log only. */
int scan_log(struct db *d, const struct series_scan *s, struct err *err);

/* The points at the end of one series: of its last chunk and of the newest rows of the run's log. */
int scan_newest(struct db *d, const struct series_scan *s, struct err *err);

#endif
