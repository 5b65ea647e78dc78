/* SPDX-License-Identifier: Apache-2.0 */
/* history.h: the run-level points of one key in the order of MLflow's histories: time, step, value. */
#ifndef DPT_STORE_HISTORY_H
#define DPT_STORE_HISTORY_H

#include "web/store/points/series_summary.h"

struct store;

/* Where a page begins: after this point and the `given` points equal to it that were returned already. */
struct history_place {
	bool begun;
	int64_t time_ms, step;
	double value;
	uint64_t given;
};

#define HISTORY_TOKEN_BYTES 96

int64_t history_time_ms(double wall_s);

/* "" and NULL: the beginning. ERR_USAGE: not a token. */
int history_parse(struct history_place *ret, const char *token, struct err *err);
void history_token(const struct history_place *p, char ret[HISTORY_TOKEN_BYTES]);

struct history_sel {
	const char *run, *key;
	size_t limit;
	struct history_place place;
};

struct history_points {
	struct sum_point *points;
	size_t count;
	bool more; /* history_page: points follow */
};

/* Returns at most limit points from sel->place on and advances it. An unknown run or key has no points. Memory is
 * bounded by limit; a page of a series in order reads only its own chunks. */
int history_page(struct store *s, struct history_sel *sel, struct arena *a, struct history_points *ret,
		 struct err *err);

/* Samples about n points of a run's key with steps in [from, to], evenly by position in the order of steps. The last
 * point is always included; if n points are sampled already, it replaces the last one. In order. */
struct history_sample {
	const char *run, *key;
	int64_t from, to;
	size_t n;
};

int history_sample(struct store *s, const struct history_sample *sel, struct arena *a, struct history_points *ret,
		   struct err *err);

#endif
