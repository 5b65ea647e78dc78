/* SPDX-License-Identifier: Apache-2.0 */
/* query.h: reads without points: experiments, runs, one run, changes. Each call sees one snapshot that has every
 * acknowledged write. Results live in the caller's arena; all text is UTF-8 and never NULL unless stated. */
#ifndef DPT_STORE_QUERY_H
#define DPT_STORE_QUERY_H

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

struct db;
struct db_rows;
struct filter_mlflow;
struct store;

struct query_experiment {
	const char *id;
	const char *name;
	uint64_t run_count;
	uint64_t running_count, failed_count;
	const char *description; /* the first 500 characters, Markdown; "": none */
	bool archived;
	int64_t created_ms;
	int64_t changed_ms; /* the newest start or end of its runs; without runs created_ms */
};

struct query_experiments {
	struct query_experiment *items; /* Default first, then by name */
	size_t count;
};

struct query_kv {
	const char *key;
	const char *value;
};

struct query_kvs {
	struct query_kv *items;
	size_t count;
};

/* The summary of a visible run-level series. first and last are by (step, wall time, value). min and max are of
 * finite values; without any they are NaN with step 0. */
struct query_metric {
	const char *key;
	uint64_t count;
	uint64_t nonfinite;
	bool infinite; /* one of those is an infinity */
	double first, last, min, max;
	int64_t first_step, last_step, min_step, max_step;
	double first_time, last_time; /* wall, seconds */
	int64_t first_nonfinite_step; /* valid when nonfinite > 0 */
};

enum query_alert_kind { QUERY_ALERT_FAILED, QUERY_ALERT_NAN, QUERY_ALERT_DIVERGED, QUERY_ALERT_SPIKE };

struct query_alert {
	enum query_alert_kind kind;
	const char *kind_name; /* "failed" "nan" "diverged" "spike" */
	const char *key;       /* "" for failed */
	int64_t step;
	double value;
	const char *text; /* one phrase: "NaN from step 400" */
};

struct query_segment {
	int number;
	int64_t first_step, first_epoch; /* 0, 0 for the first */
	int64_t start_ms, end_ms;	 /* INT64_MIN: unknown */
	const char *status;
	int world_size;		 /* 0: unknown */
	struct query_kv *params; /* those of the segment */
	size_t param_count;
};

struct query_rank {
	int rank;
	const char *host;	/* "": unknown, as its points came without a journal */
	int pid;		/* 0: unknown */
	int segment;		/* the newest it wrote in */
	int64_t last_record_ms; /* INT64_MIN: unknown */
};

struct query_problem {
	int64_t time_ms;
	const char *text;
	uint64_t count;
};

/* A stored series of one rank and segment, including hidden points. */
struct query_series {
	const char *key;
	int rank;
	int segment;
	struct query_metric sum;
};

struct query_run {
	const char *id;
	const char *name;
	const char *experiment;
	const char *experiment_id;
	const char *location; /* location of the experiment's artifacts; "": in the store, see location_of */
	const char *user;     /* from MLflow's client; "" */
	const char *status;
	bool status_inferred; /* killed after 60 s without records; withdrawn when new ones arrive */
	bool deleted;
	int64_t deleted_ms; /* INT64_MIN: not deleted */
	int64_t start_ms; /* INT64_MIN: unknown */
	int64_t end_ms;
	int64_t last_step;	 /* last step of the run's series that count optimiser steps; -1: none */
	int world_size;		 /* 0: unknown */
	uint64_t rev;		 /* grows with every change of the run */
	struct query_kv *params; /* sorted by key, as all lists */
	size_t param_count;
	struct query_kv *tags;
	size_t tag_count;
	struct query_metric *metrics;
	size_t metric_count;
	struct query_alert *alerts; /* most serious first */
	size_t alert_count;
	const char *notes;
	/* query_run only */
	const char *status_reason; /* why it ended, as its program said; "": not said */
	struct query_kv *environment;
	size_t environment_count;
	struct query_segment *segments;
	size_t segment_count;
	struct query_rank *ranks;
	size_t rank_count;
	struct query_problem *problems;
	size_t problem_count;
	struct query_series *series; /* query_run_series only; by key, rank, segment */
	size_t series_count;
};

enum query_part { QUERY_PARAMS = 1, QUERY_TAGS = 2, QUERY_METRICS = 4, QUERY_ALERTS = 8, QUERY_PARTS = 15 };

struct query_key_runs {
	const char *key;
	uint32_t runs;
};

