/* points.h: reads of points: raw, in order, as a stream or in pages; and M4 buckets for charts. A reader merges the
 * folded chunks with what is still in the ingest log, so every acknowledged point is seen.
 * Hidden points (a restart took the run back before them) are left out unless all_segments is set. */
#ifndef DPT_STORE_POINTS_H
#define DPT_STORE_POINTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct store;

#define POINTS_ALL_RANKS INT32_MIN

struct points_sel {
	const char *const *runs; /* 32 hex digits each; those that do not exist give nothing */
	size_t run_count;
	const char *const *keys; /* NULL: every key */
	size_t key_count;
	int rank;                /* -1: the run-level series; POINTS_ALL_RANKS */
	int64_t from_step;       /* inclusive; INT64_MIN: open */
	int64_t to_step;         /* inclusive; INT64_MAX: open */
	bool all_segments;
};

struct points_row {
	const char *run;         /* borrowed from the cursor, as key */
	const char *run_name;
	const char *key;
	int rank;
	int segment;
	int64_t step;
	double wall_time;
	double value;
};

/* Rows in the order run (as asked), key, rank, segment, step, arrival. A cursor holds no read transaction between
 * calls, so that a slow client never keeps the log file from shrinking; points that arrive behind its position
 * meanwhile are not seen. One thread at a time. */
struct points_cursor;

/* token NULL or "": from the start. ERR_USAGE: bad token. */
int points_open(struct points_cursor **ret, struct store *s, const struct points_sel *sel, const char *token,
		struct err *err);

/* Fills at most max rows; *ret_count 0 is the end. The rows' texts stay valid until points_close. */
int points_next(struct points_cursor *c, struct points_row *rows, size_t max, size_t *ret_count, struct err *err);

/* Where the cursor stands, for points_open; false at the end. */
bool points_token(struct points_cursor *c, char *ret, size_t ret_bytes); /* 160 bytes do */

void points_close(struct points_cursor *c); /* NULL is fine */

/* --- charts ----------------------------------------------------------------------------------------------- */

enum points_x {
	POINTS_X_STEP,
	POINTS_X_TIME,    /* wall time, seconds since 1970 */
	POINTS_X_ELAPSED, /* seconds since the run's start */
	POINTS_X_EPOCH,   /* step / the param steps_per_epoch; keys that begin with epoch/ count epochs already. A run
	                   * without that param gives its steps */
};

struct points_at {
	double x;
	double value;
};

/* first, min, max, last and sum are over the finite points; when there is none the four are NaN and sum is 0. */
struct points_bucket {
	/* 0 .. bucket_count-1: from one edge to before the next (points_edge), the last one closed */
	uint32_t index;
	uint32_t count;      /* of all points */
	uint32_t nonfinite;
	struct points_at first, min, max, last;
	double sum;
	double first_nonfinite_x; /* valid when nonfinite > 0 */
};

/* One line of a chart: (run, key, rank), its visible segments joined; with all_segments one line a segment. */
struct points_line {
	const char *run;
	const char *run_name;
	const char *key;
	int rank;
	int segment;              /* the newest one joined in it */
	uint64_t point_count;     /* inside from..to */
	struct points_bucket *buckets; /* those with points, in order */
	size_t bucket_count;
};

struct points_chart_opts {
	struct points_sel sel;    /* its from_step and to_step are ignored */
	enum points_x x;
	double from, to;          /* in units of x, inclusive; NaN: the smallest and largest x there is */
	uint32_t buckets;         /* 1 .. 10000 */
	bool log;                 /* edges lie apart by factors; x of 0 and below is left out, such ends are open */
};

struct points_chart {
	double from, to;          /* the edges used, shared by all lines */
	bool log;
	uint32_t bucket_count;
	double begin;             /* the place of `from` */
	double width;             /* of a bucket; with log the logarithm of its factor; 0: all lies in the first */
	struct points_line *lines;
	size_t line_count;
	uint64_t rev;
};

/* Results live in the arena. Runs and keys without points give no line. */
int points_chart(struct store *s, const struct points_chart_opts *o, struct arena *a, struct points_chart *ret,
		 struct err *err);

/* Where x lies on the axis: buckets are equally wide there. */
static inline double points_place(const struct points_chart *c, double x)
{
	return c->log ? log(x) : x;
}

/* Sets bucket_count, begin and width by the edges. */
void points_spread(struct points_chart *c, uint32_t buckets);

/* Where bucket i begins; that of bucket_count is the end. */
double points_edge(const struct points_chart *c, uint32_t i);

/* The bucket of an x that lies between the edges. */
static inline uint32_t points_bucket_of(const struct points_chart *c, double x)
{
	double at = c->width > 0 ? (points_place(c, x) - c->begin) / c->width : 0;

	return at < c->bucket_count - 1 ? (uint32_t)at : c->bucket_count - 1;
}

#endif
