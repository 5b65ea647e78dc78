/* SPDX-License-Identifier: Apache-2.0 */
/* logged_models.h: reads logged models, and the inputs and outputs of runs. */
#ifndef DPT_STORE_LOGGED_MODELS_H
#define DPT_STORE_LOGGED_MODELS_H

#include "web/store/read/query.h"

struct model_metric {
	const char *key;
	double value;
	int64_t time_ms, step;
	const char *run;
	const char *dataset_name, *dataset_digest; /* "": none */
};

struct model {
	const char *id; /* m- and 32 hex digits */
	int64_t experiment;
	const char *name, *type, *source_run;
	const char *status; /* LOGGED_MODEL_PENDING, … */
	int64_t created_ms, updated_ms;
	struct query_kv *params, *tags;
	size_t param_count, tag_count;
	struct model_metric *metrics; /* by key, time, step */
	size_t metric_count;
};

/* ERR_NOENT without a text: no such model. model_get skips deleted ones. */
int model_get(struct store *s, const char *id, struct arena *a, struct model *ret, struct err *err);
int model_get_deleted(struct store *s, const char *id, struct arena *a, struct model *ret, struct err *err);

struct models_folders {
	const char **items;
	size_t count;
};

/* The artifact folders, below the root of artifacts, of models that the run logged in its own experiment, including
 * deleted ones. They move with the run to another experiment. */
int models_folders(struct store *s, const char *run, struct arena *a, struct models_folders *ret, struct err *err);

struct models_dataset {
	const char *name, *digest; /* digest NULL: any */
};

struct models_order {
	const char *field; /* an attribute, or metrics.KEY */
	bool descending;
	struct models_dataset dataset; /* name NULL: any */
};

struct models_opts {
	const int64_t *experiments;
	size_t experiment_count;
	const char *filter;
	const struct models_dataset *datasets; /* metrics count only if logged with one of these */
	size_t dataset_count;
	const struct models_order *order; /* none: the newest first */
	size_t order_count;
	size_t limit;
	const char *page_token;
};

struct models {
	struct model *items;
	size_t count;
	const char *next_page_token; /* NULL: the last page */
};

/* ERR_USAGE in MLflow's words. */
int models_search(struct store *s, const struct models_opts *o, struct arena *a, struct models *ret, struct err *err);

/* --- inputs and outputs of runs ----------------------------------------------------------------------------------- */

struct run_dataset {
	int64_t id;
	const char *name, *digest, *source_type, *source;
	const char *schema, *profile; /* NULL: none */
	struct query_kv *tags;
	size_t tag_count;
};

struct run_model {
	const char *id;
	int64_t step;
	bool made; /* an output; else an input */
};

struct run_links {
	struct run_dataset *datasets;
	size_t dataset_count;
	struct run_model *models;
	size_t model_count;
};

int run_links(struct store *s, const char *run, struct arena *a, struct run_links *ret, struct err *err);

/* The same for many runs; on a remote database in one round trip. */
struct runs_linked {
	const char *const *runs; /* uuids */
	size_t count;
	struct run_links *links; /* per run; filled */
};
int runs_links(struct store *s, const struct runs_linked *r, struct arena *a, struct err *err);

/* Data sets of experiments by name, digest and context; at most 1000. */
struct dataset_summary {
	const char *experiment, *name, *digest;
	const char *context; /* NULL: none */
};

struct dataset_summaries {
	const int64_t *experiments;
	size_t experiment_count;
	struct dataset_summary *items; /* filled */
	size_t count;
};

int dataset_summaries(struct store *s, struct dataset_summaries *io, struct arena *a, struct err *err);

#endif