struct query_runs_opts {
	const char *const *experiments; /* names; NULL: all */
	const int64_t *experiment_ids;	/* instead of names; unknown ones are skipped */
	size_t experiment_count;
	const char *const *ids; /* NULL: all; else only these */
	size_t id_count;
	const char *filter;	/* grammar of filter.h; NULL or "": none */
	const char *order_by;	/* `metrics.loss.min DESC, start_time`; NULL or "": start_time DESC */
	const char *page_token; /* NULL or "": the first page; requires the same filter and order */
	size_t limit;		/* 0: 100; at most 50000 */
	bool with_deleted;
	bool only_deleted;
	const struct filter_mlflow *mlflow; /* MLflow's grammar instead of filter and order_by */
	bool bare;			    /* without params, tags, metrics and alerts */
	unsigned parts;			    /* bits of enum query_part; 0: all */
	const char *const *metrics;	    /* with some_metrics, or if there are more than metrics_max: only these */
	size_t metric_count;
	bool some_metrics;
	size_t metrics_max;	   /* 0: unused; else send all metrics if the runs of the page have at most this
				    * many keys */
	bool with_keys;		   /* fill keys of the result */
	const char *const *params; /* if there are more than params_max: these first */
	size_t param_count;
	size_t params_max; /* 0: all; else at most this many keys, those that distinguish the runs */
};

struct query_runs {
	struct query_run *items;
	size_t count;
	const char *next_page_token; /* NULL: the last page */
	uint64_t rev;		     /* revision of the snapshot, for an ETag or for query_changes */
	/* with_keys: every metric key of the items with the number of items that have it, sorted */
	struct query_key_runs *keys;
	size_t key_count;
	bool metrics_left_out; /* there are more than metrics_max keys */
	bool params_left_out;  /* there are more than params_max keys */
};

int query_experiments(struct store *s, struct arena *a, struct query_experiments *ret, struct err *err);

/* Deleted experiments that are not removed yet, without counts of runs. */
int query_experiments_deleted(struct store *s, struct arena *a, struct query_experiments *ret, struct err *err);

/* ERR_USAGE: filter, order or token is invalid: the text has the position, the error's field is "filter", "order_by"
 * or "page_token". ERR_NOENT: no experiment of that name. Unknown ids are skipped. */
int query_runs(struct store *s, const struct query_runs_opts *o, struct arena *a, struct query_runs *ret,
	       struct err *err);

/* MLflow's name of a status: "running" is "RUNNING", "preempted" is "KILLED". */
const char *query_mlflow_status(const char *status);

/* The id of the one run that begins with prefix (4 to 32 hex digits); ret is changed on failure, too. ERR_NOENT: no
 * such run; ERR_USAGE: several, which the text lists. */
int query_run_id(struct store *s, const char *prefix, char ret[33], struct err *err);

/* One run with all its data; also a deleted run. id: 32 hex digits, or a unique prefix of at least 4. ERR_NOENT: no
 * such run; ERR_GONE: it was removed for good. */
int query_run(struct store *s, const char *id, struct arena *a, struct query_run *ret, struct err *err);

/* The same with its list of series, which may be millions. */
int query_run_series(struct store *s, const char *id, struct arena *a, struct query_run *ret, struct err *err);

/* The texts that an API keeps of a run (change_records). ERR_NOENT, ERR_GONE: no such run. */
int query_run_texts(struct store *s, const char *id, struct arena *a, struct query_kvs *ret, struct err *err);

struct query_changes {
	const char *token;	 /* for the next call */
	const char *const *runs; /* ids that changed after `since`; at most 1000, then `more` is set */
	size_t run_count;
	bool more;
	bool reset; /* since is absent or of another store: assume that everything changed */
};

/* since NULL or "": no runs, only the current token. ERR_USAGE: not a token. */
int query_changes(struct store *s, const char *since, struct arena *a, struct query_changes *ret, struct err *err);

/* Lists every key that a run of the experiment (NULL: any run) uses, for column pickers. */
struct query_keys {
	const char **params, **tags, **metrics; /* sorted */
	size_t param_count, tag_count, metric_count;
};

int query_keys(struct store *s, const char *experiment, struct arena *a, struct query_keys *ret, struct err *err);

/* The series that dptrain writes for each parameter or layer: returns the length of the group's name
 * ("grad_norm/conv1.weight": 9). 0: the series is of the run as a whole. */
size_t query_layer_group(const char *key);

/* Reads the rows of a started query whose columns are those of environment_of_run, or which is named so. */
int query_pairs_read(struct db *d, struct db_rows *q, struct arena *a, struct query_kvs *ret, struct err *err);

/* The address of `below` ("<run>/artifacts") for MLflow's clients, in the arena. location: of the experiment, "" for
 * artifacts in the store. A query part of location stays at the end. */
const char *location_of(struct arena *a, const char *location, int64_t experiment, const char *below);

#endif
