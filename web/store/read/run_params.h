/* run_params.h: the params of a list's runs where not all of them travel: those that tell the runs apart. Private to
 * web/store. */
#ifndef DPT_STORE_RUN_PARAMS_H
#define DPT_STORE_RUN_PARAMS_H

#include "web/store/db/db.h"
#include "web/store/read/query.h"

/* Fills the params of ret->items, whose numbers are ids: all of them where the runs have at most o->params_max keys,
 * else so many of those: the ones that o->params names, in its order, then those whose values differ (a param that only
 * some runs have differs), then the others, by name, digits as numbers. ret->params_left_out says which it was. */
int run_params_load(struct db *d, const struct query_runs_opts *o, const int64_t *ids, struct arena *a,
		struct query_runs *ret, struct err *err);

#endif
