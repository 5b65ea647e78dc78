/* experiments.h: experiments as MLflow sees them: with tags, deleted ones too, searched and in pages. */
#ifndef DPT_STORE_EXPERIMENTS_H
#define DPT_STORE_EXPERIMENTS_H

#include "web/store/read/query.h"

struct experiment {
	int64_t id;
	const char *name;
	int64_t created_ms, updated_ms;
	bool deleted;
	const char *location;  /* of its artifacts; "": here, see location_of */
	struct query_kv *tags; /* by key */
	size_t tag_count;
};

/* By name when it is not NULL. ERR_NOENT without text when there is none. */
int experiment_get(struct store *s, int64_t id, const char *name, struct arena *a, struct experiment *ret,
		   struct err *err);

/* Where the artifacts of an experiment lie, "" where they are kept here or there is no such experiment. */
int experiment_location(struct store *s, int64_t id, struct arena *a, const char **ret, struct err *err);

struct experiments_opts {
	const char *filter;
	const char *const *order; /* without: the newest first */
	size_t order_count;
	bool active, deleted;     /* which to show */
	size_t limit;
	const char *page_token;   /* NULL or "": the first page */
};

struct experiments {
	struct experiment *items;
	size_t count;
	const char *next_page_token; /* NULL on the last page */
};

/* ERR_USAGE in MLflow's words. */
int experiments_search(struct store *s, const struct experiments_opts *o, struct arena *a, struct experiments *ret,
		       struct err *err);

#endif
