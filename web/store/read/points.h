/* SPDX-License-Identifier: Apache-2.0 */
/* points.h: reads points: raw in order, as a stream or in pages; and as M4 buckets for charts. A reader merges the
 * folded chunks with the ingest log, so it sees every acknowledged point. Points that a restart rolled back are
 * hidden unless all_segments is set. */
#ifndef DPT_STORE_POINTS_H
#define DPT_STORE_POINTS_H

#include <math.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

#define POINTS_ALL_RANKS INT32_MIN

struct points_sel {
	const char *const *runs; /* 32 hex digits each; unknown ones are skipped */
	size_t run_count;
	const char *const *keys; /* NULL: every key */
	size_t key_count;
	int rank;	   /* -1: the run-level series; POINTS_ALL_RANKS */
	int64_t from_step; /* inclusive; INT64_MIN: open */
	int64_t to_step;   /* inclusive; INT64_MAX: open */
	bool all_segments;
};

struct points_row {
	const char *run; /* borrowed from the cursor, as key is */
	const char *run_name;
	const char *key;
	int rank;
	int segment;
	int64_t step;
	double wall_time;
	double value;
};

/* A cursor over rows in the order run (as requested), key, rank, segment, step, arrival. It holds no read
 * transaction between calls, so a slow client does not block checkpoints. It does not see points that arrive before
 * its position. One thread at a time. */
struct points_cursor;

/* token NULL or "": from the start. ERR_USAGE: bad token. */
int points_open(struct points_cursor **ret, struct store *s, const struct points_sel *sel, const char *token,
		struct err *err);

/* Fills at most max rows; *ret_count 0: the end. Texts of rows are valid until points_close. */
int points_next(struct points_cursor *c, struct points_row *rows, size_t max, size_t *ret_count, struct err *err);

/* Writes the position of the cursor, for points_open; false at the end. */
bool points_token(struct points_cursor *c, char *ret, size_t ret_bytes); /* 160 bytes suffice */

void points_close(struct points_cursor *c); /* NULL is fine */

/* --- charts ----------------------------------------------------------------------------------------------- */

enum points_x {
	POINTS_X_STEP,
	POINTS_X_TIME,	  /* wall time, seconds since 1970 */
	POINTS_X_ELAPSED, /* seconds since the run's start */
	POINTS_X_EPOCH,	  /* step / param steps_per_epoch (a run without it: steps); keys with prefix epoch/ count
			   * epochs already */
};

struct points_at {
	double x;
	double value;
};

/* first, min, max, last and sum cover the finite points; without any the four are NaN and sum is 0. */
struct points_bucket {
	/* 0 .. bucket_count-1: from its edge up to but excluding the next (points_edge); the last bucket includes
	 * its end */
	uint32_t index;
	uint32_t count; /* number of all points */
	uint32_t nonfinite;
	struct points_at first, min, max, last;
	double sum;
	double first_nonfinite_x; /* valid when nonfinite > 0 */
};

/* A line of a chart: (run, key, rank) with its visible segments joined; with all_segments one line per segment. */
struct points_line {
	const char *run;
	const char *run_name;
	const char *key;
	int rank;
	int segment;		       /* the newest of the line */
	uint64_t point_count;	       /* inside from..to */
	struct points_bucket *buckets; /* non-empty ones, in order */
	size_t bucket_count;
};

struct points_chart_opts {
	struct points_sel sel; /* from_step and to_step are ignored */
	enum points_x x;
	double from, to;  /* in units of x, inclusive; NaN: smallest and largest x */
	uint32_t buckets; /* 1 .. 10000 */
	bool log;	  /* logarithmic edges; x <= 0 is left out, and such an end counts as NaN */
};

struct points_chart {
	double from, to; /* the edges used, shared by all lines */
	bool log;
	uint32_t bucket_count;
	double begin; /* points_place of `from` */
	double width; /* of a bucket; with log the logarithm of its factor; 0: all points are in the
		       * first */
	struct points_line *lines;
	size_t line_count;
	uint64_t rev;
};

/* Results live in the arena. Runs and keys without points have no line. */
int points_chart(struct store *s, const struct points_chart_opts *o, struct arena *a, struct points_chart *ret,
		 struct err *err);

/* The position of x on the axis, on which buckets are equally wide. */
static inline double points_place(const struct points_chart *c, double x)
{
	return c->log ? log(x) : x;
}

/* Sets bucket_count, begin and width from the edges. */
void points_spread(struct points_chart *c, uint32_t buckets);

/* The lower edge of bucket i; for bucket_count the end. */
double points_edge(const struct points_chart *c, uint32_t i);

/* The bucket of an x between the edges. */
static inline uint32_t points_bucket_of(const struct points_chart *c, double x)
{
	double at = c->width > 0 ? (points_place(c, x) - c->begin) / c->width : 0;

	return at < c->bucket_count - 1 ? (uint32_t)at : c->bucket_count - 1;
}

#endif
