/* series_select.h: finds the series of one run that a selection of points covers. Private to web/store. */
#ifndef DPT_STORE_SERIES_SELECT_H
#define DPT_STORE_SERIES_SELECT_H

#include "web/store/db/db.h"
#include "web/store/points/series_summary.h"
#include "web/store/read/points.h"

struct series_select_series {
	int64_t id;
	const char *key;
	int rank, segment;
	int64_t hide;       /* points are hidden from this step on: hide_has, hide_last */
	int64_t chunks;
	bool ordered;       /* the folded points are in order of steps */
	struct sum folded;
};

struct series_select_run {
	int64_t id;
	const char *uuid, *name;
	double start_s;          /* NaN: unknown */
	double steps_per_epoch;  /* 1 if the run has no such param */
	struct series_select_series *series; /* by key, rank, segment */
	size_t count;
};

struct series_select_want {
	const struct points_sel *sel;
	const char *uuid; /* of the run; borrowed by the result */
};

/* 1: found, 0: no such run, negative: failed. */
int series_select_run(struct db *d, const struct series_select_want *want, struct arena *a,
		      struct series_select_run *ret, struct err *err);

#endif
