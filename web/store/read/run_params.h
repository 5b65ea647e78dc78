/* run_params.h: selects the params of a list of runs when not all are sent: those that distinguish the runs. Private to
 * web/store. */
#ifndef DPT_STORE_RUN_PARAMS_H
#define DPT_STORE_RUN_PARAMS_H

#include "web/store/db/db.h"
#include "web/store/read/metric_select.h"

/* Fills the params of ret->items, whose row numbers are l->runs. With o = l->o: sends all keys if the runs have at
 * most o->params_max, else that many, chosen in this order: those in o->params, in its order; those whose values
 * differ (or that only some runs have); the others, by name with digits as numbers. Sets ret->params_left_out if
 * some are missing. */
int run_params_load(struct db *d, const struct metric_select_list *l, struct arena *a, struct query_runs *ret,
		    struct err *err);

#endif
