/* detail.h: loads one run with its data from a reader's snapshot into an arena. Private to web/store. */
#ifndef DPT_STORE_DETAIL_H
#define DPT_STORE_DETAIL_H

#include "web/store/db/db.h"
#include "web/store/read/query.h"

struct metric_select;

/* The runs, and what to load in addition to their columns. */
struct detail_want {
	const int64_t *ids;
	unsigned parts;              /* of enum query_part */
	const struct metric_select *chosen; /* NULL: every metric */
};

/* One run with all parts. ERR_NOENT, without a text: there is no such run. */
int detail_load(struct db *d, int64_t run_id, struct arena *a, struct query_run *ret, struct err *err);

/* The ret->count runs of want->ids; on a remote database in a few round trips. ERR_NOENT when one is missing. */
int detail_load_all(struct db *d, const struct detail_want *want, struct arena *a, struct query_runs *ret,
		    struct err *err);

/* Loads what only the page of one run shows: environment, segments, ranks, problems. */
int detail_load_rest(struct db *d, int64_t run_id, struct arena *a, struct query_run *run, struct err *err);

/* Loads the series of every rank and segment: may be millions. */
int detail_load_series(struct db *d, int64_t run_id, struct arena *a, struct query_run *run, struct err *err);

#endif
