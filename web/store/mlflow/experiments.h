/* SPDX-License-Identifier: Apache-2.0 */
/* experiments.h: experiments for MLflow's API: with tags, including deleted ones, searched in pages. */
#ifndef DPT_STORE_EXPERIMENTS_H
#define DPT_STORE_EXPERIMENTS_H

#include "web/store/read/query.h"

struct experiment {
	int64_t id;
	const char *name;
	int64_t created_ms, updated_ms;
	bool deleted;
	const char *location;  /* location of its artifacts; "": in the store, see location_of */
	struct query_kv *tags; /* by key */
	size_t tag_count;
};

/* By id, or by name. ERR_NOENT without a text: no such experiment. */
int experiment_get(struct store *s, int64_t id, struct arena *a, struct experiment *ret, struct err *err);
int experiment_find(struct store *s, const char *name, struct arena *a, struct experiment *ret, struct err *err);

/* The location of an experiment's artifacts; "" if they are in the store or there is no such experiment. */
int experiment_location(struct store *s, int64_t id, struct arena *a, const char **ret, struct err *err);

struct experiments_opts {
	const char *filter;
	const char *const *order; /* none: the newest first */
	size_t order_count;
	bool active, deleted; /* states to list */
	size_t limit;
	const char *page_token; /* NULL or "": the first page */
};

struct experiments {
	struct experiment *items;
	size_t count;
	const char *next_page_token; /* NULL: the last page */
};

/* ERR_USAGE in MLflow's words. */
int experiments_search(struct store *s, const struct experiments_opts *o, struct arena *a, struct experiments *ret,
		       struct err *err);

#endif
